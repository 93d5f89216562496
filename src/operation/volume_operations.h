// VolumeOperations: what the volume manager can have done to the node. Each is one operation
// (operation/operation.h): a list of steps with intent records, run off the control thread, one at
// a time per key, with back-off after a failure. Only the operation layer writes the records,
// measures and logs. Source: kubernetes
// pkg/volume/util/operationexecutor/operation_executor.go@v1.36.2.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "operation/operation.h"
#include "operation/storage_record.h"
#include "operation/volume_requests.h"

namespace volumed {

enum class StartResult {
  // `done` will be called once, on the control thread, unless the agent ends first.
  kStarted,
  kPending,  // an operation of this key runs; `done` is not called
  kBackoff,  // see NextTry; `done` is not called
};

// What an operation waits for before it begins.
struct LaneWait {
  // "filesystem 0:45 (nfs4 at /mnt) has 4 workers that do not answer since ..."
  std::string text;
  bool does_not_answer = false;  // it waits until somebody repairs what hangs, or is away
  std::string step = kWaitForWorker;
};

// An operation that runs now; for `explain`, `top` and the list of stuck operations. Times are in
// Unix milliseconds.
// Another program that an operation waits for: "CSI driver x: NodeStageVolume".
struct AwaitedProgram {
  std::string whom;  // "": none
  int64_t since_unix_ms = 0;
};

struct RunningOperation {
  OperationKey key;
  std::string operation;
  std::string step;  // while it waits for its lane: LaneWait::step
  int64_t since_unix_ms = 0;
  int64_t step_since_unix_ms = 0;  // 0: no step has begun
  int64_t progress = 0;            // entries done, if the step reports them
  // Set while the operation waits for room in its lane and has not begun.
  std::optional<LaneWait> waits_for = {};
  AwaitedProgram awaited = {};
};

// Threads: the control thread, for every method; `done` is called there, and never from within the
// call that starts. Blocks: never. Errors: those of the operation, in its outcome; whether a failed
// one is tried again is its caller's business.
class VolumeOperations {
 public:
  template <typename Op>
  using Done = std::function<void(const OperationOutcome<typename Op::Value>& outcome)>;
  template <typename Op>
  using EachDone =
      std::function<void(size_t number, const OperationOutcome<typename Op::Value>& outcome)>;

  virtual ~VolumeOperations() = default;

  template <typename Op>
  StartResult Start(Op operation, Done<Op> done) {
    std::vector<std::unique_ptr<AnyOperation>> one;
    one.push_back(std::make_unique<StartedOperation<Op>>(std::move(operation), std::move(done)));
    return StartAll(std::move(one)).front();
  }

  // Starts several operations of one kind and, if they are of pods, of one pod. Those that can are
  // made together, at the price of one, and each for itself. There is an answer for each, in this
  // order; `done` is called with the number of each that was started.
  template <typename Op>
  std::vector<StartResult> StartEach(std::vector<Op> operations, const EachDone<Op>& done) {
    std::vector<std::unique_ptr<AnyOperation>> all;
    all.reserve(operations.size());
    for (Op& operation : operations) {
      all.push_back(std::make_unique<StartedOperation<Op>>(
          std::move(operation),
          [number = all.size(), done](const auto& outcome) { done(number, outcome); }));
    }
    return StartAll(std::move(all));
  }

  // The same for operations whose kind is not known here. There is an answer for each; an operation
  // that was not started never reports its end.
  virtual std::vector<StartResult> StartAll(
      std::vector<std::unique_ptr<AnyOperation>> operations) = 0;

  // An operation of this key that has not begun, because its lane has no room, is not wanted any
  // more: it soon ends with Cancelled, not applied. An operation that runs goes on.
  virtual void GiveUpWaiting(const OperationKey& /*key*/) {}

  // Sets all unknown volumes. As long as the storage of one of them is not on record, nothing is
  // formatted, deleted or recycled for another volume. Returns the volumes for which that was
  // refused since the last call: what they wanted may be tried again.
  virtual std::set<std::string> SetUnknownVolumes(std::vector<UnknownVolume> unknown) = 0;

  // The PersistentVolume names this storage of a driver from now on; null: none. Whoever deletes or
  // makes storage is told of it at that very moment, also if he was asked to before.
  virtual void NameStorage(const std::string& /*volume*/, const StorageName* /*name*/) {}
  // Nothing is being made for this volume any more.
  virtual void ForgetMade(const std::string& /*volume*/) {}
  // Adds the deletions that the last agent has begun, so that VolumesBeingDeleted() has them before
  // anything is decided.
  virtual void ExpectDeletions(const std::vector<StorageReservationRecord>& /*begun*/) {}
  // The PersistentVolumes that name what is being deleted for somebody else, with a text for people
  // each: nobody is to get them.
  virtual std::map<std::string, std::string> VolumesBeingDeleted() const { return {}; }

  // Whether an operation of an overlapping key (KeysOverlap) runs, or waits for its lane.
  virtual bool IsPending(const OperationKey& key) const = 0;
  // When the key may be tried again; nullopt if it does not back off.
  virtual std::optional<TimePoint> NextTry(const OperationKey& key) const = 0;
  // Forgets the back-off, since something happened that may have removed the cause. The key of a
  // whole pod stands for its volumes too.
  virtual void ResetBackoff(const OperationKey& key) = 0;
  // The fault domain that is on record of a pod's volume, or of a device; "" if there is no record.
  virtual std::string FaultDomainOf(const OperationKey& /*key*/) const { return ""; }
  // All operations that run, or wait for their lanes.
  virtual std::vector<RunningOperation> Running() const = 0;
  // The operation of this key, at the cost of one look-up; nullopt if none runs.
  virtual std::optional<RunningOperation> FindRunning(const OperationKey& key) const = 0;
  // The operation that has the device for itself, and so keeps others of the device from beginning;
  // nullopt if none has.
  virtual std::optional<RunningOperation> FindOwner(const UniqueVolumeName& /*device*/) const {
    return std::nullopt;
  }
};

}  // namespace volumed
