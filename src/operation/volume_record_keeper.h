// RecordKeeper: the only class that assigns a state to a volume of a pod, or to a device. It asks
// the table, writes the record, and only then lets the new state be seen.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
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

// What differs between the kinds of records; specialised in the source file.
template <typename T>
struct RecordTraits;
template <>
struct RecordTraits<PodVolumeRecord> {
  using Key = PodVolumeKey;
};
template <>
struct RecordTraits<DeviceRecord> {
  using Key = UniqueVolumeName;
};

// What device_record_keeper.cc looks devices up by.
std::string MountPathTrait(const std::string& device_mount_path);
std::string MappedTrait(uint32_t device_major, uint32_t device_minor);

// Whether it is the disk that takes no writes; a store that is closed or refuses is another matter.
// Threads: any. Blocks: never.
bool CannotBeWritten(const Error& error);

// Threads: any; calls for one key come one at a time (the executor's keys ensure that), except that
// an answer may come late. Blocks: BeginCall, EndCall and Forget, until the store has answered.
template <typename T>
class RecordKeeper {
 public:
  using Key = typename RecordTraits<T>::Key;

  // All arguments outlive this object. `observer` is told of each assignment, on the thread that
  // made it.
  RecordKeeper(RecordStore& store, const Clock& clock, Logger& logger, OperationObserver& observer,
               BootId boot_id);
  virtual ~RecordKeeper() = default;
  RecordKeeper(const RecordKeeper&) = delete;
  RecordKeeper& operator=(const RecordKeeper&) = delete;

  // Takes a row of the store, as AfterRestart leaves it.
  void Restore(T record) EXCLUDES(mu_);

  // A copy of the record; nullopt if there is none, and for a volume that was taken away while its
  // row could not be removed.
  std::optional<T> Find(const Key& key) const EXCLUDES(mu_);

