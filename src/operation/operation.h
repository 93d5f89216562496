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

// What an operation is of, for its back-off and for whoever shows it: a volume of a pod, a whole
// pod (an empty spec), or the device of a volume that pods of the node share.
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
  PodVolumeKey pod_volume() const { return {pod, spec}; }
  friend auto operator<=>(const OperationKey&, const OperationKey&) = default;
  std::string ToString() const { return is_device() ? device.str() : pod_volume().ToString(); }
};

// Which step failed, for explain.
struct OperationFailure {
  std::string operation;  // "volume_mount"
  std::string step;       // "SetUp"
  Error error;            // its outcome is the operation's
  // The outcome of the step alone, if it is another one: a refusal after a step that has changed
  // the volume.
  std::optional<Outcome> step_outcome = std::nullopt;
};

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

// An answer for each of several operations; nothing where it succeeded.
using OperationFailures = std::vector<std::optional<OperationFailure>>;

// How an operation needs the device of its volume.
enum class DeviceUse {
  kNone,
  kShared,     // beside others that share it: a pod's bind is taken away
  kExclusive,  // alone: the device is mounted or unmounted, a pod's bind is made
};

// What is known of an operation before it runs.
struct OperationTraits {
  OperationKey key;
  std::string name;         // "volume_mount"
  std::string plugin_name;  // for logs and metrics
  std::string pod_display_name;
  UniqueVolumeName device = {};  // that it uses, in this way:
  DeviceUse use = DeviceUse::kNone;
  // What it may hang with, as its calls have it (CallOptions::domain): beyond the limits it waits
  // without a thread. Empty for things that no worker waits for (a device that is to appear), and
  // for what waits for nothing but the agent's own filesystem:
  FaultDomain domain = {};
  bool on_own_filesystem = false;
  // See OperationLanes::Enter.
  bool takes_away = false;
  bool with_many = false;
};

// The volume of an operation that may be made together with others, as VolumeTarget has it.
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
  virtual std::optional<OperationFailure> Run(const OperationParts& parts,
                                              OperationProgress& progress) = 0;

  // If it may be made together with others of its kind, in the same directory.
  virtual std::optional<VolumePlace> PlaceInGroup(const OperationParts& parts) const = 0;
  // REQUIRES: all are of this one's kind, and this is the first of them.
  virtual OperationFailures RunTogether(const OperationParts& parts,
                                        const std::vector<AnyOperation*>& all,
                                        OperationProgress& progress) = 0;

  // RunTogether has answered that it cannot be made together with others, and has not tried it: it
  // has not ended, and is run by itself.
  virtual bool IsLeftOut() const { return false; }

  // It has ended: events, and then whoever has started it.
  virtual void End(const OperationParts& parts, const std::optional<OperationFailure>& failure) = 0;
};

// One kind of it: what was asked for, its answer, and who waits for it.
template <typename Op>
class StartedOperation final : public AnyOperation {
 public:
  using Value = typename Op::Value;
  using Done = std::function<void(const OperationOutcome<Value>&)>;

  StartedOperation(Op operation, Done done)
      : operation_(std::move(operation)), done_(std::move(done)) {}

  const Op& operation() const { return operation_; }
  // Without events: for whoever stands in for what runs it.
  void Finish(const OperationOutcome<Value>& outcome) { done_(outcome); }

  OperationKey key() const override { return operation_.key(); }
  OperationTraits Traits(const OperationParts& parts) const override {
    return operation_.Traits(parts);
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
    if constexpr (requires { operation_.Tell(parts, outcome); }) operation_.Tell(parts, outcome);
    done_(outcome);
  }

 private:
  static constexpr bool kMayBeLeftOut = requires(const Value& value) { value.left_out; };
  static constexpr bool kMayRunTogether =
      requires(const Op& operation, const OperationParts& parts) {
    operation.PlaceInGroup(parts);
  };

  const Op operation_;
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

// Null if it is of another kind.
template <typename Op>
StartedOperation<Op>* As(AnyOperation& operation) {
  return dynamic_cast<StartedOperation<Op>*>(&operation);
}

}  // namespace volumed
