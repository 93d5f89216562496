// AgentMetrics: brings what the parts count into the exposition. The parts expose values; only here
// is it known which family they belong to.
#pragma once

#include <map>
#include <set>
#include <string>

#include "agent/start_tally.h"
#include "base/clock.h"
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
               const RecoveryGate& recovery, const ObjectCatalog& catalog, const Clock& clock,
               ExportedFamilies& families);

  // Follows the manager's views from now on. Called once.
  void Watch(KubeletVolumeManager& manager);

  // What the start found, and what it has to clean.
  void TakenOver(const TakeOver& found) { start_tally_.TakenOver(found); }
  void OrphanFound(const std::set<PodVolumeKey>& volumes) { start_tally_.OrphanFound(volumes); }
  // How long a task that was posted just now waited for the control thread.
  void ControlLoopLag(Duration lag) { families_.ObserveControlLoopLag(lag); }

  void OperationFinished(const FinishedOperation& finished) override;

  // The text of a scrape. Only what changed since the last one is looked at again.
  // `parts`: of the agent, and whether each works.
  std::string Collect(const HttpServerStats& http, const std::map<std::string, bool>& parts);

  // A worker on this key (PodVolumeKey::ToString()) could not be ended.
  bool IsStuck(const std::string& key) const;

 private:
  void PodChanged(const PodUid& pod);
  void RefreshPod(const PodUid& pod);
  void RefreshTotals();

  const WorkerKernel& kernel_;
  const SqliteRecordStore& records_;
  const RecoveryGate& recovery_;
  const ObjectCatalog& catalog_;
  const Clock& clock_;
  KubeletVolumeManager* manager_ = nullptr;
  ExportedFamilies& families_;
  StartTally start_tally_{families_};
  VolumeStatsText volume_stats_;
  std::set<PodUid> dirty_;                            // to be looked at again by the next scrape
  std::map<PodUid, std::set<std::string>> exported_;  // volumes with lines in volume_stats_
  std::map<PodUid, std::string> phases_;
  std::map<PodVolumeKey, TimePoint> waiting_;  // wanted, and not mounted yet: since when
};

}  // namespace volumed
