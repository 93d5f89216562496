// The verbs about one pod, and about what happens to pods: explain, wait, hold, retry, events, oci.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/calls.h"
#include "cli/explain.h"

namespace volumed {
namespace {

// ---- explain ------------------------------------------------------------------------------------

struct PodWords {
  std::string pod;
};

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

ExitCode RunExplain(const CliContext& context, const PodWords& words) {
  ExitCode code = kExitOk;
  const std::optional<v1::Pod> pod = GetOnePod(context, words.pod, &code);
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

// ---- wait ---------------------------------------------------------------------------------------

struct WaitWords {
  std::string pod;
  bool all = false;
  std::string condition = "ready";
  double timeout_s = 30;  // kubectl's default

  void Check() const {
    if (pod.empty() && !all) throw CLI::RequiredError("pod");
    if (all && condition == "create") throw CLI::ExcludesError("--all", "--for create");
  }
};

using SteadyClock = std::chrono::steady_clock;

// What the pod is once the condition is met.
std::string StateWord(const WaitWords& words) {
  return words.condition == "create" ? "created" : words.condition;
}

// The wait for one pod, or for one of all.
struct PodWait {
  v1::ObjectRef pod;
  std::string shown;
  const WaitWords& words;
  SteadyClock::time_point until;
  bool was_there = false;  // it was listed before
};

// The stream tells of changes of the pod alone. Why it waits may be another thing by now, as the
// state of a driver is.
v1::Pod AsOfNow(const CliContext& context, const v1::Pod& last) {
  v1::GetPodsRequest request;
  request.set_namespace_(last.namespace_());
  request.set_name(last.name());
  v1::GetPodsResponse response;
  Client client(context.socket, context.timeout);
  if (!client.Call(&Stub::GetPods, request, &response).ok()) return last;
  for (const v1::Pod& pod : response.pods()) {
    if (pod.uid() == last.uid()) return pod;
  }
  return last;
}

ExitCode WaitFor(const CliContext& context, const PodWait& wait) {
  const auto& [pod, shown, words, until, listed] = wait;
  v1::WaitRequest request;
  *request.mutable_pod() = pod;
  request.set_for_(words.condition);
  Client client(context.socket, context.timeout);
  v1::WaitResponse last;
  bool was_there = listed;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - SteadyClock::now());
  const grpc::Status status = client.Stream<v1::WaitRequest, v1::WaitResponse>(
      &Stub::Wait, request, std::max(left, std::chrono::milliseconds(1)),
      [&](const v1::WaitResponse& response) {
        last = response;
        was_there = was_there || response.has_pod();
      });
  if (status.ok() && last.met()) {
    std::cout << "pod " << shown << " " << StateWord(words) << "\n";
    // After a slip in the name a script goes on too early.
    if (words.condition == "gone" && !was_there && !last.has_left()) {
      std::cerr << "note: no pod " << shown
                << " is known: there was none since the agent's start\n";
    }
    // A pod that a manifest has, and that a command keeps away, is shown all the same.
    if (words.condition == "gone" && last.has_pod() && last.pod().problems_size() > 0) {
      std::cerr << "note: " << last.pod().problems(0).message() << "\n";
    }
    return kExitOk;
  }
  if (listed && status.error_code() == grpc::StatusCode::NOT_FOUND) {
    std::cerr << "note: pod " << shown << " has left\n";
    return kExitNotFound;
  }
  if (status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) {
    return ReportFailure(status, context.socket);
  }
  std::cerr << "volumectl: pod " << shown << " is not " << StateWord(words) << " after "
            << MillisecondsOf(words.timeout_s).count() << " ms\n";
  if (last.has_pod()) {
    Explain(AsOfNow(context, last.pod()), v1::GetSourcesResponse(), v1::GetStatusResponse(),
            NowUnixMs(), std::cerr);
  }
  return kExitTimeout;
}

v1::GetPodsRequest RequestForNames(const CliContext& context) {
  v1::GetPodsRequest request;
  request.set_namespace_(context.name_space);
  request.set_summary(true);
  return request;
}

// The pods that there are now, or those of -n.
ExitCode ListPods(const CliContext& context, v1::GetPodsResponse& all) {
  return GetAllPods(context, RequestForNames(context), &all);
}

// The same; an agent that is starting, and does not know its pods yet, is asked again until then.
ExitCode ListPodsOnceKnown(const CliContext& context, SteadyClock::time_point until,
                           v1::GetPodsResponse& all) {
  constexpr std::chrono::milliseconds kAskAgain(100);
  for (;;) {
    all.Clear();
    const grpc::Status status = FetchAllPods(context, RequestForNames(context), &all);
    if (status.ok()) return kExitOk;
    const bool again = SaysNotYet(status);
    if (again && SteadyClock::now() < until) {
      std::this_thread::sleep_until(std::min(until, SteadyClock::now() + kAskAgain));
      continue;
    }
    const ExitCode code = ReportFailure(status, context.socket);
    return again ? kExitTimeout : code;
  }
}

void SayThereIsNoPod(const CliContext& context) {
  std::cout << "there is no pod";
  if (!context.name_space.empty()) std::cout << " in namespace " << context.name_space;
  std::cout << "\n";
}

// One after the other, all until the same moment; each that is not in time is named. One that
// leaves meanwhile is named too, and keeps nobody waiting.
ExitCode WaitForAll(const CliContext& context, const WaitWords& words,
                    SteadyClock::time_point until) {
  v1::GetPodsResponse all;
  if (const ExitCode code = ListPodsOnceKnown(context, until, all); code != kExitOk) return code;
  if (all.pods().empty()) SayThereIsNoPod(context);
  ExitCode end = kExitOk;
  for (const v1::Pod& pod : all.pods()) {
    PodWait wait{v1::ObjectRef(), pod.namespace_() + "/" + pod.name(), words, until, true};
    wait.pod.set_kind("Pod");
    wait.pod.set_uid(pod.uid());
    const ExitCode code = WaitFor(context, wait);
    if (code == kExitTimeout) end = code;
    if (code != kExitOk && code != kExitTimeout && code != kExitNotFound) return code;
  }
  return end;
}

ExitCode RunWait(const CliContext& context, const WaitWords& words) {
  const SteadyClock::time_point until = SteadyClock::now() + MillisecondsOf(words.timeout_s);
  if (words.all) return WaitForAll(context, words, until);
  return WaitFor(context, {MakeRef(context, "Pod", words.pod), words.pod, words, until});
}

// ---- hold ---------------------------------------------------------------------------------------

struct HoldWords {
  std::string pod;
  int64_t pid = 0;
  std::string cgroup;
  bool release = false;

