#include "volume/expansion_decision.h"

namespace volumed {
namespace {

bool IsNodesTurn(const std::string& resize_status) {
  return resize_status == kNodeResizePending || resize_status == kNodeResizeInProgress;
}

// The call is refused to a node that may not make it, or for which it has come to nothing.
ExpansionAction Call(const ExpansionQuestion& question) {
  return question.in_use ? ExpansionAction::kGiveUp : ExpansionAction::kExpand;
}

ExpansionDecision DecideRecovering(const ExpansionQuestion& question) {
  ExpansionDecision decision;
  decision.recovers = true;
  decision.new_size = question.allocated.value_or(question.volume_capacity);
  decision.infeasible_on_failure =
      question.failed_finally && question.claim_request != decision.new_size;
  decision.claim_already_updated =
      question.resize_status.empty() && question.claim_capacity >= decision.new_size;
  if (decision.claim_already_updated) {
    // Told once; what the volume is yet to become, its controller has to say.
    if (question.recorded_size >= decision.new_size) {
      decision.action = ExpansionAction::kWait;
    } else if (question.read_write_many && !question.node_expansion_not_required) {
      decision.action = Call(question);
    } else {
      decision.action = ExpansionAction::kReportDone;
    }
    return decision;
  }
  decision.action = IsNodesTurn(question.resize_status) ? Call(question) : ExpansionAction::kWait;
  return decision;
}

}  // namespace

std::string_view ExpansionActionName(ExpansionAction action) {
  switch (action) {
    case ExpansionAction::kNothing:
      return "nothing";
    case ExpansionAction::kExpand:
      return "expand";
    case ExpansionAction::kReportDone:
      return "report done";
    case ExpansionAction::kRefuseReadOnly:
      return "refuse read-only";
    case ExpansionAction::kWait:
      return "wait";
    case ExpansionAction::kGiveUp:
      return "give up";
    case ExpansionAction::kUnknownSize:
      return "unknown size";
  }
  return "unknown";
}

ExpansionDecision DecideExpansion(const ExpansionQuestion& question) {
  ExpansionDecision decision;
  decision.new_size = question.volume_capacity;
  if (question.volume_capacity.IsZero() || question.recorded_size.IsZero()) {
    decision.action = ExpansionAction::kUnknownSize;
    return decision;
  }
  // The claim may lag behind what this node has on record: an agent that ended in between.
  const bool needed = question.recorded_size < question.volume_capacity ||
                      question.claim_capacity < question.volume_capacity;
  if (!needed) return decision;
  if (question.read_only) {
    decision.action = ExpansionAction::kRefuseReadOnly;
    return decision;
  }
  if (question.allocated || !question.resize_status.empty()) return DecideRecovering(question);
  decision.action = Call(question);
  return decision;
}

ExpansionEnd ClassifyExpansionFailure(const Error& error, const ExpansionDecision& decision) {
  if (error.maybe_applied()) return ExpansionEnd::kUnknown;
  switch (error.code()) {
    case Code::kUnimplemented:
      return decision.claim_already_updated || !decision.recovers ? ExpansionEnd::kDone
                                                                  : ExpansionEnd::kFailed;
    case Code::kFailedPrecondition:
      if (decision.recovers && decision.infeasible_on_failure) break;
      return ExpansionEnd::kInUse;
    case Code::kInvalidArgument:
    case Code::kOutOfRange:
    case Code::kNotFound:
      return decision.recovers ? ExpansionEnd::kInfeasible : ExpansionEnd::kFailed;
    case Code::kCancelled:
    case Code::kUnknown:
    case Code::kDeadlineExceeded:
    case Code::kAlreadyExists:
    case Code::kPermissionDenied:
    case Code::kResourceExhausted:
    case Code::kAborted:
    case Code::kInternal:
    case Code::kUnavailable:
    case Code::kDataLoss:
    case Code::kUnauthenticated:
      break;
  }
  return decision.recovers && decision.infeasible_on_failure ? ExpansionEnd::kInfeasible
                                                             : ExpansionEnd::kFailed;
}

}  // namespace volumed
