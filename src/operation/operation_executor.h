// OperationExecutor: runs operations beside the control thread, at most one per key, with back-off
// after a failure, and logs and reports each once.
// Source: kubernetes pkg/volume/util/nestedpendingoperations@v1.36.2.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/alive_guard.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/scheduler.h"
#include "kube/work_counter.h"
#include "operation/operation_lanes.h"
#include "operation/operation_observer.h"
#include "operation/volume_operations.h"

namespace volumed {

// How far an operation is; its thread writes this, and the control thread reads it. Threads: any.
class OperationProgress {
 public:
  // `clock` outlives this object. The time of a step is only for display.
  explicit OperationProgress(const Clock& clock) : clock_(clock) {}

  // Sets the name of the step that begins, and the time; nothing of it is done yet.
  void EnterStep(const std::string& step) EXCLUDES(mu_);
  std::string step() const EXCLUDES(mu_);
  int64_t step_since_unix_ms() const EXCLUDES(mu_);
  // Another program that the step waits for, such as a driver, and since when; "": none. It ends
  // with the step.
  void SetAwaited(const std::string& whom) EXCLUDES(mu_);
  AwaitedProgram awaited() const EXCLUDES(mu_);
  // How much of the step is done, in entries that the effect counts; 0 if it counts none.
  void SetDone(int64_t entries) { entries_.store(entries, std::memory_order_relaxed); }
  int64_t done() const { return entries_.load(std::memory_order_relaxed); }

 private:
  const Clock& clock_;
  mutable Mutex mu_;
  std::string step_ GUARDED_BY(mu_);
  int64_t step_since_unix_ms_ GUARDED_BY(mu_) = 0;
  AwaitedProgram awaited_ GUARDED_BY(mu_);
  std::atomic<int64_t> entries_{0};
};

// Two keys exclude each other if they name the same pod and volume, if one of them stands for the
// whole pod of the other (an empty spec), or if they name the same device.
// Source: nestedpendingoperations (isOperationExists).
bool KeysOverlap(const OperationKey& a, const OperationKey& b);

// Threads: the control thread. Blocks: never. An operation runs from Start() until its completion
// is called, also while it waits for its lane.
class OperationExecutor {
 public:
  // What the executor knows of an operation: it never sees the operation itself.
  using Operation = OperationTraits;
  // Runs on an executor thread and may block; returns nullopt if it succeeded.
  using Body = std::function<std::optional<OperationFailure>(OperationProgress&)>;
  // It is called on the control thread, once for each operation that was started, after it was
  // logged and reported; never if the executor is destroyed before. It may start other operations,
  // and may destroy the executor.
  using Completion = std::function<void(const std::optional<OperationFailure>&)>;

  // All arguments outlive this object and the bodies, which go on after it is destroyed. `domains`
  // may be null: see OperationLanes.
  OperationExecutor(Scheduler& scheduler, Logger& logger, OperationObserver& observer,
                    FaultDomains* domains = nullptr, LaneLimits limits = {},
                    Backoff::Options back_off = {});
  ~OperationExecutor();
  OperationExecutor(const OperationExecutor&) = delete;
  OperationExecutor& operator=(const OperationExecutor&) = delete;

  // kPending: an operation with an overlapping key runs, whatever its kind, or one that uses the
  // same device in a way that excludes this one. kBackoff: the same operation of the same key
  // failed lately. Another operation of the key may start at once; the back-off of the first is
  // then forgotten. Only after kStarted are `body` and `done` called.
  // Operations that wait for a closed lane keep the device from none that takes something away:
  // they are given up for it, as by GiveUpWaiting(), and their callers may start them again.
  // `waited` is called on the control thread before `body`, if the operation did not begin at once.
  StartResult Start(Operation operation, Body body, Completion done, Task waited = nullptr);

  // A member of a group of operations that are made together, each for itself: one that cannot
  // start is left out, and one that fails does so alone. The group has one place, without a domain
  // and without a device.
  struct Member {
    Operation operation;
    Completion done;
    // Whether the operation has not failed but was not tried either; then it has not ended. Empty:
    // never.
    std::function<bool()> left_out = nullptr;
  };
  // Gets the numbers of the members that were started, and answers for each of them.
  using GroupBody =
      std::function<OperationFailures(const std::vector<size_t>& started, OperationProgress&)>;
  // There is an answer for each member, in their order; `body` is not called if none was started.
  std::vector<StartResult> StartGroup(std::vector<Member> members, GroupBody body);

