#include "agent/forget_driver.h"

#include <map>
#include <utility>

#include "agent/driver_commands.h"
#include "base/strings.h"

namespace volumed {
namespace {

// A refusal is to be acted on line by line, but a message has an end.
constexpr size_t kMostNamed = 20;

// "shop/web (`volumectl delete pod web -n shop`)".
std::string TextOfPod(const VolumeOnRecord& volume, bool is_leaving) {
  const bool has_name = !volume.pod_name.empty();
  const std::string shown =
      has_name ? volume.pod_namespace + "/" + volume.pod_name : volume.pod.str();
  if (is_leaving) return shown + ", which is being deleted";
  const bool is_default = !has_name || volume.pod_namespace == "default";
  return shown + " (`volumectl delete pod " + (has_name ? volume.pod_name : volume.pod.str()) +
         (is_default ? "" : " -n " + volume.pod_namespace) + "`)";
}

std::string TextOfVolume(const VolumeOnRecord& volume, const std::set<PodUid>& leaving) {
  if (!volume.pod.empty()) {
    return volume.spec.str() + " of pod " + TextOfPod(volume, leaving.contains(volume.pod));
  }
  return volume.spec.str() + ", whose device is " + std::string(VolumeStateName(volume.state)) +
         (volume.mounted_at.empty() ? "" : " at " + volume.mounted_at);
}

std::string TextOfVolumes(const DriverTraces& traces) {
  std::vector<std::string> texts;
  texts.reserve(traces.volumes.size());
  for (const VolumeOnRecord& volume : traces.volumes) {
    texts.push_back(TextOfVolume(volume, traces.leaving));
  }
  return FirstOf(texts, kMostNamed) +
         "; without the driver pods and mounts of whole disks go by `driver-absent-limit` alone, a "
         "device that is mounted otherwise once `umount PATH` was done by hand, and what is "
         "attached stays until it is back";
}

}  // namespace

std::string TextOf(const DriverTraces& traces) {
  std::vector<std::string> parts;
  const auto add = [&parts](const std::string& what, const std::vector<std::string>& texts,
                            const std::string& more = "") {
    if (!texts.empty()) parts.push_back(what + FirstOf(texts, kMostNamed) + more);
  };
  if (!traces.volumes.empty()) {
    parts.push_back("volumes of it are on this node's records: " + TextOfVolumes(traces));
  }
  const std::string force =
      ": `volumectl delete driver " + traces.driver + " --force` gives them up" +
      (traces.volumes.empty() && traces.begun.empty() ? "" : " once there is nothing else of it");
  add("calls to it have an open outcome: ", traces.open_calls, force);
  add("calls are owed to it: ", traces.owed_calls, force);
  add("a call to make a volume has an open outcome: ", traces.begun);
  return Join(parts, "; ");
}

std::string WarningOfForget(const VolumeManager& manager, const std::string& driver) {
  const std::vector<std::string> volumes = manager.storage().VolumesOfDriver(driver);
  if (volumes.empty()) return "";
  return "PersistentVolumes of it are here: " + FirstOf(volumes) +
         "; until it registers again none of them can be mounted, and none has its storage deleted";
}

std::string TextOf(const GivenUp& given_up) {
  std::vector<std::string> parts;
  if (!given_up.owed_calls.empty()) {
    parts.push_back("it is not owed any more, and what it does beside an unmount is not done: " +
                    Join(given_up.owed_calls, ", "));
  }
  if (!given_up.open_calls.empty()) {
    parts.push_back(
        "nobody will know whether these calls had their effect, and what they made may "
        "be left in its storage: " +
        Join(given_up.open_calls, ", "));
  }
  return Join(parts, "; ");
}

namespace {

// What is mounted there may be what the call has made, and the node still has it.
Status CheckNothingIsMounted(Kernel& kernel, const std::map<std::string, std::string>& paths,
                             const CallOptions& call) {
  for (const auto& [path, open_call] : paths) {
    ASSIGN_OR_RETURN(const MountListing there, kernel.Call(ListMounts{.below = path}, call));
    if (there.mounts.empty()) continue;
    return Error::NotApplied(Code::kFailedPrecondition,
                             open_call + " has an open outcome, and " + there.mounts.back().source +
                                 " is mounted at " + there.mounts.back().mount_point +
                                 ": unmount it first");
  }
  return OkStatus();
}

// Blocks: for the mount table and the store.
Result<GivenUp> GiveUpCalls(const ForgettingParts& parts, const std::string& driver) {
  CallOptions call;
  call.deadline = parts.limit.FromNow();
  GivenUp given_up;
  ASSIGN_OR_RETURN(const auto paths, parts.commands.PathsToGiveUp(driver));
  RETURN_IF_ERROR(CheckNothingIsMounted(parts.kernel, paths, call));
  ASSIGN_OR_RETURN(given_up.owed_calls, GiveUpCsiDebts(parts.debts, parts.kernel, driver, call));
  Result<std::vector<std::string>> open = parts.commands.GiveUp(driver);
  if (!open.ok()) {
    return given_up.owed_calls.empty() ? open.error() : open.error().AsMaybeApplied();
  }
  given_up.open_calls = *std::move(open);
  return given_up;
}

}  // namespace

void ForgetAndOweNothing(const ForgettingParts& parts, DriverTraces traces,
                         std::function<void(const Result<GivenUp>&)> done) {
  traces.owed_calls.clear();
  traces.open_calls.clear();
  const std::string else_here = TextOf(traces);
  if (const Status away = parts.drivers.CheckAway(traces.driver); !away.ok()) {
    const bool is_there = away.error().code() == Code::kFailedPrecondition && !else_here.empty();
    return done(is_there ? Error::NotApplied(Code::kFailedPrecondition,
                                             away.error().message() + "; " + else_here)
                         : away.error());
  }
  if (!else_here.empty()) return done(RefuseToForget(traces.driver, else_here));
  parts.scheduler.RunBlocking([parts, driver = traces.driver, done = std::move(done)] {
    const Result<GivenUp> given_up = GiveUpCalls(parts, driver);
    parts.scheduler.Post([parts, driver, given_up, done] {
      if (!given_up.ok()) return done(given_up.error());
      parts.drivers.Forget(driver, [given_up, done](const Status& forgotten) {
        if (forgotten.ok()) return done(given_up);
        done(forgotten.error().AsMaybeApplied().With(TextOf(*given_up)));
      });
    });
  });
}

}  // namespace volumed
