#include "csi/rpc/csi_outcome.h"

#include "base/strings.h"

namespace volumed {
namespace {

constexpr size_t kMessageBytes = 2048;

struct CodeRow {
  Outcome mutating;
  CsiRepeat repeat;
};

// Source: as at CsiOutcome(); a line that says "kubelet: final" is where this differs.
CodeRow RowOf(Code code) {
  constexpr Outcome kNot = Outcome::kNotApplied;
  constexpr Outcome kMaybe = Outcome::kMaybeApplied;
  switch (code) {
    case Code::kCancelled:
      return {kMaybe, CsiRepeat::kAtOnce};
    case Code::kUnknown:  // kubelet: final
      return {kMaybe, CsiRepeat::kLater};
    case Code::kInvalidArgument:
      return {kNot, CsiRepeat::kLater};
    case Code::kDeadlineExceeded:
      return {kMaybe, CsiRepeat::kLater};
    case Code::kNotFound:
      return {kNot, CsiRepeat::kLater};
    case Code::kAlreadyExists:
      return {kNot, CsiRepeat::kLater};
    case Code::kPermissionDenied:
      return {kNot, CsiRepeat::kLater};
    case Code::kResourceExhausted:  // also of this side, about an answer that is too large
      return {kMaybe, CsiRepeat::kLater};
    case Code::kFailedPrecondition:
      return {kNot, CsiRepeat::kLater};
    case Code::kAborted:  // the same call is under way
      return {kMaybe, CsiRepeat::kLater};
    case Code::kOutOfRange:
      return {kNot, CsiRepeat::kLater};
    case Code::kUnimplemented:
      return {kNot, CsiRepeat::kNever};
    case Code::kInternal:  // kubelet: final
      return {kMaybe, CsiRepeat::kLater};
    case Code::kUnavailable:
      return {kMaybe, CsiRepeat::kLater};
    case Code::kDataLoss:  // kubelet: final
      return {kMaybe, CsiRepeat::kLater};
    case Code::kUnauthenticated:
      return {kNot, CsiRepeat::kLater};
  }
  return {kMaybe, CsiRepeat::kLater};
}

}  // namespace

Code CsiCode(int grpc_code) {
  const bool known = grpc_code >= static_cast<int>(Code::kCancelled) &&
                     grpc_code <= static_cast<int>(Code::kUnauthenticated);
  return known ? static_cast<Code>(grpc_code) : Code::kUnknown;
}

Outcome CsiOutcome(CsiRpcKind kind, Code code) {
  return kind == CsiRpcKind::kReadOnly ? Outcome::kNotApplied : RowOf(code).mutating;
}

CsiRepeat CsiRepeatOf(Code code) { return RowOf(code).repeat; }

CsiRepeat CsiRepeatOf(const Error& error) {
  // Nobody listened, so nobody has to be spared. A call that waited too long for its turn has no
  // such excuse.
  if (error.code() == Code::kUnavailable && error.IsAbout(kCsiNeverSent)) return CsiRepeat::kAtOnce;
  return CsiRepeatOf(error.code());
}

Error CsiError(std::string_view driver, const CsiMethod& method, const CsiFailure& failure,
               const CsiSecrets& secrets) {
  const std::string_view message = TrimSpace(failure.message);
  std::string reason = failure.never_sent ? secrets.RemovedFromOurs(message, kMessageBytes)
                                          : secrets.RemovedFrom(message, kMessageBytes);
  if (reason.empty()) reason = "the driver gave no reason";
  const std::string text = Join(
      std::vector<std::string_view>{driver, method.name, CodeName(failure.code), reason}, ": ");
  if (failure.never_sent) return Error::NotApplied(failure.code, text).About(kCsiNeverSent);
  return CsiOutcome(method.kind, failure.code) == Outcome::kNotApplied
             ? Error::NotApplied(failure.code, text)
             : Error::MaybeApplied(failure.code, text);
}

}  // namespace volumed
