// AgentMetrics: brings what the parts count into the exposition. The parts expose values; only here
// is it known which family they belong to.
#pragma once

#include <map>
#include <set>
#include <string>

#include "agent/slow_tasks.h"
#include "agent/start_tally.h"
#include "base/clock.h"
#include "base/scheduler.h"
#include "kube/object_catalog.h"
#include "metrics/exported_families.h"
#include "metrics/http_server_stats.h"
#include "metrics/volume_stats_text.h"
#include "operation/operation_observer.h"
#include "os/worker_kernel.h"
#include "records/sqlite_record_store.h"
#include "volumehost/recovery_gate.h"
#include "volumemanager/kubelet_volume_manager.h"

namespace volumed {

// Threads: the control thread. Everything outlives it.
class AgentMetrics final : public OperationObserver {
 public:
  AgentMetrics(const WorkerKernel& kernel, const SqliteRecordStore& records,
               const RecoveryGate& recovery, const ObjectCatalog& catalog, Scheduler& scheduler,
               ExportedFamilies& families);

  // Follows the manager's views from now on. Called once.
  void Watch(KubeletVolumeManager& manager);

  // What the start found, and what it has to clean.
  void TakenOver(const TakeOver& found) { start_tally_.TakenOver(found); }
  void OrphanFound(const std::set<PodVolumeKey>& volumes) { start_tally_.OrphanFound(volumes); }
  // How long a task that was posted just now waited for the control thread.
  void ControlLoopLag(Duration lag) { families_.ObserveControlLoopLag(lag); }
  // A task has kept the control thread for kSlowTask or longer.
  void SlowTaskRan(const std::string& task, Duration took) { slow_tasks_.Ran(task, took); }

  void OperationFinished(const FinishedOperation& finished) override;
  void VolumeMeasured(const PodVolumeKey& key, const Metrics& metrics);

  // Brings the figures of a scrape up to date. Those of pods are so already, but for what changed
  // in the last fifth of a second, which is looked at first. `parts`: of the agent, and whether
  // each works. Some of it at each call; true: that was the last.
  bool Collect(const HttpServerStats& http, const std::map<std::string, bool>& parts);
  // The text of a scrape. Threads: any.
  std::string Write() const;

  // A worker on this key (PodVolumeKey::ToString()) could not be ended.
  bool IsStuck(const std::string& key) const;

 private:
  void PodChanged(const PodUid& pod);
  void MarkDirty(const PodUid& pod);
  // Looks at some of the pods that changed, and comes back for the others.
  void RefreshInTurn();
  void RefreshSome(std::set<PodUid>& pods);
  void RefreshPod(const PodUid& pod);
  // The volumes of the pod that have lines from now on.
  void SetExported(const PodUid& pod, std::set<std::string> now);
  void SetPhase(const PodUid& pod, const std::string& phase);
  void RefreshTotals();

  const WorkerKernel& kernel_;
  const SqliteRecordStore& records_;
  const RecoveryGate& recovery_;
  const ObjectCatalog& catalog_;
  Scheduler& scheduler_;
  const Clock& clock_;
  KubeletVolumeManager* manager_ = nullptr;
  ExportedFamilies& families_;
  StartTally start_tally_{families_};
  SlowTasks slow_tasks_{clock_};
  VolumeStatsText volume_stats_;
  std::set<PodUid> dirty_;  // to be looked at again
  bool refresh_posted_ = false;
  bool collecting_ = false;                           // a scrape
  std::set<PodUid> of_scrape_;                        // of dirty_, as the scrape began
  std::map<PodUid, std::set<std::string>> exported_;  // volumes with lines in volume_stats_
  std::map<PodUid, std::string> phases_;
  std::map<std::string, int64_t> pods_of_phase_;
  VolumeCounting counting_;                    // of the scrape that is being collected
  std::map<PodVolumeKey, TimePoint> waiting_;  // wanted, and not mounted yet: since when
};

}  // namespace volumed