  // An operation of exactly this key that waits for its lane ends with Cancelled, not applied, and
  // without back-off, and so do the operations that are made together with it. An operation that
  // runs goes on, and one that takes something away keeps waiting. Their completions are called in
  // tasks of their own; they are neither logged nor reported.
  void GiveUpWaiting(const OperationKey& key);
  // These two are explained at OperationLanes.
  void LanesChanged() { lanes_.LanesChanged(); }
  void SetLimits(LaneLimits limits) { lanes_.SetLimits(limits); }

  // Whether an operation of an overlapping key runs. One of another key that uses the same device
  // does not count.
  bool IsPending(const OperationKey& key) const;
  // When the operation of this key that failed last may be tried again; nullopt if it may at once.
  std::optional<TimePoint> NextTry(const OperationKey& key) const;
  // Forgets the back-off of the key, and if it is that of a whole pod, those of the pod's volumes
  // too.
  void ResetBackoff(const OperationKey& key);
  // Running() has all that run, or wait for their lanes; FindRunning() has the one of exactly this
  // key, or nullopt.
  std::vector<RunningOperation> Running() const;
  std::optional<RunningOperation> FindRunning(const OperationKey& key) const;

  // See OperationLanes.
  std::map<std::string, int> WaitingForDrivers() const { return lanes_.WaitingForDrivers(); }

  // The one that uses the device exclusively, runs, or waits for its lane; nullopt if none does.
  std::optional<RunningOperation> FindOwner(const UniqueVolumeName& device) const;

  // How many running operations, and devices in use, were looked at in order to start others.
  const WorkCounter& work() const { return work_; }

 private:
  // Operations that share one place and one thread.
  struct Group {
    std::vector<OperationKey> keys;
    std::vector<size_t> numbers;  // of the members with these keys
    TimePoint started;
    int64_t started_unix_ms = 0;
    std::shared_ptr<OperationProgress> progress;
    GroupBody body;
    Task waited = nullptr;  // null: the group did not wait, or nobody wants to know
    OperationLanes::PlaceId place = 0;
    OperationLanes::Kind kind;
  };
  using GroupPtr = std::shared_ptr<Group>;
  struct Active {
    Operation operation;
    GroupPtr group;
    Completion done = {};
    std::function<bool()> left_out = nullptr;
  };
  using Failures = std::vector<std::optional<OperationFailure>>;
  // Which running operations use one device, and how many of them in which way. One that uses it
  // exclusively is the only one.
  struct DeviceUsers {
    int shared = 0;
    int exclusive = 0;
    std::set<OperationKey> keys;
  };

  // Only these two change what runs, so that the index of devices agrees with it.
  void Add(Member member, const GroupPtr& group);
  Active Take(const OperationKey& key);
  StartResult CheckStart(const Operation& operation);
  void MakeWay(const Operation& operation);
  bool BacksOff(const Operation& operation) const;
  void Enter(const GroupPtr& group, const FaultDomain& domain);
  void Begin(const GroupPtr& group);
  void Finish(const GroupPtr& group, const Failures& failures);
  bool DeviceIsBusy(const Operation& operation) const;
  RunningOperation Describe(const OperationKey& key, const Active& active) const;
  void Ended(const OperationKey& key, const Active& finished, Duration elapsed,
             const std::optional<OperationFailure>& failure);
  void LogFinished(const Active& running, Duration elapsed,
                   const std::optional<OperationFailure>& failure);
  void NoteOutcome(const Operation& operation, const std::optional<OperationFailure>& failure);

  Scheduler& scheduler_;
  Logger& logger_;
  OperationObserver& observer_;
  Backoff backoff_;
  OperationLanes lanes_;
  std::map<OperationKey, Active> running_;
  // Devices of the operations that run: the cost of a start does not depend on how many there are.
  std::map<UniqueVolumeName, DeviceUsers> device_users_;
  mutable WorkCounter work_;
  std::map<OperationKey, std::string> last_failed_;  // key -> the operation that backs off
  // The bodies outlive this object, so their completion looks here first.
  AliveGuard alive_;
};

}  // namespace volumed
