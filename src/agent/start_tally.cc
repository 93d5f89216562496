#include "agent/start_tally.h"

namespace volumed {
namespace {

constexpr char kUnmountOperation[] = "volume_unmount";
constexpr char kMountOperation[] = "volume_mount";

}  // namespace

void StartTally::TakenOver(const TakeOver& found) {
  const uint64_t failed = found.without_record.size() + found.unreadable;
  families_.CountReconstructVolumeOperations(found.volumes + found.unreadable, failed);
  without_record_ = found.without_record;
}

void StartTally::OrphanFound(const std::set<PodVolumeKey>& volumes) {
  orphans_.insert(volumes.begin(), volumes.end());
}

void StartTally::OperationFinished(const FinishedOperation& finished) {
  if (finished.key.is_device()) return;  // only volumes of pods are counted
  const PodVolumeKey key = finished.key.pod_volume();
  const bool ok = !finished.failure.has_value();
  if (finished.operation == kMountOperation && ok) {
    without_record_.erase(key);  // it was wanted, and has a record now
    return;
  }
  if (finished.operation != kUnmountOperation) return;
  if (without_record_.contains(key)) {
    families_.CountForceCleanedFailedVolumeOperations(1, ok ? 0 : 1);
    if (ok) without_record_.erase(key);
  }
  if (!orphans_.contains(key)) return;
  if (ok) {
    orphans_.erase(key);
    failed_orphans_.erase(key);
    ++cleaned_orphans_;
  } else {
    failed_orphans_.insert(key);
  }
  families_.SetOrphanPodCleanedVolumes(cleaned_orphans_,
                                       static_cast<int64_t>(failed_orphans_.size()));
}

}  // namespace volumed