  void Check() const {
    if (pid != 0 || !cgroup.empty()) return;
    throw CLI::RequiredError(release ? "one of --pid and --cgroup, whose hold ends,"
                                     : "one of --pid and --cgroup");
  }
};

ExitCode RunHold(const CliContext& context, const HoldWords& words) {
  const auto& [pod, pid, cgroup, release] = words;
  v1::HoldRequest request;
  *request.mutable_pod() = MakeRef(context, "Pod", pod);
  request.set_pid(pid);
  request.set_cgroup(cgroup);
  v1::HoldResponse response;
  const std::string holder = pid != 0 ? "pid " + std::to_string(pid) : "cgroup " + cgroup;
  return CallAndSay(context, release ? &Stub::ReleaseHold : &Stub::Hold, request, &response,
                    "pod " + pod + (release ? " released by " : " held by ") + holder);
}

// ---- retry --------------------------------------------------------------------------------------

struct RetryWords {
  std::string pod, volume, driver;
  bool all = false;

  void Check() const {
    if (pod.empty() && driver.empty() && !all) throw CLI::RequiredError("pod");
  }
};

ExitCode RetryAll(const CliContext& context) {
  v1::RetryAllRequest request;
  request.set_namespace_(context.name_space);
  v1::RetryAllResponse response;
  const ExitCode code = CallAndSay(context, &Stub::RetryAll, request, &response, "");
  if (code != kExitOk) return code;
  if (IsForPrograms(context.format)) {
    PrintMessage(response, context.format, std::cout);
    return kExitOk;
  }
  for (const v1::ObjectRef& pod : response.pods()) {
    std::cout << "pod " << pod.namespace_() << "/" << pod.name() << " is tried again\n";
  }
  if (!response.pods().empty()) return kExitOk;
  v1::GetPodsResponse all;
  if (const ExitCode listed = ListPods(context, all); listed != kExitOk) return listed;
  if (all.pods().empty()) {
    SayThereIsNoPod(context);
  } else {
    std::cout << "every pod is ready\n";
  }
  return kExitOk;
}

ExitCode RetryDriver(const CliContext& context, const std::string& driver) {
  v1::RetryDriverRequest request;
  request.set_driver(driver);
  v1::RetryDriverResponse response;
  const ExitCode code = CallAndSay(context, &Stub::RetryDriver, request, &response, "");
  if (code != kExitOk) return code;
  if (IsForPrograms(context.format)) {
    PrintMessage(response, context.format, std::cout);
    return kExitOk;
  }
  std::cout << "volumes of CSI driver " << driver << " are tried again\n";
  if (!response.reason().empty()) std::cout << "  they wait: " << response.reason() << "\n";
  return kExitOk;
}

// Nothing is tried anew, as a volume's operation runs.
bool IsUnderWay(const v1::RetryResponse& response) {
  const auto any = [&response](const char* what) {
    return std::any_of(response.volumes().begin(), response.volumes().end(),
                       [what](const v1::RetriedVolume& volume) { return volume.what() == what; });
  };
  return any("running already") && !any("tried now");
}

ExitCode RunRetry(const CliContext& context, const RetryWords& words) {
  if (words.all) return RetryAll(context);
  if (!words.driver.empty()) return RetryDriver(context, words.driver);
  const std::string& pod = words.pod;
  const std::string& volume = words.volume;
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
  if (volume.empty()) {
    std::cout << "pod " << pod
              << (IsUnderWay(response) ? ": what runs goes on\n" : " is tried again\n");
  }
  for (const v1::RetriedVolume& retried : response.volumes()) {
    std::cout << "  volume " << retried.name() << ": " << retried.what() << "\n";
  }
  return kExitOk;
}

// ---- events -------------------------------------------------------------------------------------

struct EventsWords {
  std::string object;
  bool watch = false;
};

// "web" is a pod; with a slash in it, the kind stands before the name.
v1::ObjectRef ParseObjectWord(const CliContext& context, const std::string& word) {
  v1::ObjectRef ref;
  ref.set_namespace_(context.name_space);
  const size_t slash = word.find('/');
  if (slash == std::string::npos) {
    if (!word.empty()) ref.set_kind("Pod");
    ref.set_name(word);
    return ref;
  }
  ref.set_kind(word.substr(0, slash));
  const std::string rest = word.substr(slash + 1);
  const size_t second = rest.find('/');
  if (second != std::string::npos) ref.set_namespace_(rest.substr(0, second));
  ref.set_name(second == std::string::npos ? rest : rest.substr(second + 1));
  return ref;
}

std::vector<std::string> EventRow(const v1::ObjectEvent& logged, int64_t now) {
  const v1::ObjectRef& object = logged.object();
  const v1::Event& event = logged.event();
  const std::string name_space = object.namespace_().empty() ? "" : object.namespace_() + "/";
  return {FormatAge(event.last_unix_ms(), now),
          event.type(),
          event.reason(),
          std::to_string(event.count()),
          object.kind() + " " + name_space + object.name(),
          event.message()};
}

void PrintEvents(const v1::WatchEventsResponse& answer, OutputFormat format, bool watch) {
  if (IsForPrograms(format)) {
    PrintMessage(answer, format, std::cout);
    std::cout << std::flush;
    return;
  }
  std::vector<std::vector<std::string>> rows;
  // What is followed has no heading: each answer would repeat it.
  if (!watch) rows.push_back({"LAST SEEN", "TYPE", "REASON", "COUNT", "OBJECT", "MESSAGE"});
  for (const v1::ObjectEvent& logged : answer.events()) {
    rows.push_back(EventRow(logged, NowUnixMs()));
  }
  PrintTable(rows, std::cout);
  if (answer.not_shown() > 0) std::cout << "and " << answer.not_shown() << " older ones\n";
  std::cout << std::flush;
}

ExitCode RunEvents(const CliContext& context, const EventsWords& words) {
  const bool watch = words.watch;
  v1::WatchEventsRequest request;
  *request.mutable_object() = ParseObjectWord(context, words.object);
  request.set_follow(watch);
  Client client(context.socket, context.timeout);
  const grpc::Status status = client.Stream<v1::WatchEventsRequest, v1::WatchEventsResponse>(
      &Stub::WatchEvents, request, watch ? std::nullopt : std::optional(context.timeout),
      [&](const v1::WatchEventsResponse& answer) { PrintEvents(answer, context.format, watch); });
  return status.ok() ? kExitOk : ReportFailure(status, context.socket);
}

// ---- oci ----------------------------------------------------------------------------------------

struct OciWords {
  std::string pod, container;
};

ExitCode RunOci(const CliContext& context, const OciWords& words) {
  v1::GetContainerMountsRequest request;
  *request.mutable_pod() = MakeRef(context, "Pod", words.pod);
  request.set_container(words.container);
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

}  // namespace

void AddPodVerbs(const Verbs& verbs) {
  verbs.Add<PodWords>(
      "explain", "say why a pod is not ready",
      [](CLI::App& verb, PodWords& words) { AddPodPlace(verb, words.pod); }, RunExplain);
  verbs.Add<WaitWords>(
      "wait", "until a pod, or every pod, is ready or gone, or a pod is there",
      [](CLI::App& verb, WaitWords& words) {
        CLI::Option* pod = AddPodPlace(verb, words.pod)->required(false);
        verb.add_flag("--all", words.all, "every pod that there is now, or those of -n")
            ->excludes(pod);
        verb.add_option("--for", words.condition,
                        "ready, gone, or create (until there is such a pod)")
            ->check(CLI::IsMember({"ready", "gone", "create"}));
        AddSeconds(verb, "--timeout", words.timeout_s, "seconds");
      },
      RunWait);
  verbs.Add<HoldWords>(
      "hold", "keep a pod's mounts while a process lives: one of --pid and --cgroup is needed",
      [](CLI::App& verb, HoldWords& words) {
        AddPodPlace(verb, words.pod);
        CLI::Option* pid =
            verb.add_option("--pid", words.pid, "a process")->check(CLI::PositiveNumber);
        verb.add_option("--cgroup", words.cgroup, "a cgroup, until it is empty")->excludes(pid);
        verb.add_flag("--release", words.release, "end the hold of this --pid or --cgroup");
      },
      RunHold);
  verbs.Add<RetryWords>(
      "retry", "forget a back-off and try now",
      [](CLI::App& verb, RetryWords& words) {
        CLI::Option* pod = AddPodPlace(verb, words.pod)->required(false);
        verb.add_option("volume", words.volume, "one volume; else all, and the pod itself")
            ->type_name("VOLUME");
        CLI::Option* all =
            verb.add_flag("--all", words.all, "every pod that is not ready, or those of -n")
                ->excludes(pod);
        verb.add_option("--driver", words.driver,
                        "what waits for this CSI driver; it is dialled if it is not there")
            ->type_name("DRIVER")
            ->excludes(pod)
            ->excludes(all);
      },
      RunRetry);
  verbs.Add<EventsWords>(
      "events", "what happened, as kubelet would tell it",
      [](CLI::App& verb, EventsWords& words) {
        verb.add_option("object", words.object,
                        "a pod's name or uid, pv/NAME, pvc/NAME, pvc/NAMESPACE/NAME or node/NAME; "
                        "else all")
            ->type_name("OBJECT");
        verb.add_flag("-w,--watch", words.watch, "go on with each event that comes");
      },
      RunEvents);
  verbs.Add<OciWords>(
      "oci", "a container's mounts, as an OCI configuration has them",
      [](CLI::App& verb, OciWords& words) {
        AddPodPlace(verb, words.pod);
        verb.add_option("container", words.container, "its name")->required();
      },
      RunOci);
}

}  // namespace volumed
