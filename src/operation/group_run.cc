#include "operation/group_run.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "operation/call_options.h"
#include "operation/step_runner.h"

namespace volumed {
namespace {

using Failure = std::optional<OperationFailure>;
using Call = VolumeRecordKeeper::Call;
using CallEnd = VolumeRecordKeeper::CallEnd;

// Whatever was made of the rest: who only looks has changed nothing.
Error UnlessUnchanged(const GroupVolume& volume, const Error& error) {
  const bool changes = std::any_of(volume.effects.begin(), volume.effects.end(),
                                   [](const GroupEffect& one) { return one.changes_volume; });
  if (changes) return error;
  return Error::FromParts(error.code(), Outcome::kNotApplied, error.sys_errno(), error.message());
}

}  // namespace

void GroupRun::Run(Duration timeout, const Done& done) {
  if (volumes_.empty()) return;
  progress_.EnterStep("RecordIntent");
  BeginCalls();
  progress_.EnterStep(step_);
  const Result<BatchAnswer> answer = CallKernel(timeout);
  was_refused_ = !answer.ok() && answer.error().code() == Code::kAborted &&
                 !answer.error().maybe_applied() && volumes_.size() > 1;
  for (size_t i = 0; i < volumes_.size(); ++i) {
    if (!volumes_[i].failure) volumes_[i].failure = OutcomeOf(i, answer, done);
  }
  progress_.EnterStep("RecordOutcome");
  EndCalls();
}

void GroupRun::BeginCalls() {
  std::vector<Call> calls;
  for (const GroupVolume& volume : volumes_) calls.push_back(volume.call);
  const std::vector<Result<uint64_t>> begun = parts_.volumes->BeginCalls(std::move(calls));
  for (size_t i = 0; i < volumes_.size(); ++i) {
    if (begun[i].ok()) {
      volumes_[i].attempt = *begun[i];
    } else {
      volumes_[i].failure = OperationFailure{operation_, "RecordIntent", begun[i].error()};
    }
  }
}

Result<BatchAnswer> GroupRun::CallKernel(Duration timeout) {
  Batch batch{directory_, {}};
  CallOptions call = OperationCall("", "", "", progress_);
  call.deadline = Deadline::After(parts_.host.clock, timeout);
  std::vector<size_t> needs;
  for (const GroupEffect& effect : common_) {
    needs.push_back(batch.items.size());
    batch.items.push_back({effect.request});
  }
  for (GroupVolume& volume : volumes_) {
    if (volume.failure) continue;
    call.more_keys.push_back(volume.call.facts.key.ToString());
    volume.first_item = batch.items.size();
    std::vector<size_t> needed = needs;
    for (GroupEffect& effect : volume.effects) {
      needed.push_back(batch.items.size());
      batch.items.push_back({std::move(effect.request), {needed.begin(), std::prev(needed.end())}});
    }
  }
  if (call.more_keys.empty()) return BatchAnswer();
  return parts_.host.kernel.Call(batch, call);
}

Failure GroupRun::OutcomeOf(size_t index, const Result<BatchAnswer>& answer,
                            const Done& done) const {
  const GroupVolume& volume = volumes_[index];
  if (!answer.ok()) {
    return OperationFailure{operation_, volume.effects.front().step,
                            UnlessUnchanged(volume, answer.error())};
  }
  for (size_t i = 0; i < common_.size(); ++i) {
    const Result<AnyAnswer>& result = answer->items[i].result;
    if (!result.ok()) return OperationFailure{operation_, common_[i].step, result.error()};
  }
  bool changed = false;
  for (size_t i = 0; i < volume.effects.size(); ++i) {
    const Result<AnyAnswer>& result = answer->items[volume.first_item + i].result;
    if (!result.ok()) {
      const std::string& about = volume.effects[i].about;
      const Error error = about.empty() ? result.error() : result.error().With(about);
      return OperationFailure{operation_, volume.effects[i].step,
                              changed ? error.AsMaybeApplied() : error, error.outcome()};
    }
    changed = changed || volume.effects[i].changes_volume;
    if (Failure failure = done(index, i, *result)) return failure;
  }
  return std::nullopt;
}

void GroupRun::EndCalls() {
  std::vector<CallEnd> ends;
  std::vector<GroupVolume*> ended;
  for (GroupVolume& volume : volumes_) {
    if (volume.attempt == 0) continue;
    CallAnswer answer = CallAnswer::kDone;
    if (volume.failure) {
      answer = volume.failure->error.maybe_applied() ? CallAnswer::kMaybeApplied
                                                     : CallAnswer::kNotApplied;
    }
    ends.push_back(
        {volume.call.facts.key, volume.attempt, answer, volume.published, volume.storage});
    ended.push_back(&volume);
  }
  const std::vector<Status> recorded = parts_.volumes->EndCalls(ends);
  for (size_t i = 0; i < ended.size(); ++i) {
    if (recorded[i].ok()) continue;
    Failure& failure = ended[i]->failure;
    if (failure) {
      failure->error = WithRecording(failure->error, recorded[i]);
    } else {
      failure = OperationFailure{operation_, "RecordOutcome", recorded[i].error().AsMaybeApplied()};
    }
  }
}

}  // namespace volumed
