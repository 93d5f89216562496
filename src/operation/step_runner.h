// StepRunner: runs the steps of one call on a volume. The runner, not a step, writes the intent
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

// One effect, or question, of an operation.
struct Step {
  std::string name;  // "SetUp"
  Duration timeout{};
  // Whether the step changes the volume. A step that fails without having applied anything leaves
  // the volume as it was only if no step before it has changed the volume. An error after such a
  // step counts as maybe applied.
  bool changes_volume = true;
  // It is idempotent. It gets the operation's CallOptions with this step's deadline.
  std::function<Status(const CallOptions& call)> run;
};

// A call on a volume of a pod, or on a device, as in the state table, and the steps that make it.
template <typename T>
struct BasicStateCall {
  std::string operation;  // "volume_mount"
  VolumeEvent event = VolumeEvent::kSetUp;
  T facts;  // see RecordKeeper::BeginCall
  std::vector<Step> steps;
  // Returns the node's storage that a pod has when the steps have ended, however they ended; may be
  // empty.
  std::function<GivenStorage()> storage{};
};
using StateCall = BasicStateCall<PodVolumeRecord>;
using DeviceStateCall = BasicStateCall<DeviceRecord>;

// Threads: any; one call at a time per key. Blocks: until the steps' deadlines and the store.
template <typename T>
class BasicStepRunner {
 public:
  // All arguments outlive this object. Every step gets `base` with its own deadline.
  BasicStepRunner(RecordKeeper<T>& keeper, const Clock& clock, OperationProgress& progress,
                  CallOptions base);

  // Stops at the first failure and names its step; nullopt if all steps were done and the record
  // says so.
  //  - If the intent could not be written, the step is "RecordIntent"; no step was run, not
  //    applied.
  //  - If all steps were done but the outcome could not be written, the step is "RecordOutcome",
  //    maybe applied.
  std::optional<OperationFailure> Run(const BasicStateCall<T>& call);

  // Runs steps that change no volume's state and have no record, such as the removal of a pod.
  std::optional<OperationFailure> RunWithoutRecord(const std::string& operation,
                                                   const std::vector<Step>& steps);

 private:
  RecordKeeper<T>& keeper_;
  const Clock& clock_;
  OperationProgress& progress_;
  const CallOptions base_;
};

// The error for a failure whose outcome could not be recorded either. The first failure is what
// somebody must act on; a restart finds out what the record lacks.
Error WithRecording(const Error& failure, const Status& recorded);

extern template class BasicStepRunner<PodVolumeRecord>;
extern template class BasicStepRunner<DeviceRecord>;
using StepRunner = BasicStepRunner<PodVolumeRecord>;
using DeviceStepRunner = BasicStepRunner<DeviceRecord>;

}  // namespace volumed
