#include "volumemanager/watch/volume_stats.h"

#include <algorithm>
#include <utility>

#include "metrics/metrics_nil.h"
#include "pluginmgr/block_volume_plugin.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

// Walks of volumes on the agent's own filesystem have a lane of their own: they must not wait in
// the lane of the fast worker, which makes mounts.
constexpr const char* kOwnDomain = "volume-stats";
// A volume is measured alone if a request with it, or its own, did not come back. Such volumes have
// a lane of their own, so that a dead one takes no worker from the requests of the others.
constexpr const char* kDoubtfulDomain = "volume-stats-alone";
// How many volumes one request measures, and into how many ticks a period is divided. The volumes
// of a pod are measured in the same tick, so that the pod's view is made once.
constexpr size_t kMostInARequest = 128;
constexpr int kTicksInAPeriod = 64;
// A volume that only the agent writes is measured once in so many turns of its pod.
constexpr int kTurnsOfContent = 8;
// A volume whose measurement took longer is measured alone from then on.
constexpr Duration kShortMeasurement = std::chrono::seconds(1);

// Kubelet tells it with each measurement.
bool TurnedAbnormal(const Metrics& before, const Metrics& now) {
  if (!now.abnormal.value_or(false)) return false;
  return !before.abnormal.value_or(false) || before.message != now.message;
}

size_t HashOf(const PodVolumeKey& key) { return std::hash<std::string>()(key.pod.str()); }

