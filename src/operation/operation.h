// An operation is a value: one struct with its key, what it uses, and how it runs. The structs are
// in mount_operations.h, map_operations.h, device_operations.h, attach_operations.h,
// expand_operations.h, storage_operations.h, reclaim_operations.h and provision_operations.h;
// whoever starts one, runs one or stands in for it (a fake, a seeded bug) does so here, in one way.
//
// Of a struct `Op` it is required:
//   using Value                                   what it answers; OperationOf<Value> says it
//   OperationKey key() const                      which operations it excludes, and its back-off
//   OperationTraits Traits(const OperationParts&) const
//                                                 its name, its device and how it uses it, what it
//                                                 may hang with; the control thread asks
//   std::optional<OperationFailure> Run(const OperationParts&, OperationProgress&, Value&) const
//                                                 on an executor thread, may block
// and it may have:
//   void Waited()                                 it has waited for its lane, perhaps for days, and
//                                                 begins now: what it was given may be old; on the
//                                                 control thread, before Run
//   void Tell(const OperationParts&, const OperationOutcome<Value>&) const
//                                                 events, on the control thread, before whoever
//                                                 started it hears of its end
//   std::optional<VolumePlace> PlaceInGroup(const OperationParts&) const
//   static OperationFailures RunTogether(const OperationParts&, const std::vector<const Op*>&,
//                                        const std::vector<Value*>&, OperationProgress&)
//                                                 several of one VolumePlace::directory, at the
//                                                 price of one, and each for itself
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "os/fault_domain.h"
#include "os/safe_path.h"

namespace volumed {

struct OperationParts;
class OperationProgress;

// Identifies what an operation works on, for its back-off and for display: a volume of a pod, a
// whole pod (an empty spec), or the device of a volume that pods of the node share. Operations on
// something else have a text of their own in place of the device, such as "reclaim/pv-1".
struct OperationKey {
  PodUid pod;
  SpecName spec;
  UniqueVolumeName device;

  OperationKey() = default;
  OperationKey(PodUid of_pod, SpecName of_spec)
      : pod(std::move(of_pod)), spec(std::move(of_spec)) {}
  OperationKey(const PodVolumeKey& key)
      : pod(key.pod), spec(key.spec) {}  // NOLINT: one of the three
  explicit OperationKey(UniqueVolumeName of_device) : device(std::move(of_device)) {}

  bool is_device() const { return !device.empty(); }
  // Both parts are empty for a device.
  PodVolumeKey pod_volume() const { return {pod, spec}; }
  friend auto operator<=>(const OperationKey&, const OperationKey&) = default;
  // "<pod uid>/<volume>", or the text of the device. It is also the key that a worker locks while
  // it works (CallOptions::key).
  std::string ToString() const { return is_device() ? device.str() : pod_volume().ToString(); }
};

// Says which step failed; for `explain`.
struct OperationFailure {
  std::string operation;  // "volume_mount"
  std::string step;       // "SetUp"
  // The error of the step. Its outcome is the operation's: an error after a step that has changed
  // something is maybe applied.
  Error error;
  // The outcome of the step alone, if it differs: for example a refusal after a step that has
  // changed the volume.
  std::optional<Outcome> step_outcome = std::nullopt;
};

// The step of an operation that waits for room in its lane, and of one that waits for a driver.
inline constexpr const char* kWaitForWorker = "WaitForWorker";
inline constexpr const char* kWaitForDriver = "WaitForDriver";

// Whether the operation was given up while it waited for its driver: it has tried nothing.
inline bool NeverReachedItsDriver(const OperationFailure& failure) {
  return failure.step == kWaitForDriver;
}

// How an operation has ended. Exactly one of the two is set.
template <typename T>
struct OperationOutcome {
  std::optional<T> value;                   // set on success
  std::optional<OperationFailure> failure;  // set otherwise
};

template <typename T>
OperationOutcome<T> OutcomeOf(const std::optional<OperationFailure>& failure, T value) {
  OperationOutcome<T> outcome;
  if (failure) {
    outcome.failure = failure;
  } else {
    outcome.value = std::move(value);
  }
  return outcome;
}

// An answer for each of several operations; nullopt if it succeeded.
using OperationFailures = std::vector<std::optional<OperationFailure>>;

// How an operation uses the device of its volume.
enum class DeviceUse {
  kNone,
  // Beside others that share it: the operation takes a pod's bind away.
  kShared,
  // Alone: the operation mounts or unmounts the device, or makes a pod's bind; or it takes one
  // away by a call to a driver, which gets one at a time for a volume.
  kExclusive,
};

// What is known of an operation before it runs. It is asked once, on the control thread, before the
// operation waits for its lane.
struct OperationTraits {
  OperationKey key;
  std::string name;  // "volume_mount"
  // For logs and metrics, with the driver if the volume is a driver's: "kubernetes.io/csi:d.io".
  std::string plugin_name;
  // "namespace/name", for logs; "" if the operation is not of one pod.
  std::string pod_display_name;
  // The device that the operation uses, and how; empty if it uses none.
  UniqueVolumeName device = {};
  DeviceUse use = DeviceUse::kNone;
  // Others that it uses exclusively: it begins when it can have all of them, and until then it has
  // none.
  std::set<UniqueVolumeName> more_devices = {};
  // What the operation may hang with, as in its calls (CallOptions::domain). If too many operations
  // are in the domain, or its lane is closed, it waits without a thread. The name is empty for
  // things that no worker waits for (a device that is to appear), and for an operation that uses
  // only the agent's own filesystem:
  FaultDomain domain = {};
  bool on_own_filesystem = false;
  // These are explained at OperationLanes::Enter.
  bool takes_away = false;
  bool with_many = false;
  bool finishes = false;
  bool migrated = false;  // VolumeSpec::migrated(); for metrics
};

// The place of a volume that may be made together with others, as in VolumeTarget. Those with one
// `directory`, such as a pod's, may be a group.
struct VolumePlace {
  PodVolumeKey key;
  SafePath place;
  SafePath directory;
};

template <typename T>
struct OperationOf {
  using Value = T;
};

// An operation of any kind that was started. Threads: Run and RunTogether on one executor thread,
// everything else on the control thread, before or after them.
class AnyOperation {
 public:
  virtual ~AnyOperation() = default;
  virtual OperationKey key() const = 0;
  virtual OperationTraits Traits(const OperationParts& parts) const = 0;
  // See above; not called for an operation that is made together with others.
  virtual void Waited() {}
  virtual std::optional<OperationFailure> Run(const OperationParts& parts,
                                              OperationProgress& progress) = 0;

