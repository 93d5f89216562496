#include "cli/commands.h"

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <sstream>

#include "base/strings.h"
#include "cli/explain.h"
#include "cli/object_kinds.h"
#include "cli/object_tables.h"
#include "cli/storage_tables.h"

namespace volumed {
namespace {

using Stub = v1::VolumeAgent::Stub;

v1::ObjectRef MakeRef(const CliContext& context, const std::string& kind, const std::string& name) {
  v1::ObjectRef ref;
  ref.set_kind(kind);
  ref.set_namespace_(context.name_space);
  ref.set_name(name);
  return ref;
}

// Makes the call; prints `done` on success unless it is empty.
template <typename Method, typename Request, typename Response>
ExitCode CallAndSay(const CliContext& context, Method method, const Request& request,
                    Response* response, const std::string& done) {
  Client client(context.socket, context.timeout);
  const grpc::Status status = client.Call(method, request, response);
  if (!status.ok()) return ReportFailure(status, context.socket);
  if (!done.empty()) std::cout << done << "\n";
  return kExitOk;
}

ExitCode ReportProblems(const v1::ApplyResponse& response) {
  for (const v1::ManifestProblem& problem : response.problems())
    PrintManifestProblem(problem, std::cerr);
  std::cerr << "volumectl: nothing of this file was applied\n";
  return kExitInvalid;
}

ExitCode ApplyFile(const CliContext& context, const std::string& file, bool replace) {
  const std::optional<std::string> manifest = ReadManifest(file);
  if (!manifest) return kExitUsage;
  v1::ApplyRequest request;
  request.set_namespace_(context.name_space);
  request.set_file(file);
  request.set_manifest(*manifest);
  request.set_replace(replace);
  v1::ApplyResponse response;
  Client client(context.socket, context.timeout);
  if (const grpc::Status status = client.Call(&Stub::Apply, request, &response); !status.ok()) {
    const ExitCode code = ReportFailure(status, context.socket);
    // It is this manifest that is refused, by what there is already.
    const bool is_refused = status.error_code() == grpc::StatusCode::FAILED_PRECONDITION ||
                            status.error_code() == grpc::StatusCode::ALREADY_EXISTS;
    return is_refused ? kExitInvalid : code;
  }
  if (response.problems_size() > 0) return ReportProblems(response);
  for (const v1::ManifestProblem& warning : response.warnings()) {
    std::cerr << "warning: ";
    PrintManifestProblem(warning, std::cerr);
  }
  for (const v1::AppliedObject& applied : response.applied()) {
    const std::string& name_space = applied.object().namespace_();
    std::cout << applied.object().kind() << " " << name_space << (name_space.empty() ? "" : "/")
              << applied.object().name() << " " << applied.result() << "\n";
    if (applied.disk_data().empty()) continue;
    std::cerr << "warning: the data of these volumes goes with the pod " << applied.replaced_uid()
              << " once its consumers are gone: " << Join(applied.disk_data(), ", ") << "\n";
  }
  return kExitOk;
}

// An object of that name may be in another namespace.
ExitCode ReportNone(const CliContext& context, std::string_view kind, const std::string& name,
                    bool of_namespace) {
  const bool in_one = of_namespace && !context.name_space.empty();
  std::cerr << "volumectl: no " << kind << " " << name
            << (in_one ? " in namespace " + context.name_space : "") << "\n";
  return kExitNotFound;
}

// The one pod of that name or uid; prints why not otherwise.
std::optional<v1::Pod> GetOnePod(const CliContext& context, const std::string& name,
                                 ExitCode* code) {
  v1::GetPodsRequest request;
  request.set_namespace_(context.name_space);
  request.set_name(name);
  v1::GetPodsResponse response;
  *code = CallAndSay(context, &Stub::GetPods, request, &response, "");
  if (*code != kExitOk) return std::nullopt;
  if (response.pods_size() == 0) {
    *code = ReportNone(context, "pod", name, true);
    return std::nullopt;
  }
  if (response.pods_size() > 1) {
    std::cerr << "volumectl: several pods named " << name << "; give its uid or -n\n";
    *code = kExitNotFound;
    return std::nullopt;
  }
  return response.pods(0);
}

ExitCode GetStorage(const CliContext& context, const CliNoun& noun, const std::string& name) {
  v1::GetStorageRequest request;
  request.set_kind(std::string(noun.singular));
  request.set_namespace_(context.name_space);
  request.set_name(name);
  v1::GetStorageResponse response;
  if (const ExitCode code = CallAndSay(context, &Stub::GetStorage, request, &response, "");
      code != kExitOk) {
    return code;
  }
  const int found = response.persistent_volumes_size() + response.persistent_volume_claims_size() +
                    response.storage_classes_size();
  if (!name.empty() && found == 0) {
    return ReportNone(context, noun.singular, name, noun.plural == kClaimNoun.plural);
  }
  if (noun.plural == kPersistentVolumeNoun.plural) {
    PrintPersistentVolumes(response, context.format, NowUnixMs(), std::cout);
  } else if (noun.plural == kClaimNoun.plural) {
    PrintClaims(response, context.format, context.name_space.empty(), NowUnixMs(), std::cout);
  } else {
    PrintStorageClasses(response, context.format, NowUnixMs(), std::cout);
  }
  return kExitOk;
}

// Shows what a command would take from a source, and then gives it.
template <typename Request, typename Response, typename Method>
ExitCode TakeFromSource(const CliContext& context, Method method, const std::string& source,
                        const std::string& done, bool yes, bool dry_run) {
  Request request;
  request.set_name(source);
  request.set_dry_run(true);
  Response response;
  if (const ExitCode code = CallAndSay(context, method, request, &response, ""); code != kExitOk) {
    return code;
  }
  if (IsForPrograms(context.format)) {
    PrintMessage(response, context.format, std::cout);
  } else {
    PrintGoing(response.goes(), std::cout);
  }
  if (dry_run) return kExitOk;
  request.set_dry_run(false);
  request.set_yes(yes);
  const std::string said = IsForPrograms(context.format) ? "" : "source " + source + " " + done;
  return CallAndSay(context, method, request, &response, said);
}

// Of a kind that the agent only keeps.
ExitCode GetKept(const CliContext& context, const CliNoun& noun, const std::string& name) {
  v1::ListObjectsRequest request;
  request.set_kind(std::string(noun.singular));
  request.set_namespace_(context.name_space);
  v1::ListObjectsResponse response;
  if (const ExitCode code = CallAndSay(context, &Stub::ListObjects, request, &response, "");
      code != kExitOk) {
    return code;
  }
  if (!name.empty()) {
    auto* listed = response.mutable_listed();
    for (int i = listed->size() - 1; i >= 0; --i) {
      if (listed->Get(i).object().name() != name) listed->DeleteSubrange(i, 1);
    }
    const bool of_namespace =
        noun.plural == kSecretNoun.plural || noun.plural == kConfigMapNoun.plural;
    if (listed->empty()) return ReportNone(context, noun.singular, name, of_namespace);
  }
  response.clear_objects();
  PrintObjects(response, noun, context.format, context.name_space.empty(), NowUnixMs(), std::cout);
  return kExitOk;
}

}  // namespace

std::optional<std::string> ReadManifest(const std::string& file) {
  std::stringstream content;
  if (file == "-") {
    content << std::cin.rdbuf();
    return content.str();
  }
  if (std::error_code error; std::filesystem::is_directory(file, error)) {
    std::cerr << "volumectl: " << file << " is a directory\n";
    return std::nullopt;
  }
  std::ifstream in(file, std::ios::binary);
  content << in.rdbuf();
  if (in) return content.str();
  std::cerr << "volumectl: cannot read " << file << "\n";
  return std::nullopt;
}

ExitCode RunApply(const CliContext& context, const std::vector<std::string>& files, bool replace) {
  ExitCode worst = kExitOk;
  for (const std::string& file : files) {
    const ExitCode code = ApplyFile(context, file, replace);
    if (code == kExitUnreachable || code == kExitForbidden) return code;
    if (code != kExitOk) worst = code;
  }
  return worst;
}

// Page by page, so that the agent never has all of them in one answer.
ExitCode GetAllPods(const CliContext& context, v1::GetPodsRequest request,
                    v1::GetPodsResponse* all) {
  constexpr uint32_t kPageSize = 1000;
  request.set_page_size(kPageSize);
  Client client(context.socket, context.timeout);
  do {
    v1::GetPodsResponse page;
    const grpc::Status status = client.Call(&Stub::GetPods, request, &page);
    if (!status.ok()) return ReportFailure(status, context.socket);
    for (v1::Pod& pod : *page.mutable_pods()) all->add_pods()->Swap(&pod);
    request.set_page(page.next_page());
  } while (!request.page().empty());
  return kExitOk;
}

ExitCode RunGet(const CliContext& context, const std::string& what, const std::string& name) {
  for (const CliNoun& noun : {kPersistentVolumeNoun, kClaimNoun, kStorageClassNoun}) {
    if (noun.Means(what)) return GetStorage(context, noun, name);
  }
  for (const CliNoun& noun : kKeptNouns) {
    if (noun.Means(what)) return GetKept(context, noun, name);
  }
  v1::GetPodsRequest request;
  request.set_namespace_(context.name_space);
  request.set_name(name);
  request.set_summary(kPodNoun.Means(what) && !IsForPrograms(context.format));
  v1::GetPodsResponse response;
  if (const ExitCode code = GetAllPods(context, request, &response); code != kExitOk) return code;
  if (!name.empty() && response.pods_size() == 0) {
    return ReportNone(context, "pod", name, true);
  }
  if (kPodNoun.Means(what)) {
    PrintPods(response, context.format, NowUnixMs(), std::cout);
  } else {
    PrintVolumes(response, context.format, NowUnixMs(), std::cout);
  }
  return kExitOk;
}

ExitCode RunExplain(const CliContext& context, const std::string& name) {
  ExitCode code = kExitOk;
  const std::optional<v1::Pod> pod = GetOnePod(context, name, &code);
  if (!pod) return code;
  v1::GetSourcesResponse sources;
  code = CallAndSay(context, &Stub::GetSources, v1::GetSourcesRequest(), &sources, "");
  v1::GetStatusResponse status;
  if (code == kExitOk) {
    code = CallAndSay(context, &Stub::GetStatus, v1::GetStatusRequest(), &status, "");
  }
  if (code == kExitOk) Explain(*pod, sources, status, NowUnixMs(), std::cout);
  return code;
}

ExitCode RunWait(const CliContext& context, const std::string& pod, const std::string& condition,
                 std::chrono::milliseconds wait_timeout) {
  v1::WaitRequest request;
  *request.mutable_pod() = MakeRef(context, "Pod", pod);
  request.set_for_(condition);
  Client client(context.socket, context.timeout);
  v1::WaitResponse last;
  bool was_there = false;
  const grpc::Status status = client.Stream<v1::WaitRequest, v1::WaitResponse>(
      &Stub::Wait, request, wait_timeout, [&](const v1::WaitResponse& response) {
        last = response;
        was_there = was_there || response.has_pod();
      });
  if (status.ok() && last.met()) {
    std::cout << "pod " << pod << " " << condition << "\n";
    // After a `delete` that is no failure; after a slip in the name a script goes on too early.
    if (condition == "gone" && !was_there) {
      std::cerr << "note: no pod " << pod
                << " is known: it left before this call, or there never was one\n";
    }
    // A pod that a manifest has, and that a command keeps away, is shown all the same.
    if (condition == "gone" && last.has_pod() && last.pod().problems_size() > 0) {
      std::cerr << "note: " << last.pod().problems(0).message() << "\n";
    }
    return kExitOk;
  }
  if (status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) {
    return ReportFailure(status, context.socket);
  }
  std::cerr << "volumectl: pod " << pod << " is not " << condition << " after "
            << wait_timeout.count() << " ms\n";
  if (last.has_pod())
    Explain(last.pod(), v1::GetSourcesResponse(), v1::GetStatusResponse(), NowUnixMs(), std::cerr);
  return kExitTimeout;
}

ExitCode RunHold(const CliContext& context, const std::string& pod, int64_t pid,
                 const std::string& cgroup, bool release) {
  v1::HoldRequest request;
  *request.mutable_pod() = MakeRef(context, "Pod", pod);
  request.set_pid(pid);
  request.set_cgroup(cgroup);
  v1::HoldResponse response;
  const std::string holder = pid != 0 ? "pid " + std::to_string(pid) : "cgroup " + cgroup;
  return CallAndSay(context, release ? &Stub::ReleaseHold : &Stub::Hold, request, &response,
                    "pod " + pod + (release ? " released by " : " held by ") + holder);
}

ExitCode RunRetry(const CliContext& context, const std::string& pod, const std::string& volume) {
  v1::RetryRequest request;
  *request.mutable_pod() = MakeRef(context, "Pod", pod);
  request.set_volume(volume);
  v1::RetryResponse response;
  const ExitCode code = CallAndSay(context, &Stub::Retry, request, &response, "");
  if (code != kExitOk) return code;
  if (IsForPrograms(context.format)) {
    PrintMessage(response, context.format, std::cout);
    return kExitOk;
  }
  if (volume.empty()) std::cout << "pod " << pod << " is tried again\n";
  for (const v1::RetriedVolume& retried : response.volumes()) {
    std::cout << "  volume " << retried.name() << ": " << retried.what() << "\n";
  }
  return kExitOk;
}

ExitCode RunSources(const CliContext& context) {
  v1::GetSourcesResponse response;
  const ExitCode code =
      CallAndSay(context, &Stub::GetSources, v1::GetSourcesRequest(), &response, "");
  if (code == kExitOk) PrintSources(response, context.format, NowUnixMs(), std::cout);
  return code;
}

ExitCode RunSourceAccept(const CliContext& context, const std::string& source, bool yes,
                         bool dry_run) {
  return TakeFromSource<v1::AcceptSourceRequest, v1::AcceptSourceResponse>(
      context, &Stub::AcceptSource, source, "accepted", yes, dry_run);
}

ExitCode RunSourceForget(const CliContext& context, const std::string& source, bool yes,
                         bool dry_run) {
  return TakeFromSource<v1::ForgetSourceRequest, v1::ForgetSourceResponse>(
      context, &Stub::ForgetSource, source, "forgotten", yes, dry_run);
}

ExitCode RunRecords(const CliContext& context) {
  v1::GetRecordsResponse response;
  const ExitCode code =
      CallAndSay(context, &Stub::GetRecords, v1::GetRecordsRequest(), &response, "");
  if (code == kExitOk) PrintRecords(response.records(), context.format, NowUnixMs(), std::cout);
  return code;
}

ExitCode RunRecordsAccept(const CliContext& context, const std::string& volume) {
  v1::AcceptRecordsRequest request;
  request.set_volume(volume);
  v1::AcceptRecordsResponse response;
  const ExitCode code = CallAndSay(context, &Stub::AcceptRecords, request, &response, "");
  if (code == kExitOk) PrintAccepted(response, volume, context.format, NowUnixMs(), std::cout);
  return code;
}

ExitCode RunAcceptVolume(const CliContext& context, const std::string& name) {
  v1::AcceptVolumeRequest request;
  request.set_name(name);
  v1::AcceptVolumeResponse response;
  const ExitCode code = CallAndSay(context, &Stub::AcceptVolume, request, &response, "");
  if (code != kExitOk) return code;
  if (IsForPrograms(context.format)) {
    PrintMessage(response, context.format, std::cout);
  } else if (!response.was_other()) {
    std::cout << "pv " << name << ": " << response.path() << " is what is on record ("
              << response.now() << "); there is nothing to accept\n";
  } else {
    std::cout << "pv " << name << " has its data in " << response.path() << " (" << response.now()
              << ") from now on, and not in " << response.before() << "\n";
  }
  return kExitOk;
}

ExitCode RunOci(const CliContext& context, const std::string& pod, const std::string& container) {
  v1::GetContainerMountsRequest request;
  *request.mutable_pod() = MakeRef(context, "Pod", pod);
  request.set_container(container);
  v1::GetContainerMountsResponse response;
  if (const ExitCode code = CallAndSay(context, &Stub::GetContainerMounts, request, &response, "");
      code != kExitOk) {
    return code;
  }
  // "type" is what runtimes expect of a bind mount. Source: OCI runtime-spec, config.md (Mounts).
  YAML::Emitter json;
  json << YAML::DoubleQuoted << YAML::Flow << YAML::BeginMap << "mounts" << YAML::BeginSeq;
  for (const v1::ContainerMount& mount : response.mounts()) {
    json << YAML::BeginMap << "destination" << mount.destination() << "type"
         << "bind"
         << "source" << mount.source() << "options" << YAML::BeginSeq;
    for (const std::string& option : mount.options()) json << option;
    json << YAML::EndSeq << YAML::EndMap;
  }
  json << YAML::EndSeq;
  if (response.devices_size() > 0) {
    // Not OCI's linux.devices: that has numbers, which the link's device is asked for.
    json << "volumeDevices" << YAML::BeginSeq;
    for (const v1::ContainerDevice& device : response.devices()) {
      json << YAML::BeginMap << "path" << device.path() << "hostPath" << device.host_path()
           << "permissions" << device.permissions() << YAML::EndMap;
    }
    json << YAML::EndSeq;
  }
  json << YAML::EndMap;
  std::cout << json.c_str() << "\n";
  return kExitOk;
}

ExitCode RunVersion(const CliContext& context) {
  std::cout << "volumectl " << VOLUMED_VERSION << "\n";
  v1::GetStatusResponse response;
  const ExitCode code =
      CallAndSay(context, &Stub::GetStatus, v1::GetStatusRequest(), &response, "");
  if (code == kExitOk) std::cout << "volumed   " << response.version() << "\n";
  return code;
}

ExitCode RunStatus(const CliContext& context) {
  v1::GetStatusResponse response;
  const ExitCode code =
      CallAndSay(context, &Stub::GetStatus, v1::GetStatusRequest(), &response, "");
  if (code != kExitOk) return code;
  PrintMessage(response,
               context.format == OutputFormat::kJson ? OutputFormat::kJson : OutputFormat::kYaml,
               std::cout);
  return kExitOk;
}

}  // namespace volumed
