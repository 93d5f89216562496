// VolumeRecordKeeper: the one place that assigns a state to a volume of a pod. It asks the table,
// writes the record, and only then lets the new state be seen.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "operation/operation_observer.h"
#include "operation/volume_record.h"
#include "operation/volume_state.h"
#include "records/record_store.h"

namespace volumed {

// Threads: any; calls for one key one at a time (the executor's keys see to it), except that an
// answer may come late. Blocks: BeginCall, EndCall and Forget, until the store has answered.
class VolumeRecordKeeper {
 public:
  // All outlive this. `observer` is told of each assignment, on the thread that made it.
  VolumeRecordKeeper(RecordStore& store, const Clock& clock, Logger& logger,
                     OperationObserver& observer, BootId boot_id);

  // A row of the store, as AfterRestart leaves it.
  void Restore(PodVolumeRecord record) EXCLUDES(mu_);

  std::optional<PodVolumeRecord> Find(const PodVolumeKey& key) const EXCLUDES(mu_);
  std::vector<PodVolumeRecord> FindOfPod(const PodUid& pod) const EXCLUDES(mu_);

  // The intent: assigns the in-call state that `call` leads to, and answers the attempt's number.
  // `facts` gives everything of the record but state, uncertainty, boot id, time and attempt.
  // Errors, all not applied: FailedPrecondition, when the call cannot be made in the volume's
  // state, saying why; those of the store. A disk that takes no writes (full, read-only, EIO) does
  // not stop a kTearDown or kUnmapVolume of a volume that has a row already: whatever that row
  // says, a restart finds the volume by it.
  Result<uint64_t> BeginCall(PodVolumeRecord facts, VolumeEvent call) EXCLUDES(mu_);

  // The answer: assigns the state that follows. Where that is "nothing there", the row goes.
  // Errors: Aborted, not applied, when the volume has moved on since `attempt` (the answer of a
  // call that was given up); those of the store, as maybe applied: the volume then stays in call,
  // uncertain. Nor does it fail the end of a teardown: the row goes with its pod.
  Status EndCall(const PodVolumeKey& key, uint64_t attempt, CallAnswer answer) EXCLUDES(mu_);

  // Removes what rows are left of a pod. FailedPrecondition, not applied, when a volume of it is
  // not torn down, naming it.
  Status ForgetPod(const PodUid& pod) EXCLUDES(mu_);

 private:
  struct Entry {
    PodVolumeRecord record;
    bool stored = false;  // the store has a row of the volume, of this state or an earlier one
    bool gone = false;    // torn down; only the row could not be removed
  };
  enum class RowChange { kNone, kPut, kRemove };

  Entry EntryOf(const PodVolumeKey& key) const EXCLUDES(mu_);
  Result<Entry> PlanCall(const Entry& now, PodVolumeRecord facts, VolumeEvent call);
  // The one function that assigns: writes the row, then lets `next` be seen. An error: nothing is.
  Status Assign(Entry next, RowChange change) EXCLUDES(mu_);
  void LogTolerated(const PodVolumeRecord& record, const Error& error);

  RecordStore& store_;
  const Clock& clock_;
  Logger& logger_;
  OperationObserver& observer_;
  const BootId boot_id_;
  std::atomic<uint64_t> last_attempt_{0};  // of all volumes: no number is used twice

  mutable Mutex mu_;
  std::map<PodVolumeKey, Entry> entries_ GUARDED_BY(mu_);
};

}  // namespace volumed
