// StartTally: counts what became of the volumes that were found at the start, in metrics with
// kubelet's names. Source: kubernetes
// pkg/kubelet/volumemanager/reconciler/reconstruct_common.go@v1.36.2,
// pkg/kubelet/kubelet_volumes.go@v1.36.2 (cleanupOrphanedPodDirs). Kubelet sweeps every two
// seconds. This agent sweeps once, when every source has delivered, and follows what the sweep
// found to its end.
#pragma once

#include <cstdint>
#include <set>

#include "metrics/exported_families.h"
#include "operation/operation_observer.h"
#include "volumemanager/take_over.h"

namespace volumed {

// Threads: the control thread. Blocks: never.
class StartTally {
 public:
  // `families` outlives this object.
  explicit StartTally(ExportedFamilies& families) : families_(families) {
    families_.SetOrphanPodCleanedVolumes(0, 0);
  }

  // Counts what was found, and what of it had no record or could not be read. REQUIRES: it is
  // called once.
  void TakenOver(const TakeOver& found);
  // Adds the volumes of a pod that no source has any more.
  void OrphanFound(const std::set<PodVolumeKey>& volumes);
  // REQUIRES: it is called for each operation, of whatever kind.
  void OperationFinished(const FinishedOperation& finished);

 private:
  ExportedFamilies& families_;
  std::set<PodVolumeKey> without_record_;
  std::set<PodVolumeKey> orphans_;  // orphans that are not gone yet
  std::set<PodVolumeKey> failed_orphans_;
  int64_t cleaned_orphans_ = 0;
};

}  // namespace volumed
