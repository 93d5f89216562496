#include "volumemanager/failure_history.h"

namespace volumed {

void NoteFailure(std::optional<FailureHistory>& history, const OperationFailure& failure,
                 const Clock& clock) {
  if (!history || history->last.operation != failure.operation) {
    history = FailureHistory{failure, clock.WallUnixMillis(), 0};
  }
  history->last = failure;
  ++history->attempts;
}

std::string WhoActsForNode(const FailureHistory& failure) {
  constexpr uint64_t kSeveral = 5;
  const Error& error = failure.last.error;
  if (IsDiskFault(error.sys_errno())) return kAdministratorMustAct;
  switch (error.code()) {
    case Code::kNotFound:
    case Code::kInvalidArgument:
    case Code::kFailedPrecondition:
    case Code::kUnimplemented:
    case Code::kOutOfRange:
    case Code::kAlreadyExists:
    case Code::kPermissionDenied:
    case Code::kUnauthenticated:
    case Code::kResourceExhausted:
    case Code::kDataLoss:
      return kAdministratorMustAct;
    case Code::kUnknown:
    case Code::kInternal:
      return failure.attempts < kSeveral
                 ? kNobodyMustAct
                 : "an administrator, as it has failed " + std::to_string(failure.attempts) +
                       " times; it is retried";
    case Code::kCancelled:
    case Code::kDeadlineExceeded:
    case Code::kAborted:
    case Code::kUnavailable:
      return kNobodyMustAct;
  }
  __builtin_unreachable();
}

}  // namespace volumed
