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

void StartTally::OrphansFound(const std::set<PodVolumeKey>& orphans) {
  orphans_ = orphans;
  failed_orphans_.clear();
  cleaned_orphans_ = 0;
  families_.SetOrphanPodCleanedVolumes(0, 0);
}

void StartTally::OperationFinished(const FinishedOperation& finished) {
  const bool ok = !finished.failure.has_value();
  if (finished.operation == kMountOperation && ok) {
    without_record_.erase(finished.key);  // it was wanted, and has a record now
    return;
  }
  if (finished.operation != kUnmountOperation) return;
  if (without_record_.contains(finished.key)) {
    families_.CountForceCleanedFailedVolumeOperations(1, ok ? 0 : 1);
    if (ok) without_record_.erase(finished.key);
  }
  if (!orphans_.contains(finished.key)) return;
  if (ok) {
    orphans_.erase(finished.key);
    failed_orphans_.erase(finished.key);
    ++cleaned_orphans_;
  } else {
    failed_orphans_.insert(finished.key);
  }
  families_.SetOrphanPodCleanedVolumes(cleaned_orphans_,
                                       static_cast<int64_t>(failed_orphans_.size()));
}

}  // namespace volumed