  // Whether there is a record of which this is true. Looks at all; `is` may not use the keeper.
  bool HasAny(const std::function<bool(const T&)>& is) const EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    for (const auto& [key, entry] : entries_) {
      if (!entry.gone && is(entry.record)) return true;
    }
    return false;
  }

  // Records the intent: assigns the in-call state to which `call` leads, and returns the attempt's
  // number. `facts` gives everything of the record except state, uncertainty, boot id, time and
  // attempt, and what CarryOver in the source file takes from the row before, as the format.
  // Errors, all not applied: FailedPrecondition, with the reason, if the call cannot be made in the
  // volume's state; Aborted if its row is just being written; those of the store. A disk that takes
  // no writes (full, read-only, EIO) does not stop a call that takes away a volume which already
  // has a row: whatever that row says, a restart finds the volume by it. Nor does it stop a call
  // that brings the content of a volume up to date that is set up.
  Result<uint64_t> BeginCall(T facts, VolumeEvent call) EXCLUDES(mu_);

  // The same for several volumes at the price of one; each stands for itself.
  struct Call {
    T facts;
    VolumeEvent event = VolumeEvent::kSetUp;
  };
  std::vector<Result<uint64_t>> BeginCalls(std::vector<Call> calls) EXCLUDES(mu_);

  struct CallEnd {
    Key key;
    uint64_t attempt = 0;
    CallAnswer answer = CallAnswer::kDone;
    PublishedContent published = {};  // if a pod's volume is set up now
    // What a pod has by now, whatever the answer; empty: as before.
    GivenStorage storage = {};
  };
  // Records the answer: assigns the state that follows. If that is "nothing there", the row is
  // removed. Errors: Aborted, not applied, if the volume has moved on since `attempt` (the answer
  // of a call that was given up); those of the store, as maybe applied: the volume then stays in
  // call, uncertain. A disk that takes no writes does not fail the end of a teardown; the row is
  // removed later.
  Status EndCall(const CallEnd& end) EXCLUDES(mu_) { return EndCalls({end}).front(); }
  Status EndCall(const Key& key, uint64_t attempt, CallAnswer answer) EXCLUDES(mu_) {
    return EndCall({key, attempt, answer});
  }
  std::vector<Status> EndCalls(const std::vector<CallEnd>& ends) EXCLUDES(mu_);

 protected:
  struct Entry {
    T record;
    // The store has a row of the volume, of this state or an earlier one.
    bool stored = false;
    // The volume was taken away; only the row could not be removed.
    bool gone = false;
    // A call about it goes on; a state "in call" may also be that of one whose outcome is open.
    bool in_call = false;
  };
  enum class RowEffect { kNone, kPut, kRemove };

  Entry EntryOf(const Key& key) const EXCLUDES(mu_);
  // The keys of the records with this trait, of those that IndexedBy in the source file gives them;
  // also of such as are gone.
  const std::set<Key>& KeysOf(const std::string& trait) const REQUIRES(mu_);
  // The only functions that change entries_, for each change is one of the index as well.
  void PutEntry(const Key& key, Entry entry) REQUIRES(mu_);
  void EraseEntry(const Key& key) REQUIRES(mu_);

  // As long as it lives, its key's row is read, changed and written by one alone: of those that may
  // meet, the one that comes later does nothing, or waits for the other's write. Who waits has no
  // other turn.
  enum class IfTaken { kDoNothing, kWait };
  class Turn {
   public:
    Turn(RecordKeeper& keeper, const Key& key, IfTaken if_taken);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    bool is_mine() const { return is_mine_; }

   private:
    RecordKeeper& keeper_;
    const Key key_;
    bool is_mine_ = false;
  };
  // Blocks until a turn has ended; may return before. Virtual for tests that run one task at a
  // time: there whoever has the turn may be suspended, and has to be let run.
  virtual void AwaitTurnEnd() REQUIRES(mu_) { turn_ended_.Wait(mu_); }
  // Aborted, not applied.
  static Error BeingWritten(const Key& key);

  struct Assignment {
    Entry next;
    RowEffect row = RowEffect::kNone;
  };
  // The only function that assigns: writes the rows, then lets each `next` be seen whose row was
  // written. After an error that one is not seen.
  std::vector<Status> AssignAll(std::vector<Assignment> assignments) EXCLUDES(mu_);
  Status Assign(Entry next, RowEffect row) EXCLUDES(mu_) {
    return AssignAll({{std::move(next), row}}).front();
  }

  // A call goes on, or a teardown ends, although the disk takes no writes.
  void LogTolerated(const T& record, const Error& error);

  RecordStore& store_;
  const Clock& clock_;
  mutable Mutex mu_;
  std::map<Key, Entry> entries_ GUARDED_BY(mu_);
  std::map<std::string, std::set<Key>> keys_by_trait_ GUARDED_BY(mu_);
  std::set<Key> turns_ GUARDED_BY(mu_);
  CondVar turn_ended_;

 private:
  Result<Entry> PlanCall(const Entry& now, T facts, VolumeEvent call);
  // The assignment to which an answer leads.
  Result<Assignment> PlanEnd(const Entry& now, const CallEnd& end);
  static bool IsToBeSynced(const Entry& now, const T& next);
  // Decides about a volume whose row could not be written when its call ended.
  Status EndUnwritten(const Entry& now, const Assignment& planned, CallAnswer answer,
                      const Error& error) EXCLUDES(mu_);
  void Show(Assignment assignment) EXCLUDES(mu_);
  void LeaveIndex(const T& record, const Key& key) REQUIRES(mu_);

  Logger& logger_;
  OperationObserver& observer_;
  const BootId boot_id_;
  std::atomic<uint64_t> last_attempt_{0};  // of all volumes, so that no number is used twice
};

extern template class RecordKeeper<PodVolumeRecord>;
extern template class RecordKeeper<DeviceRecord>;

// The volumes of pods; in pod_volume_record_keeper.cc. Threads, Blocks: as RecordKeeper.
class VolumeRecordKeeper final : public RecordKeeper<PodVolumeRecord> {
 public:
  using RecordKeeper::RecordKeeper;

  // The records of the pod's volumes of which something is on the node, or may be; in the order of
  // their names.
  std::vector<PodVolumeRecord> FindOfPod(const PodUid& pod) const EXCLUDES(mu_);
  // Volumes that are bound from this device, in whichever state; in the order of their keys.
  std::vector<PodVolumeRecord> FindOfDevice(const UniqueVolumeName& device) const EXCLUDES(mu_);
  // Removes the rows that are left of a pod. Errors: FailedPrecondition, not applied, naming a
  // volume that is not torn down.
  Status ForgetPod(const PodUid& pod) EXCLUDES(mu_);
};

// The devices of the node; in device_record_keeper.cc. A row that says something of a filesystem
// stays when the device is unmounted: half a filesystem must be recognised as the agent's own, and
// a whole one must never be made again. Threads, Blocks: as RecordKeeper.
class DeviceRecordKeeper : public RecordKeeper<DeviceRecord> {
 public:
  using RecordKeeper::RecordKeeper;

