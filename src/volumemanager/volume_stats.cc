#include "volumemanager/volume_stats.h"

#include <algorithm>
#include <utility>

#include "metrics/metrics_nil.h"
#include "pluginmgr/block_volume_plugin.h"

namespace volumed {
namespace {

// A walk of a volume on the agent's own filesystem must not wait in the lane of the fast worker,
// where mounts are made.
constexpr const char* kOwnDomain = "volume-stats";

// Who measures the volume: its mounter, or its mapper. Source: kubernetes
// pkg/kubelet/server/stats/volume_stat_calculator.go@v1.36.2 (calcAndStoreStats).
Result<std::shared_ptr<MetricsProvider>> ProviderOf(VolumePlugin& plugin, const VolumeSpec& spec,
                                                    const PodPtr& pod) {
  if (!IsBlockVolume(spec)) {
    ASSIGN_OR_RETURN(std::unique_ptr<Mounter> mounter, plugin.NewMounter(spec, pod));
    return std::shared_ptr<MetricsProvider>(std::move(mounter));
  }
  BlockVolumePlugin* block = plugin.AsBlock();
  if (block == nullptr) return NewNotSupportedError();
  ASSIGN_OR_RETURN(std::unique_ptr<BlockVolumeMapper> mapper,
                   block->NewBlockVolumeMapper(spec, pod));
  if (!mapper->SupportsMetrics()) return std::shared_ptr<MetricsProvider>(new MetricsNil());
  return std::shared_ptr<MetricsProvider>(std::move(mapper));
}

}  // namespace

VolumeStats::VolumeStats(Scheduler& scheduler, const VolumePluginMgr& plugins, Logger& log,
                         VolumeStatsSettings settings)
    : scheduler_(scheduler),
      plugins_(plugins),
      log_(log),
      settings_(settings),
      random_(settings.jitter_seed) {}

VolumeStats::~VolumeStats() {
  if (timer_ != 0) scheduler_.Cancel(timer_);
}

Duration VolumeStats::Jittered(double from, double to) {
  const double factor = std::uniform_real_distribution<double>(from, to)(random_);
  return std::chrono::duration_cast<Duration>(settings_.period * factor);
}

void VolumeStats::Track(const PodVolumeKey& key, const VolumeSpec& spec, PodPtr pod) {
  if (settings_.period <= Duration::zero() || volumes_.contains(key)) return;
  Volume& volume =
      volumes_.emplace(key, Volume{spec, std::move(pod), next_incarnation_++, false, {}, {}})
          .first->second;
  // Soon, so that a new pod has figures, but not all at once after a start.
  Schedule(key, volume, Jittered(0, 0.1));
}

void VolumeStats::Forget(const PodVolumeKey& key) {
  const auto found = volumes_.find(key);
  if (found == volumes_.end()) return;
  queue_.erase({found->second.due, key});
  volumes_.erase(found);
}

void VolumeStats::SetTimes(Duration period, Duration deadline) {
  settings_.deadline = deadline;
  if (std::exchange(settings_.period, period) == period) return;
  for (auto& [key, volume] : volumes_) {
    // One that runs is given its time when it ends; one without metrics is not asked again.
    if (!volume.entry.running && volume.entry.supported) Schedule(key, volume, Jittered(0, 1));
  }
}

const VolumeStatsEntry* VolumeStats::Find(const PodVolumeKey& key) const {
  const auto found = volumes_.find(key);
  return found == volumes_.end() ? nullptr : &found->second.entry;
}

void VolumeStats::Schedule(const PodVolumeKey& key, Volume& volume, Duration delay) {
  queue_.erase({volume.due, key});
  volume.due = scheduler_.clock().Now() + delay;
  queue_.emplace(volume.due, key);
  ArmTimer();
}

void VolumeStats::ArmTimer() {
  if (queue_.empty() || running_ >= settings_.max_running) return;
  const TimePoint due = std::max(queue_.begin()->first, scheduler_.clock().Now());
  if (timer_ != 0) {
    if (timer_due_ <= due) return;
    scheduler_.Cancel(timer_);
  }
  timer_due_ = due;
  timer_ = scheduler_.PostAfter(due - scheduler_.clock().Now(), [this] {
    timer_ = 0;
    StartDue();
  });
}

void VolumeStats::StartDue() {
  const TimePoint now = scheduler_.clock().Now();
  std::vector<PodVolumeKey> due;
  const auto free = static_cast<size_t>(std::max(settings_.max_running - running_, 0));
  // Whatever ends goes on with the others.
  for (auto at = queue_.begin(); at != queue_.end() && at->first <= now; ++at) {
    if (due.size() >= free) break;
    due.push_back(at->second);
  }
  for (const PodVolumeKey& key : due) {
    if (running_ >= settings_.max_running) break;  // the next that ends goes on here
    Volume& volume = volumes_.at(key);
    const bool suspects_full = volume.suspect && running_suspect_ >= settings_.max_running_suspect;
    // One that still runs, of this volume or of one before it under the same name, is left alone.
    if (suspects_full || in_flight_.contains(key) || !StartOne(key, volume)) {
      Schedule(key, volume, Jittered(0.5, 1));
    }
  }
  ArmTimer();
}

bool VolumeStats::StartOne(const PodVolumeKey& key, Volume& volume) {
  Result<VolumePlugin*> plugin = plugins_.FindPluginBySpec(volume.spec);
  if (!plugin.ok()) return false;
  Result<std::shared_ptr<MetricsProvider>> provider = ProviderOf(**plugin, volume.spec, volume.pod);
  if (!provider.ok()) {
    volume.entry.last_error = provider.error();
    return false;
  }
  std::string domain = (*plugin)->FaultDomain(volume.spec);
  if (domain.empty()) domain = kOwnDomain;
  queue_.erase({volume.due, key});
  volume.entry.running = true;
  in_flight_.insert(key);
  ++running_;
  if (volume.suspect) ++running_suspect_;
  scheduler_.RunBlocking([this, key, incarnation = volume.incarnation, suspect = volume.suspect,
                          domain, deadline = settings_.deadline, &scheduler = scheduler_,
                          alive = std::weak_ptr<bool>(alive_), measured = *std::move(provider)] {
    CallOptions call;
    call.deadline = Deadline::After(scheduler.clock(), deadline);
    call.domain = domain;
    // No key: measuring changes nothing, and must not keep an operation from its volume.
    Result<Metrics> result = measured->GetMetrics(call);
    scheduler.Post([this, key, incarnation, suspect, alive, result] {
      if (!alive.expired()) Finished(key, incarnation, suspect, result);
    });
  });
  return true;
}

void VolumeStats::Finished(const PodVolumeKey& key, uint64_t incarnation, bool suspect,
                           Result<Metrics> result) {
  in_flight_.erase(key);
  --running_;
  if (suspect) --running_suspect_;
  const auto found = volumes_.find(key);
  if (found == volumes_.end() || found->second.incarnation != incarnation) {
    ArmTimer();
    return;
  }
  Volume& volume = found->second;
  volume.entry.running = false;
  volume.suspect = false;
  if (result.ok()) {
    volume.entry.metrics = std::move(result).value();
    if (volume.entry.metrics.time_unix_ms == 0) {
      volume.entry.metrics.time_unix_ms = scheduler_.clock().WallUnixMillis();
    }
    volume.entry.measured = true;
    volume.entry.last_error.reset();
  } else if (IsNotSupported(result.error())) {
    volume.entry.supported = false;  // for good: it is not asked again
    ArmTimer();
    return;
  } else {
    volume.entry.last_error = result.error();
    volume.suspect = result.error().code() == Code::kDeadlineExceeded;
    log_.LogLimited("stats " + key.ToString(), LogLevel::kInfo, "volume could not be measured",
                    {{"pod", key.pod}, {"volume", key.spec}, {"error", result.error()}});
  }
  Schedule(key, volume, Jittered(1, 2));
  if (result.ok() && settings_.measured) {
    // Copies: what is told may forget the volume.
    const VolumeSpec spec = volume.spec;
    const Metrics metrics = volume.entry.metrics;
    settings_.measured(key, spec, metrics);
  }
}

}  // namespace volumed
