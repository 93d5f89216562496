// The verbs about objects of any kind: apply, describe, get. (delete.cc has delete.)
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "cli/calls.h"
#include "cli/describe.h"
#include "cli/driver_tables.h"
#include "cli/object_kinds.h"
#include "cli/object_tables.h"
#include "cli/snapshot_tables.h"
#include "cli/storage_tables.h"

namespace volumed {
namespace {

// ---- apply --------------------------------------------------------------------------------------

struct ApplyWords {
  std::vector<std::string> files;
  bool replace = false;
};

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

ExitCode RunApply(const CliContext& context, const ApplyWords& words) {
  ExitCode worst = kExitOk;
  for (const std::string& file : words.files) {
    const ExitCode code = ApplyFile(context, file, words.replace);
    if (code == kExitUnreachable || code == kExitForbidden) return code;
    if (code != kExitOk) worst = code;
  }
  return worst;
}

// ---- get ----------------------------------------------------------------------------------------

struct GetWords {
  std::string what, name;
};

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

// Of a kind that the agent only keeps.
ExitCode GetKept(const CliContext& context, const CliNoun& noun, const std::string& name) {
  v1::ListObjectsRequest request;
  request.set_kind(std::string(noun.singular));
  request.set_namespace_(context.name_space);
  request.set_name(name);
  v1::ListObjectsResponse response;
  if (const ExitCode code = CallAndSay(context, &Stub::ListObjects, request, &response, "");
      code != kExitOk) {
    return code;
  }
  if (!name.empty() && response.listed().empty()) {
    const bool of_namespace = noun.plural == kSecretNoun.plural ||
                              noun.plural == kConfigMapNoun.plural ||
                              noun.plural == kVolumeSnapshotNoun.plural;
    return ReportNone(context, noun.singular, name, of_namespace);
  }
  response.clear_objects();
  PrintObjects(response, noun, context.format, context.name_space.empty(), NowUnixMs(), std::cout);
  return kExitOk;
}

// The CSI driver of that name, or all; and the sockets of drivers that are not registered.
ExitCode FetchDrivers(const CliContext& context, const std::string& name,
                      v1::GetDriversResponse* response) {
  v1::GetDriversRequest request;
  request.set_name(name);
  return CallAndSay(context, &Stub::GetDrivers, request, response, "");
}

ExitCode GetDrivers(const CliContext& context, const std::string& name) {
  v1::GetDriversResponse response;
  const ExitCode code = FetchDrivers(context, name, &response);
  if (code == kExitOk) PrintDrivers(response, context.format, NowUnixMs(), std::cout);
  return code;
}

ExitCode RunGet(const CliContext& context, const GetWords& words) {
  const auto& [what, name] = words;
  if (kDriverNoun.Means(what)) return GetDrivers(context, name);
  if (kPoolNoun.Means(what)) return GetPools(context, name);
  if (kPoolVolumeNoun.Means(what)) return GetPoolVolumes(context, name);
  if (kSnapshotNoun.Means(what)) return GetSnapshots(context, name, "");
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

// "" for a word that `get` knows.
std::string CheckNoun(const std::string& word) {
  std::vector<std::string_view> names;
  for (const CliNoun& noun : kGetNouns) {
    if (noun.Means(word)) return "";
    names.push_back(noun.plural);
  }
  return "'" + word + "' is none of " + Join(names, ", ");
}

// ---- describe -----------------------------------------------------------------------------------

struct DescribeWords {
  std::string kind, name;

  void Check() const {
    if (name.empty() && kind.find('/') == std::string::npos) throw CLI::RequiredError("name");
  }
};

// POD/VOLUME in its two halves; without a slash the volume is empty, which the agent refuses.
void SplitVolumeName(const std::string& name, v1::DescribeRequest* request) {
  const size_t slash = name.find('/');
  request->mutable_object()->set_name(name.substr(0, slash));
  if (slash != std::string::npos) request->set_volume(name.substr(slash + 1));
}

bool IsVolume(const std::string& kind) { return kind == "volume" || kind == "volumes"; }

ExitCode DescribeDriver(const CliContext& context, const std::string& name) {
  v1::GetDriversResponse response;
  const ExitCode code = FetchDrivers(context, name, &response);
  if (code != kExitOk) return code;
  if (IsForPrograms(context.format)) {
    PrintMessage(response, context.format, std::cout);
  } else {
    PrintDriverDescription(response, NowUnixMs(), std::cout);
  }
  return kExitOk;
}

ExitCode DescribeSnapshot(const CliContext& context, const std::string& id) {
  v1::GetSnapshotsResponse response;
  const ExitCode code = FetchSnapshots(context, id, "", &response);
  if (code != kExitOk) return code;
  if (IsForPrograms(context.format)) {
    PrintMessage(response, context.format, std::cout);
  } else {
    PrintSnapshotDescription(response.snapshots(0), NowUnixMs(), std::cout);
  }
  return kExitOk;
}

// KIND/NAME as kubectl takes it, in its two halves.
DescribeWords InTwoWords(const DescribeWords& words) {
  if (!words.name.empty()) return words;
  const size_t slash = words.kind.find('/');
  return {words.kind.substr(0, slash), words.kind.substr(slash + 1)};
}

ExitCode RunDescribe(const CliContext& context, const DescribeWords& words) {
  const auto [kind, name] = InTwoWords(words);
  if (kDriverNoun.Means(kind)) return DescribeDriver(context, name);
  if (kSnapshotNoun.Means(kind)) return DescribeSnapshot(context, name);
  v1::DescribeRequest request;
  request.mutable_object()->set_kind(kind);
  request.mutable_object()->set_namespace_(context.name_space);
  request.mutable_object()->set_name(name);
  if (IsVolume(kind)) SplitVolumeName(name, &request);
  v1::DescribeResponse response;
  Client client(context.socket, context.timeout);
  const grpc::Status status = client.Call(&Stub::Describe, request, &response);
  if (!status.ok()) {
    const ExitCode code = ReportFailure(status, context.socket);
    if (code == kExitUsage) {
      std::cerr << "KIND is one of " << KindNames(false)
                << "; pools and their volumes are shown by `get`\n";
    }
    return code;
  }
  if (IsForPrograms(context.format)) {
    PrintMessage(response, context.format, std::cout);
  } else {
    PrintDescription(response, NowUnixMs(), std::cout);
  }
  return kExitOk;
}

}  // namespace

void AddObjectVerbs(const Verbs& verbs) {
  verbs.Add<ApplyWords>(
      "apply", "give objects to the agent",
      [](CLI::App& verb, ApplyWords& words) {
        verb.add_option("-f,--filename", words.files, "manifest files; - is standard input")
            ->required()
            ->type_name("FILE");
        verb.add_flag("--replace", words.replace,
                      "a pod with other volumes takes the place of the pod that has its name, once "
                      "the consumers of that are gone; its emptyDirs on disk go with it");
      },
      RunApply);
  AddDeleteVerb(verbs);
  verbs.Add<DescribeWords>(
      "describe", "show all that is known of one object",
      [](CLI::App& verb, DescribeWords& words) {
        verb.add_option("kind", words.kind, KindNames(false))->required()->type_name("KIND");
        verb.add_option("name", words.name,
                        "name; a pod's uid; for a volume POD/VOLUME; or KIND/NAME in one word")
            ->type_name("NAME");
      },
      RunDescribe);
  verbs.Add<GetWords>(
      "get", "show what there is of a kind",
      [](CLI::App& verb, GetWords& words) {
        verb.add_option("what", words.what, NounNames())
            ->required()
            ->check(CheckNoun)
            ->type_name("NOUN");
        verb.add_option("name", words.name, "one of them; for volumes their pod")
            ->type_name("NAME");
      },
      RunGet);
}

}  // namespace volumed
