#include "agent/agent_metrics.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "metrics/exposition.h"

namespace volumed {
namespace {

constexpr char kMountOperation[] = "volume_mount";

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

// Without the namespace, which is the pod's.
std::optional<std::string> ClaimNameOf(const VolumeView& volume) {
  if (volume.claim.empty()) return std::nullopt;
  return volume.claim.substr(volume.claim.find('/') + 1);
}

}  // namespace

AgentMetrics::AgentMetrics(const WorkerKernel& kernel, const SqliteRecordStore& records,
                           const RecoveryGate& recovery, const ObjectCatalog& catalog,
                           const Clock& clock, ExportedFamilies& families)
    : kernel_(kernel),
      records_(records),
      recovery_(recovery),
      catalog_(catalog),
      clock_(clock),
      families_(families) {
  families_.SetBuildInfo(VOLUMED_VERSION, VOLUMED_REVISION, __VERSION__);
  // The first one is not to be hidden from rate().
  families_.CountEvictions(kEmptyDirLimitSignal, 0);
}

void AgentMetrics::Watch(KubeletVolumeManager& manager) {
  manager_ = &manager;
  manager.AddObserver([this](const PodUid& pod) { PodChanged(pod); });
}

void AgentMetrics::OperationFinished(const FinishedOperation& finished) {
  start_tally_.OperationFinished(finished);
  // Removing a pod's directories is no operation of kubelet's on a volume.
  if (finished.plugin_name.empty()) return;
  const std::string& plugin = finished.plugin_name;
  families_.ObserveStorageOperation(plugin, finished.operation, !finished.failure.has_value(),
                                    finished.elapsed);
  if (finished.operation != kMountOperation || finished.failure) return;
  const auto waiting = waiting_.find(finished.key.pod_volume());
  if (waiting == waiting_.end()) return;  // a refresh of a volume that is mounted
  families_.ObserveOverallVolumeMount(plugin, clock_.Now() - waiting->second);
  waiting_.erase(waiting);
}

void AgentMetrics::PodChanged(const PodUid& pod) {
  dirty_.insert(pod);
  if (!manager_->HasPod(pod)) {
    const auto first = waiting_.lower_bound({pod, SpecName()});
    auto end = first;
    while (end != waiting_.end() && end->first.pod == pod) ++end;
    waiting_.erase(first, end);
    return;
  }
  for (const KubeletVolumeManager::VolumeProgress& volume : manager_->VolumesOf(pod)) {
    const PodVolumeKey key{pod, volume.spec};
    if (volume.wanted && !volume.set_up) {
      waiting_.emplace(key, clock_.Now());
    } else if (!volume.wanted) {
      waiting_.erase(key);
    }
  }
}

void AgentMetrics::RefreshPod(const PodUid& pod) {
  std::set<std::string> now;
  const std::optional<PodView> view = manager_->FindPod(pod);
  if (view) {
    phases_[pod] = view->phase;
    for (const VolumeView& volume : view->volumes) {
      if (!volume.usage) continue;
      volume_stats_.Set({pod, volume.spec.str()},
                        {view->ns, view->name, volume.plugin_name, ClaimNameOf(volume)},
                        MetricsOf(*volume.usage));
      now.insert(volume.spec.str());
    }
  } else {
    phases_.erase(pod);
  }
  for (const std::string& volume : exported_[pod]) {
    if (!now.contains(volume)) volume_stats_.Remove({pod, volume});
  }
  if (now.empty()) {
    exported_.erase(pod);
  } else {
    exported_[pod] = std::move(now);
  }
}

void AgentMetrics::RefreshTotals() {
  std::map<std::string, int64_t> pods;
  for (const auto& [pod, phase] : phases_) ++pods[phase];
  families_.SetPods(pods);
  families_.SetVolumes(manager_->VolumeCounts());
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
  families_.SetFaultDomains(manager_->DomainsAnswering());
  families_.SetRecordStore(records_.stats(), records_.on_ballast());
  families_.SetRecordsRecovery(recovery_.recovery().active, recovery_.Held().size());
}

std::string AgentMetrics::Collect(const HttpServerStats& http,
                                  const std::map<std::string, bool>& parts) {
  for (const PodUid& pod : std::exchange(dirty_, {})) RefreshPod(pod);
  RefreshTotals();
  families_.SetHttpServer(http);
  families_.SetParts(parts);
  families_.SetCollected(clock_.WallUnixMillis());
  return Serialize(families_, volume_stats_, clock_.WallUnixMillis());
}

bool AgentMetrics::IsStuck(const std::string& key) const {
  const std::vector<StuckOperation> stuck = kernel_.stuck_operations();
  return std::any_of(stuck.begin(), stuck.end(),
                     [&](const StuckOperation& operation) { return operation.key == key; });
}

}  // namespace volumed
