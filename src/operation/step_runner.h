// StepRunner: runs the steps of one call on a volume. The runner, not the step, writes the intent
// before the first effect and the outcome after the last, and decides what a failure means.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "operation/operation_executor.h"
#include "operation/volume_operations.h"
#include "operation/volume_record_keeper.h"

namespace volumed {

struct Step {
  std::string name;  // "SetUp"
  Duration timeout{};
  // Whether the volume is a different one after it. A step that fails without having applied
  // anything leaves the volume as it was only if no step before it has changed it.
  bool changes_volume = true;
  // Idempotent. Gets the operation's CallOptions with this step's deadline.
  std::function<Status(const CallOptions& call)> run;
};

// A call on a volume of a pod or on a device, as the state table has it, and the steps that make
// it.
template <typename T>
struct BasicStateCall {
  std::string operation;  // "volume_mount"
  VolumeEvent event = VolumeEvent::kSetUp;
  T facts;  // see RecordKeeper::BeginCall
  std::vector<Step> steps;
  // What of the node's storage a pod has when the steps have ended, however they did; may be null.
  std::function<GivenStorage()> storage{};
};
using StateCall = BasicStateCall<PodVolumeRecord>;
using DeviceStateCall = BasicStateCall<DeviceRecord>;

// Threads: any; one call at a time per key. Blocks: until the steps' deadlines and the store.
template <typename T>
class BasicStepRunner {
 public:
  // All outlive this. `base` is what every step gets, but for the deadline.
  BasicStepRunner(RecordKeeper<T>& keeper, const Clock& clock, OperationProgress& progress,
                  CallOptions base);

  // Stops at the first failure and names its step; nullopt: all were done and the record says so.
  //  - the intent could not be written: step "RecordIntent", no step was run, not applied;
  //  - all were done, but the outcome could not be written: step "RecordOutcome", maybe applied.
  std::optional<OperationFailure> Run(const BasicStateCall<T>& call);

  // Steps that change no volume's state and have no record: the removal of a pod.
  std::optional<OperationFailure> RunWithoutRecord(const std::string& operation,
                                                   const std::vector<Step>& steps);

 private:
  RecordKeeper<T>& keeper_;
  const Clock& clock_;
  OperationProgress& progress_;
  const CallOptions base_;
};

// A failure of which the outcome could not be recorded either. The first is what somebody must act
// on; what the record lacks, a restart finds out.
Error WithRecording(const Error& failure, const Status& recorded);

extern template class BasicStepRunner<PodVolumeRecord>;
extern template class BasicStepRunner<DeviceRecord>;
using StepRunner = BasicStepRunner<PodVolumeRecord>;
using DeviceStepRunner = BasicStepRunner<DeviceRecord>;

}  // namespace volumed
