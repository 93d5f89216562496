// OverlappingRecordKeeper: a DeviceRecordKeeper for tasks that are suspended in the midst of a
// write.
#pragma once

#include <utility>

#include "operation/volume_record_keeper.h"
#include "unit/crash/overlapping_scheduler.h"

namespace volumed {

// Who waits for a row that is being written lets the writer run, which is a suspended task.
// Threads: those of the scheduler, one at a time.
class OverlappingRecordKeeper final : public DeviceRecordKeeper {
 public:
  // All arguments outlive this object.
  OverlappingRecordKeeper(OverlappingScheduler& scheduler, RecordStore& store, const Clock& clock,
                          Logger& logger, OperationObserver& observer, BootId boot_id)
      : DeviceRecordKeeper(store, clock, logger, observer, std::move(boot_id)),
        scheduler_(scheduler) {}

 private:
  void AwaitTurnEnd() NO_THREAD_SAFETY_ANALYSIS override {
    mu_.Unlock();
    struct LockedAgain {
      Mutex& mu;
      ~LockedAgain() NO_THREAD_SAFETY_ANALYSIS { mu.Lock(); }
    } const locked_again{mu_};
    scheduler_.AwaitOthers();
  }

  OverlappingScheduler& scheduler_;
};

}  // namespace volumed