  void Restore(DeviceRecord record) EXCLUDES(mu_);

  // Sets where the device is on the node, as the present call has found out; durable when it
  // returns. Errors, not applied: FailedPrecondition if no call on it is being made; those of the
  // store.
  Status SetDevicePath(const UniqueVolumeName& device, const std::string& path) EXCLUDES(mu_);

  // Sets how the volume was attached, as the present call has found out; durable when it returns.
  // `node_id` is empty unless a driver's controller was called. Errors: as of SetDevicePath().
  Status SetAttachment(const UniqueVolumeName& device, AttachWay way, const std::string& node_id,
                       const StringMap& publish_context) EXCLUDES(mu_);
  // Sets whether the driver is called to stage the volume, before it is; durable when it returns.
  // Errors: as of SetDevicePath().
  Status SetStaged(const UniqueVolumeName& device, bool staged) EXCLUDES(mu_);

  // Keeps what is mounted of the volume before its driver is called to make it larger; of a path
  // that the row has already, what it says stays. Durable when it returns. Errors, not applied:
  // FailedPrecondition unless the volume is being expanded; those of the store.
  Status RememberBeforeGrowth(const UniqueVolumeName& device,
                              const std::vector<MountBeforeGrowth>& places) EXCLUDES(mu_);
  // What may be mounted at these paths is not held against that any more; durable when it returns.
  // Costs no write if the row says nothing of them. Errors, not applied: those of the store.
  Status ForgetBeforeGrowth(const UniqueVolumeName& device, const std::vector<std::string>& paths)
      EXCLUDES(mu_);

  // Gives the volume to this pod alone, which may have it already; durable when it returns. Of
  // several pods that ask at once one gets it. Errors, not applied: FailedPrecondition if another
  // pod has it, or is just being given it, and unless the device is mounted or set up; those of the
  // store.
  Status TakeOnlyPod(const UniqueVolumeName& device, const PodUid& pod) EXCLUDES(mu_);
  // The pod does not have the volume any more; success if another one has it, or none. Durable when
  // it returns, unless the disk takes no writes: then the row stays until the pod's removal, or the
  // device's next call, writes it. Errors, not applied: those of the store else.
  Status ReleaseOnlyPod(const UniqueVolumeName& device, const PodUid& pod) EXCLUDES(mu_);
  // The same for all volumes of the pod, of which nothing is left on the node: always durable.
  // Errors, not applied: those of the store; Aborted while a call about such a volume is being
  // made, whose row is its own.
  Status ReleaseOnlyPods(const PodUid& pod) EXCLUDES(mu_);

  // Whether a device, in whichever state, has its mount there.
  bool IsMountPath(const std::string& path) const EXCLUDES(mu_);

  // The block volume other than this one whose pods are given this device; nullopt: none.
  std::optional<UniqueVolumeName> FindOtherMapped(uint32_t device_major, uint32_t device_minor,
                                                  const UniqueVolumeName& but) const EXCLUDES(mu_);

  // The volume has ended. Errors: FailedPrecondition, not applied, unless it is unmounted; those of
  // the store.
  Status Forget(const UniqueVolumeName& device) EXCLUDES(mu_);

  // Sets (or, with nullopt, removes) the format of a device that is being mounted; durable when it
  // returns. Errors, not applied: FailedPrecondition if no call on it is being made; those of the
  // store.
  Status SetFormat(const UniqueVolumeName& device, std::optional<FormatRecord> format)
      EXCLUDES(mu_);
  // Sets the block device that pods are given, as identified in this boot; durable when it returns.
  // Errors, not applied: FailedPrecondition unless the device is set up; those of the store.
  Status SetMapped(const UniqueVolumeName& device, MappedDeviceRecord mapped) EXCLUDES(mu_);

  // Sets the proven size of a volume that is being expanded; its target is reached. Errors, not
  // applied: FailedPrecondition if it is not being expanded; those of the store.
  Status SetSize(const UniqueVolumeName& device, int64_t size_bytes) EXCLUDES(mu_);

 private:
  Status WriteReleased(const UniqueVolumeName& device, const PodUid& pod) EXCLUDES(mu_);

  // The pods that are just being given a volume alone.
  std::map<UniqueVolumeName, PodUid> only_pods_begun_ GUARDED_BY(mu_);
  // The volumes whose rows say that a pod alone may have them, or may say it after a failed write.
  std::map<PodUid, std::set<UniqueVolumeName>> only_pods_ GUARDED_BY(mu_);
};

}  // namespace volumed
