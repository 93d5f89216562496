#include "operation/step_runner.h"

#include <string>
#include <utility>

#include "kube/about_object.h"

namespace volumed {
namespace {

struct StepFailure {
  std::string step;
  Error error;
  Outcome step_outcome;
};

std::optional<StepFailure> RunSteps(const std::vector<Step>& steps, const CallOptions& base,
                                    const Clock& clock, OperationProgress& progress) {
  bool changed = false;
  for (const Step& step : steps) {
    progress.EnterStep(step.name);
    CallOptions call = base;
    call.deadline = Deadline::After(clock, step.timeout);
    const Status status = step.run(call);
    if (!status.ok()) {
      return StepFailure{step.name, changed ? status.error().AsMaybeApplied() : status.error(),
                         status.error().outcome()};
    }
    changed = changed || step.changes_volume;
  }
  return std::nullopt;
}

}  // namespace

Error WithRecording(const Error& failure, const Status& recorded) {
  if (recorded.ok()) return failure;
  const std::string text =
      failure.message() + "; recording it failed too: " + recorded.error().message();
  const Error error = AboutAllOf(
      Error::FromParts(failure.code(), failure.outcome(), failure.sys_errno(), text), failure);
  return recorded.error().maybe_applied() ? error.AsMaybeApplied() : error;
}

template <typename T>
BasicStepRunner<T>::BasicStepRunner(RecordKeeper<T>& keeper, const Clock& clock,
                                    OperationProgress& progress, CallOptions base)
    : keeper_(keeper), clock_(clock), progress_(progress), base_(std::move(base)) {}

template <typename T>
std::optional<OperationFailure> BasicStepRunner<T>::Run(const BasicStateCall<T>& call) {
  progress_.EnterStep("RecordIntent");
  const Result<uint64_t> attempt = keeper_.BeginCall(call.facts, call.event);
  if (!attempt.ok()) return OperationFailure{call.operation, "RecordIntent", attempt.error()};

  const std::optional<StepFailure> failure = RunSteps(call.steps, base_, clock_, progress_);
  CallAnswer answer = CallAnswer::kDone;
  if (failure) {
    answer = failure->error.maybe_applied() ? CallAnswer::kMaybeApplied : CallAnswer::kNotApplied;
  }
  progress_.EnterStep("RecordOutcome");
  const Status recorded =
      keeper_.EndCall({.key = call.facts.key,
                       .attempt = *attempt,
                       .answer = answer,
                       .storage = call.storage ? call.storage() : GivenStorage()});
  if (failure) {
    return OperationFailure{call.operation, failure->step, WithRecording(failure->error, recorded),
                            failure->step_outcome};
  }
  if (!recorded.ok()) {
    return OperationFailure{call.operation, "RecordOutcome", recorded.error().AsMaybeApplied()};
  }
  return std::nullopt;
}

template <typename T>
std::optional<OperationFailure> BasicStepRunner<T>::RunWithoutRecord(
    const std::string& operation, const std::vector<Step>& steps) {
  const std::optional<StepFailure> failure = RunSteps(steps, base_, clock_, progress_);
  if (!failure) return std::nullopt;
  return OperationFailure{operation, failure->step, failure->error, failure->step_outcome};
}

template class BasicStepRunner<PodVolumeRecord>;
template class BasicStepRunner<DeviceRecord>;

}  // namespace volumed
