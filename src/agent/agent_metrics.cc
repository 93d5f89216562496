#include "agent/agent_metrics.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "metrics/exposition.h"
#include "volumemanager/watch/size_limits.h"

namespace volumed {
namespace {

constexpr char kMountOperation[] = "volume_mount";
// How many changed pods one task looks at, since others need the control thread too.
constexpr size_t kMostInATask = 16;
// A pod changes when each of its operations begins and ends. Its view is made once for all changes
// within this time, which is longer than most pods take to come or go: a scrape looks first at what
// has changed, so nobody sees the delay, and views were a tenth of the control thread's time in a
// burst.
constexpr Duration kRefreshDelay = std::chrono::seconds(2);

Metrics MetricsOf(const VolumeUsageView& usage) {
  Metrics metrics;
  metrics.time_unix_ms = usage.measured_unix_ms;
  metrics.used_bytes = usage.used_bytes;
  metrics.capacity_bytes = usage.capacity_bytes;
  metrics.available_bytes = usage.available_bytes;
  metrics.inodes_used = usage.inodes_used;
  metrics.inodes = usage.inodes;
  metrics.inodes_free = usage.inodes_free;
  return metrics;
}

// The claim's name without the namespace, which is the pod's.
std::optional<std::string> ClaimNameOf(const VolumeView& volume) {
  if (volume.claim.empty()) return std::nullopt;
  return volume.claim.substr(volume.claim.find('/') + 1);
}

}  // namespace

AgentMetrics::AgentMetrics(const WorkerKernel& kernel, const SqliteRecordStore& records,
                           const RecoveryGate& recovery, const ObjectCatalog& catalog,
                           Scheduler& scheduler, ExportedFamilies& families)
    : kernel_(kernel),
      records_(records),
      recovery_(recovery),
      catalog_(catalog),
      scheduler_(scheduler),
      clock_(scheduler.clock()),
      families_(families) {
  families_.SetBuildInfo(VOLUMED_VERSION, VOLUMED_REVISION, __VERSION__);
  // The counter begins at 0, since rate() would not see a counter that begins with the first
  // eviction.
  families_.CountEvictions(kEmptyDirLimitSignal, 0);
}

void AgentMetrics::Watch(VolumeManager& manager) {
  manager_ = &manager;
  manager.observers().Add([this](const PodUid& pod) { PodChanged(pod); });
}

void AgentMetrics::OperationFinished(const FinishedOperation& finished) {
  start_tally_.OperationFinished(finished);
  // The removal of a pod's directories is not one of kubelet's operations on a volume.
  if (finished.plugin_name.empty()) return;
  const std::string& plugin = finished.plugin_name;
  families_.ObserveStorageOperation(plugin, finished.operation, !finished.failure.has_value(),
                                    finished.elapsed, finished.migrated);
  if (finished.operation != kMountOperation || finished.failure) return;
  const auto waiting = waiting_.find(finished.key.pod_volume());
  if (waiting == waiting_.end()) return;  // the operation refreshed a volume that is mounted
  families_.ObserveOverallVolumeMount(plugin, clock_.Now() - waiting->second);
  waiting_.erase(waiting);
}

// On a node at rest this is called most often, so the pod is looked at only if its labels are
// missing.
void AgentMetrics::VolumeMeasured(const PodVolumeKey& key, const Metrics& metrics) {
  const auto exported = exported_.find(key.pod);
  if (exported == exported_.end() || !exported->second.contains(key.spec.str())) {
    MarkDirty(key.pod);
    return;
  }
  volume_stats_.Set({key.pod, key.spec.str()}, {}, metrics);
}

void AgentMetrics::PodChanged(const PodUid& pod) {
  MarkDirty(pod);
  if (!manager_->pods().Has(pod)) {
    // At once: another pod may come with its uid before it is looked at, and has other labels.
    SetExported(pod, {});
    const auto first = waiting_.lower_bound({pod, SpecName()});
    auto end = first;
    while (end != waiting_.end() && end->first.pod == pod) ++end;
    waiting_.erase(first, end);
    return;
  }
  for (const VolumeProgress& volume : manager_->pods().VolumesOf(pod)) {
    const PodVolumeKey key{pod, volume.spec};
    if (volume.wanted && !volume.set_up) {
      waiting_.emplace(key, clock_.Now());
    } else if (!volume.wanted) {
      waiting_.erase(key);
    }
  }
}

void AgentMetrics::MarkDirty(const PodUid& pod) {
  dirty_.insert(pod);
  if (refresh_posted_) return;
  refresh_posted_ = true;
  scheduler_.PostAfter(kRefreshDelay, [this] { RefreshInTurn(); });
}

void AgentMetrics::RefreshInTurn() {
  RefreshSome(dirty_);
  if (dirty_.empty()) {
    refresh_posted_ = false;
  } else {
    scheduler_.Post([this] { RefreshInTurn(); });
  }
}

void AgentMetrics::RefreshSome(std::set<PodUid>& pods) {
  for (size_t count = 0; count < kMostInATask && !pods.empty(); ++count) {
    RefreshPod(pods.extract(pods.begin()).value());
  }
}

// An empty phase means that the pod has gone.
void AgentMetrics::SetPhase(const PodUid& pod, const std::string& phase) {
  const auto before = phases_.find(pod);
  if (before != phases_.end() && --pods_of_phase_[before->second] == 0) {
    pods_of_phase_.erase(before->second);
  }
  if (!phase.empty()) {
    phases_[pod] = phase;
    ++pods_of_phase_[phase];
  } else if (before != phases_.end()) {
    phases_.erase(before);
  }
}

void AgentMetrics::RefreshPod(const PodUid& pod) {
  std::set<std::string> now;
  const std::optional<PodView> view = manager_->pods().Find(pod);
  if (view) {
    SetPhase(pod, view->phase);
    for (const VolumeView& volume : view->volumes) {
      if (!volume.usage) continue;
      volume_stats_.Set({pod, volume.spec.str()},
                        {view->ns, view->name, volume.plugin_name, ClaimNameOf(volume)},
                        MetricsOf(*volume.usage));
      now.insert(volume.spec.str());
    }
  } else {
    SetPhase(pod, "");
  }
  SetExported(pod, std::move(now));
}

void AgentMetrics::SetExported(const PodUid& pod, std::set<std::string> now) {
  const auto exported = exported_.find(pod);
  if (exported != exported_.end()) {
    for (const std::string& volume : exported->second) {
      if (!now.contains(volume)) volume_stats_.Remove({pod, volume});
    }
  }
  if (!now.empty()) {
    exported_[pod] = std::move(now);
  } else if (exported != exported_.end()) {
    exported_.erase(exported);
  }
}

void AgentMetrics::RefreshTotals() {
  families_.SetPods(pods_of_phase_);
  families_.SetControlTaskLongest(slow_tasks_.Longest());
  std::map<std::string, SourceFigures> sources;
  for (const SourceStatus& source : catalog_.Sources()) {
    const auto wrong = std::count_if(source.problems.begin(), source.problems.end(),
                                     [](const DecodeProblem& one) { return !one.is_waiting; });
    sources[source.name] = {source.complete, static_cast<size_t>(wrong), source.warnings.size(),
                            !source.incomplete_because.empty()};
  }
  families_.SetSources(sources);
  families_.SetWorkerPool(kernel_.stats());
  families_.SetMountTable(kernel_.mount_table().stats());
  families_.SetStuckOperations(kernel_.stuck_operations());
  families_.SetFaultDomains(manager_->ServersAnswering());
  families_.SetRecordStore(records_.stats(), records_.on_ballast());
  families_.SetRecordsRecovery(recovery_.recovery().active, recovery_.Pending().size());
}

bool AgentMetrics::Collect(const HttpServerStats& http, const std::map<std::string, bool>& parts) {
  // The pods that changed before the scrape began are looked at first; in a burst others change
  // meanwhile.
  if (!std::exchange(collecting_, true)) of_scrape_.merge(dirty_);
  if (!of_scrape_.empty()) {
    RefreshSome(of_scrape_);
    return false;
  }
  if (!manager_->pods().CountVolumes(counting_)) return false;
  collecting_ = false;
  families_.SetVolumes(std::exchange(counting_, {}).Figures());
  RefreshTotals();
  also_collect_();
  families_.SetHttpServer(http);
  families_.SetParts(parts);
  families_.SetCollected(clock_.WallUnixMillis());
  return true;
}

std::string AgentMetrics::Write() const {
  return Serialize(families_, volume_stats_, clock_.WallUnixMillis());
}

bool AgentMetrics::IsStuck(const std::string& key) const {
  const std::vector<StuckOperation> stuck = kernel_.stuck_operations();
  return std::any_of(stuck.begin(), stuck.end(),
                     [&](const StuckOperation& operation) { return operation.Concerns(key); });
}

}  // namespace volumed
