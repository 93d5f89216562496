#include "base/result.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace volumed {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kCancelled:
      return "Cancelled";
    case Code::kUnknown:
      return "Unknown";
    case Code::kInvalidArgument:
      return "InvalidArgument";
    case Code::kDeadlineExceeded:
      return "DeadlineExceeded";
    case Code::kNotFound:
      return "NotFound";
    case Code::kAlreadyExists:
      return "AlreadyExists";
    case Code::kPermissionDenied:
      return "PermissionDenied";
    case Code::kResourceExhausted:
      return "ResourceExhausted";
    case Code::kFailedPrecondition:
      return "FailedPrecondition";
    case Code::kAborted:
      return "Aborted";
    case Code::kOutOfRange:
      return "OutOfRange";
    case Code::kUnimplemented:
      return "Unimplemented";
    case Code::kInternal:
      return "Internal";
    case Code::kUnavailable:
      return "Unavailable";
    case Code::kDataLoss:
      return "DataLoss";
    case Code::kUnauthenticated:
      return "Unauthenticated";
  }
  // A number that came over the wire by a cast.
  return "InvalidCode";
}

std::string_view OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kNotApplied:
      return "not applied";
    case Outcome::kMaybeApplied:
      return "maybe applied";
  }
  return "invalid outcome";
}

Code CodeFromErrno(int sys_errno) {
  switch (sys_errno) {
    case ENOENT:
    case ENODEV:
    case ENXIO:
    case ESRCH:
      return Code::kNotFound;
    case EEXIST:
      return Code::kAlreadyExists;
    case EPERM:
    case EACCES:
    case EROFS:
      return Code::kPermissionDenied;
    case EINVAL:
    case ENAMETOOLONG:
    case E2BIG:
    case EFAULT:
      return Code::kInvalidArgument;
    case EBUSY:
    case ETXTBSY:
    case ENOTEMPTY:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case EXDEV:
    case EBADF:
      return Code::kFailedPrecondition;
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EMLINK:
      return Code::kResourceExhausted;
    case ERANGE:
    case EOVERFLOW:
    case EFBIG:
    case EDOM:
      return Code::kOutOfRange;
    case ENOSYS:
    case EOPNOTSUPP:
    case EAFNOSUPPORT:
    case EPROTONOSUPPORT:
      return Code::kUnimplemented;
    case ETIMEDOUT:
    case ETIME:
      return Code::kDeadlineExceeded;
    case EINTR:
    case EDEADLK:
    case ESTALE:
      return Code::kAborted;
    case ECANCELED:
      return Code::kCancelled;
    case EAGAIN:
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case ENOTCONN:
    case EPIPE:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ESHUTDOWN:
      return Code::kUnavailable;
    case EIO:
    case EUCLEAN:
    case EBADMSG:
      return Code::kDataLoss;
    default:
      return Code::kUnknown;
  }
}

bool IsDiskFault(int sys_errno) {
  return sys_errno == ENOSPC || sys_errno == EDQUOT || sys_errno == EROFS || sys_errno == EIO ||
         sys_errno == EUCLEAN;
}

std::string ErrnoName(int sys_errno) {
  const char* name = ::strerrorname_np(sys_errno);
  return name != nullptr ? std::string(name) : "errno " + std::to_string(sys_errno);
}

Error Error::NotApplied(Code code, std::string message) {
  return Error(code, Outcome::kNotApplied, 0, std::move(message));
}

Error Error::MaybeApplied(Code code, std::string message) {
  return Error(code, Outcome::kMaybeApplied, 0, std::move(message));
}

Error Error::FromErrno(int sys_errno, std::string_view what, Outcome outcome) {
  std::string message(what);
  message += ": ";
  // strerrordesc_np is thread safe and not translated, unlike strerror.
  const char* text = ::strerrordesc_np(sys_errno);
  message += text != nullptr ? std::string(text) : ErrnoName(sys_errno);
  return Error(CodeFromErrno(sys_errno), outcome, sys_errno, std::move(message));
}

Error Error::FromParts(Code code, Outcome outcome, int sys_errno, std::string message) {
  return Error(code, outcome, sys_errno, std::move(message));
}

Error Error::With(std::string_view context) const {
  Error error = *this;
  error.message_ = std::string(context) + ": " + message_;
  return error;
}

Error Error::About(std::string subject) const {
  Error error = *this;
  if (!IsAbout(subject)) error.about_.push_back(std::move(subject));
  return error;
}

bool Error::IsAbout(std::string_view subject) const {
  return std::find(about_.begin(), about_.end(), subject) != about_.end();
}

Error Error::AsMaybeApplied() const {
  Error error = *this;
  error.outcome_ = Outcome::kMaybeApplied;
  return error;
}

std::string Error::ToString() const {
  std::string text(CodeName(code_));
  text += " (";
  text += OutcomeName(outcome_);
  if (sys_errno_ != 0) {
    text += ", ";
    text += ErrnoName(sys_errno_);
  }
  text += "): ";
  text += message_;
  return text;
}

}  // namespace volumed
