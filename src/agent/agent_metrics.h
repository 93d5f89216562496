// AgentMetrics: brings what the parts count into the exposition. The parts expose values, and this
// class knows their families; reloads and starts are counted by the agent itself.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

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
#include "volumemanager/volume_manager.h"

namespace volumed {

// Threads: the control thread, but for Write(). Blocks: never, but for Write(), which computes for
// as long as its text is long. All constructor arguments outlive this object, and it outlives the
// manager that it watches and the tasks that it posts.
class AgentMetrics final : public OperationObserver {
 public:
  AgentMetrics(const WorkerKernel& kernel, const SqliteRecordStore& records,
               const RecoveryGate& recovery, const ObjectCatalog& catalog, Scheduler& scheduler,
               ExportedFamilies& families);

  // Follows the manager's views from now on. REQUIRES: it is called once.
  void Watch(VolumeManager& manager);

  // Called on the control thread for each scrape, to bring families of others up to date. REQUIRES:
  // it is called once.
  void AlsoCollect(std::function<void()> collect) { also_collect_ = std::move(collect); }

  // What the start found, and what it has to clean up.
  void TakenOver(const TakeOver& found) { start_tally_.TakenOver(found); }
  void OrphanFound(const std::set<PodVolumeKey>& volumes) { start_tally_.OrphanFound(volumes); }
  // How long a task that was posted just now waited for the control thread.
  void ControlLoopLag(Duration lag) { families_.ObserveControlLoopLag(lag); }
  // A task has kept the control thread for kSlowTask or longer.
  void SlowTaskRan(const std::string& task, Duration took) { slow_tasks_.Ran(task, took); }

  // Counts the operation in kubelet's families, if a plugin was concerned. The first set-up of a
  // volume also gives the time since the volume was wanted.
  void OperationFinished(const FinishedOperation& finished) override;
  // Takes over new figures of a volume. If the volume has no lines yet, its pod is looked at within
  // a fifth of a second instead, since only the pod's view has the labels.
  void VolumeMeasured(const PodVolumeKey& key, const Metrics& metrics);

  // Brings the figures of a scrape up to date. The figures of pods already are, except for pods
  // that changed in the last fifth of a second; these are looked at first. `parts` is
  // AgentParts::states(). Each call does some of the work; the last call returns true. REQUIRES:
  // Watch() was called.
  bool Collect(const HttpServerStats& http, const std::map<std::string, bool>& parts);
  // The text of a scrape, in the Prometheus text format, of the figures that the last Collect() has
  // left. Threads: any.
  std::string Write() const;

  // Whether a worker could not be ended that works for this key alone: that of a volume
  // (PodVolumeKey::ToString()), or a device's unique name. A call for several volumes at once has
  // their keys beside its own, which are not looked at.
  bool IsStuck(const std::string& key) const;

 private:
  void PodChanged(const PodUid& pod);
  void MarkDirty(const PodUid& pod);
  // Looks at some of the pods that changed, and posts itself for the others.
  void RefreshInTurn();
  void RefreshSome(std::set<PodUid>& pods);
  void RefreshPod(const PodUid& pod);
  // Says which volumes of the pod have lines from now on; the lines of its other volumes go.
  void SetExported(const PodUid& pod, std::set<std::string> now);
  void SetPhase(const PodUid& pod, const std::string& phase);
  void RefreshTotals();

  const WorkerKernel& kernel_;
  const SqliteRecordStore& records_;
  const RecoveryGate& recovery_;
  const ObjectCatalog& catalog_;
  Scheduler& scheduler_;
  const Clock& clock_;
  VolumeManager* manager_ = nullptr;
  std::function<void()> also_collect_ = [] {};
  ExportedFamilies& families_;
  StartTally start_tally_{families_};
  SlowTasks slow_tasks_{clock_};
  VolumeStatsText volume_stats_;
  std::set<PodUid> dirty_;  // to be looked at again
  bool refresh_posted_ = false;
  bool collecting_ = false;                           // a scrape is being collected
  std::set<PodUid> of_scrape_;                        // what dirty_ held when the scrape began
  std::map<PodUid, std::set<std::string>> exported_;  // volumes with lines in volume_stats_
  std::map<PodUid, std::string> phases_;
  std::map<std::string, int64_t> pods_of_phase_;
  VolumeCounting counting_;  // the volumes counted so far for the scrape in progress
  std::map<PodVolumeKey, TimePoint> waiting_;  // since when each is wanted but not mounted
};

}  // namespace volumed
