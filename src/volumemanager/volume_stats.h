// VolumeStats: measures the volumes of the node in the background, so that whoever shows or scrapes
// the figures reads what was measured last, with its age, and never waits for a filesystem.
// Source: kubernetes pkg/kubelet/server/stats/volume_stat_calculator.go@v1.36.2 (period, jitter).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "metrics/metrics_provider.h"
#include "operation/volume_operations.h"
#include "pluginmgr/volume_plugin_mgr.h"

namespace volumed {

struct VolumeStatsSettings {
  // Each volume is measured once in between one and two periods. Zero or less: never.
  Duration period = std::chrono::seconds(60);
  // After which a measurement is given up.
  Duration deadline = std::chrono::seconds(30);
  int max_running = 4;
  // Of these, for volumes whose last measurement did not answer: they cannot use up the others.
  int max_running_suspect = 1;
  uint64_t jitter_seed = 1;
  // Measures many volumes of the agent's own filesystem by one request. Null: each by itself.
  Kernel* kernel = nullptr;
  // Told of every measurement that succeeded. Optional.
  std::function<void(const PodVolumeKey&, const VolumeSpec&, const Metrics&)> measured;
};

struct VolumeStatsEntry {
  Metrics metrics;  // of the last success; time_unix_ms tells its age
  bool measured = false;
  std::optional<Error> last_error;  // of the last try, when it failed
  bool running = false;
  bool supported = true;  // false: the plugin has no metrics
};

// Threads: the control thread; measurements run as blocking tasks. Blocks: never.
class VolumeStats {
 public:
  // Everything outlives this.
  VolumeStats(Scheduler& scheduler, const VolumePluginMgr& plugins, const KubeletPaths& paths,
              Logger& log, VolumeStatsSettings settings);
  ~VolumeStats();
  VolumeStats(const VolumeStats&) = delete;
  VolumeStats& operator=(const VolumeStats&) = delete;

  // Who puts into a volume what is in it. What the agent alone writes changes when it is set up
  // anew, and only then: in between it is measured more seldom.
  enum class Writer : uint8_t { kPod, kAgent };
  // Begins to measure a volume that is set up. One that is known already stays as it is; if the
  // agent writes it, it was written again, and is measured soon.
  void Track(const PodVolumeKey& key, const VolumeSpec& spec, PodPtr pod,
             Writer writer = Writer::kPod);
  void Forget(const PodVolumeKey& key);

  // From now on, both positive. A new period counts at once: each volume is measured within it.
  void SetTimes(Duration period, Duration deadline);

  // Null when it is not tracked. Valid until the next change.
  const VolumeStatsEntry* Find(const PodVolumeKey& key) const;
  size_t size() const { return volumes_.size(); }
  int running() const { return running_; }

 private:
  struct Volume {
    VolumeSpec spec;
    PodPtr pod;
    uint64_t incarnation = 0;  // tells a late answer that it is not for this one
    bool suspect = false;
    bool may_share = false;  // a request with others
    Writer writer = Writer::kPod;
    bool written_again = false;  // while it was measured
    // Of a request with others nothing came back, or its own took long: it must not hold up others.
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
  struct Measurer {
    std::shared_ptr<MetricsProvider> provider;
    std::string domain;  // "": the agent's own filesystem
  };
  Result<Measurer> MeasurerOf(const Volume& volume) const;
  bool StartOne(const PodVolumeKey& key, Volume& volume);
  // Those that are due and share requests, in one.
  void StartShared();
  void Begin(const PodVolumeKey& key, Volume& volume);
  // What counts against the limits while a measurement runs.
  struct RunningAs {
    bool suspect = false;
    bool alone = false;
  };
  void Count(RunningAs as, int change);
  void Finished(const PodVolumeKey& key, uint64_t incarnation, RunningAs as, Result<Metrics> result,
                Duration took);
  void SharedFinished(const Shared& shared, const std::vector<Result<Metrics>>& results,
                      bool answered);
  void Ended(const PodVolumeKey& key, uint64_t incarnation, Result<Metrics> result, bool alone);
  void WrittenAgain(const PodVolumeKey& key, Volume& volume);
  // What happens again and again must not put off what is due.
  void ScheduleNoLater(const PodVolumeKey& key, Volume& volume, Duration delay);
  // Of those that share requests: the pod's place in a period.
  Duration Place(const PodVolumeKey& key) const;
  Duration UntilFirst(const PodVolumeKey& key, const Volume& volume);
  Duration UntilNext(const PodVolumeKey& key, const Volume& volume, bool is_second, bool rests);
  Duration Jittered(double from, double to);

  Scheduler& scheduler_;
  const VolumePluginMgr& plugins_;
  const KubeletPaths& paths_;
  Logger& log_;
  VolumeStatsSettings settings_;
  std::mt19937_64 random_;
  std::map<PodVolumeKey, Volume> volumes_;
  Queue queue_;
  std::set<PodVolumeKey> in_flight_;  // of forgotten volumes too, until their task ends
  TimerId timer_ = 0;
  TimePoint timer_due_;
  uint64_t next_incarnation_ = 1;
  int running_ = 0;
  int running_suspect_ = 0;
  int running_alone_ = 0;  // no more than half of all: requests of many go on beside them
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace volumed
