#include "volumemanager/failure_history.h"

#include <optional>
#include <string_view>

#include "base/strings.h"
#include "kube/about_object.h"
#include "operation/unrecorded_mounts.h"
#include "volume/driver_domain.h"

namespace volumed {

void NoteFailure(std::optional<FailureHistory>& history, const OperationFailure& failure,
                 const Clock& clock) {
  if (!history || history->last.operation != failure.operation) {
    history = FailureHistory{failure, clock.WallUnixMillis(), 0};
  }
  history->last = failure;
  ++history->attempts;
}

namespace {

// What an error about a Secret says before the secret's name (ObjectKey's ToString()).
constexpr std::string_view kSecretSubject = "Secret ";

// Who has what the error says is missing or wrong, or runs what it says is away; empty if it says
// none of these.
std::string NamedToAct(const Error& error) {
  const bool is_wrong = error.code() == Code::kNotFound || error.code() == Code::kInvalidArgument;
  if (error.IsAbout(kDriverAway)) return kWhoeverRunsTheDriver;
  if (error.IsAbout(kAttacherAway)) return "its driver's attacher; an administrator, if none runs";
  for (const std::string& subject : error.about()) {
    std::optional<std::string_view> secret = StripPrefix(subject, kMissingSecret);
    if (!secret && is_wrong) secret = StripPrefix(subject, kSecretSubject);
    if (secret) return "the owner of secret " + std::string(*secret);
  }
  return "";
}

}  // namespace

std::string WhoActsForNode(const FailureHistory& failure) {
  constexpr uint64_t kSeveral = 5;
  const Error& error = failure.last.error;
  const std::string named = NamedToAct(error);
  if (!named.empty()) return named;
  if (IsForNode(error)) return kAdministratorMustAct;
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

std::string WhoEndsTheWait(const LaneWait& wait) {
  if (!wait.does_not_answer) return kNobodyMustAct;
  return wait.step == kWaitForDriver ? kWhoeverRunsTheDriver : kAdministratorMustAct;
}

bool IsForNode(const Error& error) {
  return IsDiskFault(error.sys_errno()) || error.IsAbout(kAboutUnrecordedMount) ||
         error.IsAbout(kStorageAway);
}

}  // namespace volumed