// The object that measures the volume: its mounter or its mapper. Source: kubernetes
// pkg/kubelet/server/stats/volume_stat_calculator.go@v1.36.2 (calcAndStoreStats).
Result<std::shared_ptr<MetricsProvider>> ProviderOf(VolumePlugin& plugin, const KubeletPaths& paths,
                                                    const VolumeSpec& spec, const PodPtr& pod) {
  if (!IsBlockVolume(spec)) {
    ASSIGN_OR_RETURN(
        std::unique_ptr<Mounter> mounter,
        plugin.NewMounter(spec, PodVolumeTarget(paths, pod, plugin.GetPluginName(), spec.name())));
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

VolumeStats::VolumeStats(Parts parts, VolumeStatsSettings settings, Hooks hooks)
    : parts_(parts),
      settings_(settings),
      hooks_(std::move(hooks)),
      random_(settings_.jitter_seed) {}

VolumeStats::~VolumeStats() {
  if (timer_ != 0) parts_.scheduler.Cancel(timer_);
}

Duration VolumeStats::Jittered(double from, double to) {
  const double factor = std::uniform_real_distribution<double>(from, to)(random_);
  return std::chrono::duration_cast<Duration>(settings_.period * factor);
}

void VolumeStats::Track(const PodVolumeKey& key, const VolumeSpec& spec, PodPtr pod,
                        Writer writer) {
  if (settings_.period <= Duration::zero()) return;
  if (const auto known = volumes_.find(key); known != volumes_.end()) {
    return WrittenAgain(key, known->second);
  }
  Volume& volume =
      volumes_.emplace(key, Volume{spec, std::move(pod), next_incarnation_++}).first->second;
  volume.writer = writer;
  volume.domain = DomainOf(spec);
  if (parts_.kernel != nullptr && volume.domain.empty()) {
    const Result<std::shared_ptr<MetricsProvider>> measurer = MeasurerOf(volume);
    volume.may_share = measurer.ok() && (*measurer)->PlanMetrics().has_value();
  }
  // The first measurement comes soon, so that a new pod has figures, but those of many pods come
  // not all at once after a start.
  Schedule(key, volume, UntilFirst(key, volume) / 10);
}

void VolumeStats::WrittenAgain(const PodVolumeKey& key, Volume& volume) {
  if (volume.writer != Writer::kAgent || !volume.entry.supported) return;
  if (volume.entry.running) {
    volume.written_again = true;
  } else {
    ScheduleNoLater(key, volume, UntilFirst(key, volume));
  }
}

void VolumeStats::ScheduleNoLater(const PodVolumeKey& key, Volume& volume, Duration delay) {
  if (parts_.scheduler.clock().Now() + delay < volume.due) Schedule(key, volume, delay);
}

Duration VolumeStats::Place(const PodVolumeKey& key) const {
  return settings_.period / 1024 * static_cast<int64_t>(HashOf(key) % 1024);
}

Duration VolumeStats::UntilFirst(const PodVolumeKey& key, const Volume& volume) {
  return volume.Shares() ? Place(key) : Jittered(0, 1);
}

// For volumes that share requests this depends on the pod alone: the first time spreads the pods
// over a period, and they keep their distance from then on.
Duration VolumeStats::UntilNext(const PodVolumeKey& key, const Volume& volume, bool is_second,
                                bool rests) {
  if (!volume.Shares()) return Jittered(1, 2) * (rests ? kTurnsOfContent : 1);
  const Duration turn = settings_.period * 3 / 2;
  if (!is_second) return turn * (rests ? kTurnsOfContent : 1);
  // The turns in which volumes at rest are measured differ from pod to pod, too.
  const int64_t first_turn = rests ? static_cast<int64_t>(HashOf(key) / 1024 % kTurnsOfContent) : 0;
  return settings_.period + Place(key) + turn * first_turn;
}

void VolumeStats::Forget(const PodVolumeKey& key) {
  const auto found = volumes_.find(key);
  if (found == volumes_.end()) return;
  queue_.erase({found->second.due, key});
  volumes_.erase(found);
}

void VolumeStats::AskAgain(const std::string& domain) {
  for (auto& [key, volume] : volumes_) {
    if (volume.entry.supported || volume.domain != domain) continue;
    volume.entry.supported = true;
    Schedule(key, volume, UntilFirst(key, volume));
  }
}

void VolumeStats::MeasureNow(const PodVolumeKey& key) {
  const auto found = volumes_.find(key);
  if (found == volumes_.end() || !found->second.entry.supported) return;
  if (found->second.entry.running) {
    found->second.is_outdated = true;
  } else {
    ScheduleNoLater(key, found->second, Duration::zero());
  }
}

void VolumeStats::SetTimes(Duration period, Duration deadline) {
  settings_.deadline = deadline;
  if (std::exchange(settings_.period, period) == period) return;
  for (auto& [key, volume] : volumes_) {
    // A measurement that runs gets its next time when it ends; a volume without metrics is not
    // asked again.
    if (volume.entry.running || !volume.entry.supported) continue;
    ScheduleNoLater(key, volume, UntilFirst(key, volume));
  }
}

const VolumeStatsEntry* VolumeStats::Find(const PodVolumeKey& key) const {
  const auto found = volumes_.find(key);
  return found == volumes_.end() ? nullptr : &found->second.entry;
}

void VolumeStats::Schedule(const PodVolumeKey& key, Volume& volume, Duration delay) {
  queue_.erase({volume.due, key});
  volume.due = parts_.scheduler.clock().Now() + delay;
  if (volume.Shares()) {
    const Duration tick = std::max<Duration>(settings_.period / kTicksInAPeriod, Duration(1));
    volume.due += tick - volume.due.time_since_epoch() % tick;
  }
  queue_.emplace(volume.due, key);
  ArmTimer();
}

void VolumeStats::ArmTimer() {
  if (queue_.empty() || running_ >= settings_.max_running) return;
  const TimePoint due = std::max(queue_.begin()->first, parts_.scheduler.clock().Now());
  if (timer_ != 0) {
    if (timer_due_ <= due) return;
    parts_.scheduler.Cancel(timer_);
  }
  timer_due_ = due;
  timer_ = parts_.scheduler.PostAfter(due - parts_.scheduler.clock().Now(), [this] {
    timer_ = 0;
    StartDue();
  });
}

void VolumeStats::StartDue() {
  const TimePoint now = parts_.scheduler.clock().Now();
  // The next measurement that ends goes on here.
  while (running_ < settings_.max_running && !queue_.empty() && queue_.begin()->first <= now) {
    const PodVolumeKey key = queue_.begin()->second;
    Volume& volume = volumes_.at(key);
    const bool suspects_full = volume.suspect && running_suspect_ >= settings_.max_running_suspect;
    const bool alone_full =
        volume.alone && running_alone_ >= std::max(1, settings_.max_running / 2);
    // If a measurement of this volume, or of an earlier one of the same name, still runs, the
    // volume is left alone.
    if (suspects_full || alone_full || IsFull(volume.domain) || in_flight_.contains(key)) {
      Schedule(key, volume, Jittered(0.5, 1));
    } else if (volume.Shares()) {
      StartShared();
    } else if (!StartOne(key, volume)) {
      Schedule(key, volume, Jittered(0.5, 1));
    }
  }
  ArmTimer();
}

Result<std::shared_ptr<MetricsProvider>> VolumeStats::MeasurerOf(const Volume& volume) const {
  ASSIGN_OR_RETURN(VolumePlugin* const plugin, parts_.plugins.FindPluginBySpec(volume.spec));
  return ProviderOf(*plugin, parts_.paths, volume.spec, volume.pod);
}

std::string VolumeStats::DomainOf(const VolumeSpec& spec) const {
  const Result<VolumePlugin*> plugin = parts_.plugins.FindPluginBySpec(spec);
  return plugin.ok() ? (*plugin)->FaultDomain(spec) : "";
}

// A driver that hangs would take all measurements for a while, and those of others would wait.
bool VolumeStats::IsFull(const std::string& domain) const {
  if (domain.empty() || !running_of_.contains(domain)) return false;
  if (IsDriverDomain(domain) && !answering_.contains(domain)) return true;
  return hooks_.may_ask && !hooks_.may_ask(domain);
}

void VolumeStats::Begin(const PodVolumeKey& key, Volume& volume) {
  queue_.erase({volume.due, key});
  volume.entry.running = true;
  in_flight_.insert(key);
}

bool VolumeStats::StartOne(const PodVolumeKey& key, Volume& volume) {
  Result<std::shared_ptr<MetricsProvider>> measurer = MeasurerOf(volume);
  if (!measurer.ok()) {
    volume.entry.last_error = measurer.error();
    return false;
  }
  const std::string own_domain = volume.alone ? kDoubtfulDomain : kOwnDomain;
  const std::string domain = volume.domain.empty() ? own_domain : volume.domain;
  Begin(key, volume);
  const RunningAs as{volume.suspect, volume.alone, volume.domain};
  Count(as, 1);
  parts_.scheduler.RunBlocking([this, key, incarnation = volume.incarnation, as, domain,
                                deadline = settings_.deadline, &scheduler = parts_.scheduler,
                                owner = alive_.watch(), measured = *measurer] {
    const TimePoint began = scheduler.clock().Now();
    CallOptions call;
    call.deadline = Deadline::After(scheduler.clock(), deadline);
    call.domain = domain;
    // The call has no key: measuring changes nothing, and must not keep an operation from its
    // volume.
    Result<Metrics> result = measured->GetMetrics(call);
    const Duration took = scheduler.clock().Now() - began;
    scheduler.Post([this, key, incarnation, as, owner, result, took] {
      if (owner.alive()) Finished(key, incarnation, as, result, took);
    });
  });
  return true;
}

void VolumeStats::Count(const RunningAs& as, int change) {
  running_ += change;
  if (as.suspect) running_suspect_ += change;
  if (as.alone) running_alone_ += change;
  if (as.domain.empty()) return;
  int& running = running_of_[as.domain];
  running += change;
  if (running == 0) running_of_.erase(as.domain);
}

struct VolumeStats::Shared {
  struct Member {
    PodVolumeKey key;
    uint64_t incarnation = 0;
    std::shared_ptr<MetricsProvider> provider;
    MetricsPlan plan;
  };
  std::vector<Member> members;

  Batch Request() const {
    Batch batch;
    for (const Member& member : members) {
      for (const AnyRequest& request : member.plan.requests) batch.items.push_back({request});
    }
    return batch;
  }

  std::vector<Result<Metrics>> Read(const Result<BatchAnswer>& answer, Duration took) const {
    std::vector<Result<Metrics>> results;
    size_t next = 0;
    for (const Member& member : members) {
      if (!answer.ok()) {
        results.emplace_back(answer.error());
        continue;
      }
      std::vector<Result<AnyAnswer>> own;
      for (size_t i = 0; i < member.plan.requests.size(); ++i) {
        own.push_back(answer->items[next++].result);
      }
      results.push_back(member.plan.read(own, took / static_cast<int64_t>(members.size())));
    }
    return results;
  }
};

void VolumeStats::StartShared() {
  const TimePoint now = parts_.scheduler.clock().Now();
  const auto shared = std::make_shared<Shared>();
  for (auto at = queue_.begin(); at != queue_.end() && at->first <= now;) {
    const PodVolumeKey key = (at++)->second;
    Volume& volume = volumes_.at(key);
    if (!volume.Shares() || in_flight_.contains(key)) continue;
    const Result<std::shared_ptr<MetricsProvider>> measurer = MeasurerOf(volume);
    std::optional<MetricsPlan> plan = measurer.ok() ? (*measurer)->PlanMetrics() : std::nullopt;
    if (!plan) {
      volume.alone = true;  // its own request will say why
      continue;
    }
    Begin(key, volume);
    shared->members.push_back({key, volume.incarnation, *measurer, *std::move(plan)});
    if (shared->members.size() == kMostInARequest) break;
  }
  if (shared->members.empty()) return;
  ++running_;
  parts_.scheduler.RunBlocking([this, shared, deadline = settings_.deadline, kernel = parts_.kernel,
                                &scheduler = parts_.scheduler, owner = alive_.watch()] {
    const TimePoint began = scheduler.clock().Now();
    CallOptions call;
    call.deadline = Deadline::After(scheduler.clock(), deadline);
    call.domain = kOwnDomain;
    const Result<BatchAnswer> answer = kernel->Call(shared->Request(), call);
    scheduler.Post([this, shared, owner, answered = answer.ok(),
                    results = shared->Read(answer, scheduler.clock().Now() - began)] {
      if (owner.alive()) SharedFinished(*shared, results, answered);
    });
  });
}

void VolumeStats::SharedFinished(const Shared& shared, const std::vector<Result<Metrics>>& results,
                                 bool answered) {
  --running_;
  for (size_t i = 0; i < shared.members.size(); ++i) {
    // One of these volumes may be dead; asking each alone shows which one.
    Ended(shared.members[i].key, shared.members[i].incarnation, results[i], !answered);
  }
  ArmTimer();
}

void VolumeStats::Finished(const PodVolumeKey& key, uint64_t incarnation, const RunningAs& as,
                           Result<Metrics> result, Duration took) {
  Count(as, -1);
  // One that waited for a worker in vain was not asked: that tells nothing of it.
  const bool silent = !result.ok() && result.error().code() == Code::kDeadlineExceeded &&
                      result.error().outcome() == Outcome::kMaybeApplied;
  if (silent) {
    answering_.erase(as.domain);
  } else if (IsDriverDomain(as.domain) && result.ok()) {
    answering_.insert(as.domain);
  }
  const auto found = volumes_.find(key);
  if (found != volumes_.end() && found->second.incarnation == incarnation) {
    found->second.suspect = silent;
  }
  const bool alone = !result.ok() || took > kShortMeasurement;
  Ended(key, incarnation, std::move(result), alone);
  ArmTimer();
}

void VolumeStats::Ended(const PodVolumeKey& key, uint64_t incarnation, Result<Metrics> result,
                        bool alone) {
  in_flight_.erase(key);
  const auto found = volumes_.find(key);
  if (found == volumes_.end() || found->second.incarnation != incarnation) return;
  Volume& volume = found->second;
  volume.entry.running = false;
  volume.alone = alone;
  const bool is_first = !volume.entry.measured;
  const bool written_again = std::exchange(volume.written_again, false);
  const bool is_outdated = std::exchange(volume.is_outdated, false);
  const bool succeeded = result.ok();
  bool is_news = false;
  if (succeeded) {
    is_news = TurnedAbnormal(volume.entry.metrics, *result);
    Took(volume, std::move(result).value());
  } else if (IsNotSupported(result.error())) {
    volume.entry.supported = false;  // for good: it is not asked again
    return;
  } else {
    volume.entry.last_error = result.error();
    parts_.log.LogLimited("stats " + key.ToString(), LogLevel::kInfo,
                          "volume could not be measured",
                          {{"pod", key.pod}, {"volume", key.spec}, {"error", result.error()}});
  }
  const bool rests = succeeded && volume.writer == Writer::kAgent;
  Schedule(key, volume,
           written_again ? UntilFirst(key, volume) : UntilNext(key, volume, is_first, rests));
  if (is_outdated) ScheduleNoLater(key, volume, Duration::zero());
  if (!succeeded) return;
  // These are copies: a callback may forget the volume.
  const VolumeSpec spec = volume.spec;
  const Metrics metrics = volume.entry.metrics;
  if (is_news && hooks_.abnormal) hooks_.abnormal(key, metrics);
  if (hooks_.measured) hooks_.measured(key, spec, metrics);
}

void VolumeStats::Took(Volume& volume, Metrics metrics) {
  volume.entry.metrics = std::move(metrics);
  if (volume.entry.metrics.time_unix_ms == 0) {
    volume.entry.metrics.time_unix_ms = parts_.scheduler.clock().WallUnixMillis();
  }
  volume.entry.measured = true;
  volume.entry.last_error.reset();
}

}  // namespace volumed
