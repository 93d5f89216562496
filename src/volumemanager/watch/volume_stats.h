// VolumeStats: measures the volumes of the node in the background, so that a caller that shows or
// scrapes the figures reads the last measurement, with its age, and never waits for a filesystem.
// Source: kubernetes pkg/kubelet/server/stats/volume_stat_calculator.go@v1.36.2 (period, jitter).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/alive_guard.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "metrics/metrics_provider.h"
#include "operation/volume_operations.h"
#include "pluginmgr/volume_plugin_mgr.h"

namespace volumed {

struct VolumeStatsSettings {
  // Each volume is measured again after one to two periods. Zero or less: never.
  Duration period = std::chrono::seconds(60);
  // A measurement without an answer is given up after this.
  Duration deadline = std::chrono::seconds(30);
  // How many requests for figures may run at a time; each takes a worker.
  int max_running = 4;
  // How many of these may be of volumes whose last measurement had no answer, so that they cannot
  // use up all.
  int max_running_suspect = 1;
  uint64_t jitter_seed = 1;
};

// The last measurement of a volume, and how the last try went.
struct VolumeStatsEntry {
  Metrics metrics;  // of the last success; time_unix_ms is its time
  bool measured = false;
  std::optional<Error> last_error;  // set if the last try failed
  bool running = false;
  bool supported = true;  // false: the plugin has no metrics
};

// Threads: the control thread; measurements run as blocking tasks, each with a deadline. Blocks:
// never. Errors: none; a failure is in VolumeStatsEntry::last_error, and the volume is measured
// again in its turn. A volume whose measurement did not come back, or took long, is measured by
// itself until one succeeds in a short time.
class VolumeStats {
 public:
  struct Parts {  // all members outlive this object
    Scheduler& scheduler;
    const VolumePluginMgr& plugins;
    const KubeletPaths& paths;
    Logger& log;
    // With a kernel, many volumes of the agent's own filesystem are measured by one request. Null:
    // each volume by itself.
    Kernel* kernel = nullptr;
  };
  struct Hooks {
    // Called after every measurement that succeeded. May be empty.
    std::function<void(const PodVolumeKey&, const VolumeSpec&, const Metrics&)> measured;
    // Whether volumes of this fault domain (VolumePlugin::FaultDomain()) may be measured beside
    // each other. Else they are one at a time, as those of a driver are that has not answered yet,
    // or not the last time. Empty: they may.
    std::function<bool(const std::string& domain)> may_ask = {};
    // A volume has been found abnormal, and was not before, or for another reason. May be empty.
    std::function<void(const PodVolumeKey&, const Metrics&)> abnormal = {};
  };

  VolumeStats(Parts parts, VolumeStatsSettings settings, Hooks hooks);
  ~VolumeStats();
  VolumeStats(const VolumeStats&) = delete;
  VolumeStats& operator=(const VolumeStats&) = delete;

  // Who writes the content of a volume. Content that only the agent writes changes only when it is
  // set up again; in between it is measured less often.
  enum class Writer : uint8_t { kPod, kAgent };
  // Begins to measure a volume that is set up. Has no effect for a volume that is already known,
  // except that one which the agent writes was written again, and is measured soon. `spec` and
  // `pod` are those of the first call. Has no effect if the period is not positive.
  void Track(const PodVolumeKey& key, const VolumeSpec& spec, PodPtr pod,
             Writer writer = Writer::kPod);
  // The volume is not on the node any more. A measurement that runs is not shown; a volume of the
  // same name is not measured before it has ended.
  void Forget(const PodVolumeKey& key);

  // Volumes of this fault domain that were found to have no metrics may have some now, as after
  // their driver has come in another version: they are measured soon.
  void AskAgain(const std::string& domain);
  // What was measured is not true any more, as after the volume was made larger: it is measured as
  // soon as there is room. Has no effect for a volume that is not tracked, or has no metrics.
  void MeasureNow(const PodVolumeKey& key);

  // Both hold from now on and are positive. A new period holds at once: each volume is measured
  // within it.
  void SetTimes(Duration period, Duration deadline);

  // Null if the volume is not tracked. The pointer is valid until the next change.
  const VolumeStatsEntry* Find(const PodVolumeKey& key) const;
  size_t size() const { return volumes_.size(); }
  int running() const { return running_; }

 private:
  struct Volume {
    VolumeSpec spec;
    PodPtr pod;
    uint64_t incarnation = 0;  // tells late answers for an earlier volume apart
    std::string domain = {};   // "" for the agent's own filesystem
    bool suspect = false;
    bool may_share = false;  // may be measured together with others
    Writer writer = Writer::kPod;
    bool written_again = false;  // it was written while it was being measured
    bool is_outdated = false;    // what is being measured is not true any more
    // A request together with others had no answer, or its own took long: it must not hold up
    // others.
    bool alone = false;
    TimePoint due = {};
    VolumeStatsEntry entry = {};
    bool Shares() const { return may_share && !alone; }
  };
  using Queue = std::set<std::pair<TimePoint, PodVolumeKey>>;

  void Schedule(const PodVolumeKey& key, Volume& volume, Duration delay);
  void ArmTimer();
  void StartDue();
  struct Shared;  // what one request measures
  Result<std::shared_ptr<MetricsProvider>> MeasurerOf(const Volume& volume) const;
  std::string DomainOf(const VolumeSpec& spec) const;
  // Whether a volume of this domain has to wait for another one's measurement.
  bool IsFull(const std::string& domain) const;
  bool StartOne(const PodVolumeKey& key, Volume& volume);
  // Measures the volumes that are due and share requests, by one request.
  void StartShared();
  void Begin(const PodVolumeKey& key, Volume& volume);
  // What counts against the limits while a measurement runs.
  struct RunningAs {
    bool suspect = false;
    bool alone = false;
    std::string domain = {};
  };
  void Count(const RunningAs& as, int change);
  void Finished(const PodVolumeKey& key, uint64_t incarnation, const RunningAs& as,
                Result<Metrics> result, Duration took);
  void SharedFinished(const Shared& shared, const std::vector<Result<Metrics>>& results,
                      bool answered);
  void Ended(const PodVolumeKey& key, uint64_t incarnation, Result<Metrics> result, bool alone);
  void Took(Volume& volume, Metrics metrics);
  void WrittenAgain(const PodVolumeKey& key, Volume& volume);
  // What happens again and again must not put off what is due.
  void ScheduleNoLater(const PodVolumeKey& key, Volume& volume, Duration delay);
  // Of those that share requests: the pod's place in a period.
  Duration Place(const PodVolumeKey& key) const;
  Duration UntilFirst(const PodVolumeKey& key, const Volume& volume);
  Duration UntilNext(const PodVolumeKey& key, const Volume& volume, bool is_second, bool rests);
  Duration Jittered(double from, double to);

  const Parts parts_;
  VolumeStatsSettings settings_;
  const Hooks hooks_;
  std::mt19937_64 random_;
  std::map<PodVolumeKey, Volume> volumes_;
  Queue queue_;
  std::set<PodVolumeKey> in_flight_;  // also of forgotten volumes, until their task ends
  TimerId timer_ = 0;
  TimePoint timer_due_;
  uint64_t next_incarnation_ = 1;
  int running_ = 0;
  int running_suspect_ = 0;
  int running_alone_ = 0;  // no more than half of all: requests of many go on beside them
  std::map<std::string, int> running_of_;  // by domain, those that run
  std::set<std::string> answering_;        // domains of drivers whose last measurement came back
  AliveGuard alive_;
};

}  // namespace volumed