  // Set if the operation may be made together with others of its kind in the same directory.
  virtual std::optional<VolumePlace> PlaceInGroup(const OperationParts& parts) const = 0;
  // REQUIRES: all are of this operation's kind, and this is the first of them.
  virtual OperationFailures RunTogether(const OperationParts& parts,
                                        const std::vector<AnyOperation*>& all,
                                        OperationProgress& progress) = 0;

  // Whether RunTogether has answered that the operation cannot be made together with others. It was
  // not tried then and has not ended; it is run alone.
  virtual bool IsLeftOut() const { return false; }

  // The operation has ended: records events, and then tells its caller.
  virtual void End(const OperationParts& parts, const std::optional<OperationFailure>& failure) = 0;
};

// A started operation of one kind: the operation, its answer, and the caller that waits for it.
template <typename Op>
class StartedOperation final : public AnyOperation {
 public:
  using Value = typename Op::Value;
  using Done = std::function<void(const OperationOutcome<Value>&)>;

  StartedOperation(Op operation, Done done)
      : operation_(std::move(operation)), done_(std::move(done)) {}

  const Op& operation() const { return operation_; }
  // Ends it without events; for a stand-in of whatever runs operations.
  void Finish(const OperationOutcome<Value>& outcome) { done_(outcome); }

  OperationKey key() const override { return operation_.key(); }
  OperationTraits Traits(const OperationParts& parts) const override {
    return operation_.Traits(parts);
  }
  void Waited() override {
    if constexpr (requires(Op & operation) { operation.Waited(); }) operation_.Waited();
  }
  std::optional<OperationFailure> Run(const OperationParts& parts,
                                      OperationProgress& progress) override {
    if constexpr (kMayBeLeftOut) value_.left_out = false;
    return operation_.Run(parts, progress, value_);
  }
  std::optional<VolumePlace> PlaceInGroup(const OperationParts& parts) const override {
    if constexpr (kMayRunTogether) return operation_.PlaceInGroup(parts);
    return std::nullopt;
  }
  OperationFailures RunTogether(const OperationParts& parts, const std::vector<AnyOperation*>& all,
                                OperationProgress& progress) override;
  bool IsLeftOut() const override {
    if constexpr (kMayBeLeftOut) return value_.left_out;
    return false;
  }
  void End(const OperationParts& parts, const std::optional<OperationFailure>& failure) override {
    const OperationOutcome<Value> outcome = OutcomeOf(failure, std::move(value_));
    if constexpr (requires { operation_.Tell(parts, outcome); }) {
      // What has tried nothing has failed at nothing: it is no event.
      if (!failure || !NeverReachedItsDriver(*failure)) operation_.Tell(parts, outcome);
    }
    done_(outcome);
  }

 private:
  static constexpr bool kMayBeLeftOut = requires(const Value& value) { value.left_out; };
  static constexpr bool kMayRunTogether =
      requires(const Op& operation, const OperationParts& parts) {
    operation.PlaceInGroup(parts);
  };

  Op operation_;  // nothing but Waited() changes it
  Value value_{};
  const Done done_;
};

template <typename Op>
OperationFailures StartedOperation<Op>::RunTogether(const OperationParts& parts,
                                                    const std::vector<AnyOperation*>& all,
                                                    OperationProgress& progress) {
  OperationFailures failures;
  if constexpr (kMayRunTogether) {
    std::vector<const Op*> operations;
    std::vector<Value*> values;
    for (AnyOperation* const one : all) {
      auto& started = static_cast<StartedOperation&>(*one);
      operations.push_back(&started.operation_);
      values.push_back(&started.value_);
    }
    failures = Op::RunTogether(parts, operations, values, progress);
  } else {
    for (AnyOperation* const one : all) failures.push_back(one->Run(parts, progress));
  }
  return failures;
}

// Null if the operation is of another kind.
template <typename Op>
StartedOperation<Op>* As(AnyOperation& operation) {
  return dynamic_cast<StartedOperation<Op>*>(&operation);
}

}  // namespace volumed
