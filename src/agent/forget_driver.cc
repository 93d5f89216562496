#include "agent/forget_driver.h"

#include <utility>

#include "agent/driver_commands.h"
#include "base/strings.h"

namespace volumed {
namespace {

// A refusal is to be acted on line by line, but a message has an end.
constexpr size_t kMostNamed = 20;

std::string TextOfVolume(const VolumeOnRecord& volume) {
  if (volume.pod.empty()) {
    return volume.spec.str() + ", whose device is " + std::string(VolumeStateName(volume.state));
  }
  if (volume.pod_name.empty()) {
    return volume.spec.str() + " of pod " + volume.pod.str() + " (`volumectl delete pod " +
           volume.pod.str() + "`)";
  }
  return volume.spec.str() + " of pod " + volume.pod_namespace + "/" + volume.pod_name +
         " (`volumectl delete pod " + volume.pod_name +
         (volume.pod_namespace == "default" ? "" : " -n " + volume.pod_namespace) + "`)";
}

std::string TextOfVolumes(const std::vector<VolumeOnRecord>& volumes) {
  std::vector<std::string> texts;
  texts.reserve(volumes.size());
  for (const VolumeOnRecord& volume : volumes) texts.push_back(TextOfVolume(volume));
  return FirstOf(texts, kMostNamed) +
         "; without the driver pods and mounts go by `driver-absent-limit` alone, and what is "
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
    parts.push_back("volumes of it are on this node's records: " + TextOfVolumes(traces.volumes));
  }
  add("calls to it have an open outcome: ", traces.open_calls);
  add("calls are owed to it: ", traces.owed_calls,
      ": `volumectl delete driver " + traces.driver + " --force` gives them up");
  add("a call to make a volume has an open outcome: ", traces.begun);
  return Join(parts, "; ");
}

std::string WarningOfForget(const VolumeManager& manager, const std::string& driver) {
  const std::vector<std::string> volumes = manager.storage().VolumesOfDriver(driver);
  if (volumes.empty()) return "";
  return "PersistentVolumes of it are here: " + FirstOf(volumes) +
         "; until it registers again none of them can be mounted, and none has its storage deleted";
}

void ForgetAndOweNothing(const ForgettingParts& parts, DriverTraces traces,
                         std::function<void(const Result<std::vector<std::string>>&)> done) {
  if (const Status away = parts.drivers.CheckAway(traces.driver); !away.ok()) {
    return done(away.error());
  }
  traces.owed_calls.clear();
  if (const std::string else_here = TextOf(traces); !else_here.empty()) {
    return done(RefuseToForget(traces.driver, else_here));
  }
  parts.scheduler.RunBlocking([parts, driver = traces.driver, done = std::move(done)] {
    CallOptions call;
    call.deadline = parts.limit.FromNow();
    const auto given_up = GiveUpCsiDebts(parts.debts, parts.kernel, driver, call);
    parts.scheduler.Post([parts, driver, given_up, done] {
      if (!given_up.ok()) return done(given_up.error());
      parts.drivers.Forget(driver, [given_up, done](const Status& forgotten) {
        if (forgotten.ok()) return done(given_up);
        done(forgotten.error().AsMaybeApplied().With("it is not owed any more: " +
                                                     Join(*given_up, ", ")));
      });
    });
  });
}

}  // namespace volumed
