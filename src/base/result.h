// Result<T> and Error: how every function of this program reports failure.
//
// An operation on a node ends in one of three ways, not two: it was done, it was certainly not
// done, or it may have been done (a killed mount, an answer that was lost). The third case decides
// what may be tried next, so an Error cannot be built without saying which of the two it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace volumed {

// The numbers are gRPC's, so that translation to and from the wire is a cast.
// Source: grpc/status.h (google.rpc.Code).
enum class Code : int {
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// "NotFound", "DeadlineExceeded", ...; never empty. A number that is no Code, as it may come over
// the wire, is "InvalidCode".
std::string_view CodeName(Code code);

// What a failure says of the change that was asked for. After kMaybeApplied only the same call or
// its inverse may follow; after kNotApplied anything may.
enum class Outcome {
  kNotApplied,    // certainly nothing was changed
  kMaybeApplied,  // the change may have happened, wholly or in part
};

// "not applied" or "maybe applied", as people read it.
std::string_view OutcomeName(Outcome outcome);

// The gRPC code that stands for an errno; kUnknown for those without a natural counterpart. A full
// disk (ENOSPC) and a lack of memory or of descriptors are all kResourceExhausted, a read-only
// filesystem is kPermissionDenied: who must tell them apart asks sys_errno().
Code CodeFromErrno(int sys_errno);

// Whether this is the errno of a filesystem that takes no writes: full (ENOSPC, EDQUOT), read-only
// (EROFS) or failing (EIO, EUCLEAN). Nothing that a program does makes it well.
bool IsDiskFault(int sys_errno);

// "ENOENT", "EBUSY", ...; "errno 4242" for numbers without a name.
std::string ErrnoName(int sys_errno);

// Why a call failed, as a value. Threads: any. There is no constructor without an outcome; adding
// context keeps it.
class Error {
 public:
  static Error NotApplied(Code code, std::string message);
  static Error MaybeApplied(Code code, std::string message);
  // `what` names the call and its object: "mount tmpfs on /a/b". The errno's text is appended.
  static Error FromErrno(int sys_errno, std::string_view what, Outcome outcome);
  // Rebuilds an error that crossed a process border. Any number may be in `code`.
  static Error FromParts(Code code, Outcome outcome, int sys_errno, std::string message);

  Code code() const { return code_; }
  Outcome outcome() const { return outcome_; }
  bool maybe_applied() const { return outcome_ == Outcome::kMaybeApplied; }
  // 0 when the failure did not come from a system call.
  int sys_errno() const { return sys_errno_; }
  // For people. The code, the outcome and the errno's name are not in it; ToString() adds them.
  const std::string& message() const { return message_; }

  // What the failure is of, in words that its reader compares with those that he knows, never text
  // for people: whoever reports the error finds by it whom to name, without a search of the
  // message. Who sets one documents it. It does not cross a process border.
  const std::vector<std::string>& about() const { return about_; }
  bool IsAbout(std::string_view subject) const;

  // Returns the same error with `context` in front of its message: "context: message".
  [[nodiscard]] Error With(std::string_view context) const;
  // Returns the same error, which is about `subject` as well.
  [[nodiscard]] Error About(std::string subject) const;
  // Returns the same error, but the change may have been made: this is for a later step of a chain
  // that fails after an earlier one has changed something.
  [[nodiscard]] Error AsMaybeApplied() const;

  // "NotFound (not applied, ENOENT): message"
  std::string ToString() const;

  friend bool operator==(const Error&, const Error&) = default;

 private:
  Error(Code code, Outcome outcome, int sys_errno, std::string message)
      : code_(code), outcome_(outcome), sys_errno_(sys_errno), message_(std::move(message)) {}

  Code code_;
  Outcome outcome_;
  int sys_errno_;
  std::string message_;
  std::vector<std::string> about_;
};

// A value or an Error. REQUIRES of value(), *, -> : ok(); of error(): !ok(). A breach throws what
// nothing of this program catches, and so ends the process.
// Threads: as T.
template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // What it refers to lives as long as this Result; only an rvalue gives the value away.
  const T& value() const& { return std::get<0>(state_); }
  T& value() & { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

  const Error& error() const { return std::get<1>(state_); }

  // The same result, with `context` in front of the error's message if it is one.
  [[nodiscard]] Result With(std::string_view context) && {
    return ok() ? std::move(*this) : Result(error().With(context));
  }

 private:
  std::variant<T, Error> state_;
};

// Success without a value, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return error_.value(); }

  [[nodiscard]] Result With(std::string_view context) && {
    return ok() ? Result() : Result(error().With(context));
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

// Stands for the value of an operation that has none, for a template that needs a type.
struct Unit {
  friend bool operator==(Unit, Unit) = default;
};

inline Status OkStatus() { return {}; }

}  // namespace volumed

#define VOLUMED_CONCAT_INNER(a, b) a##b
#define VOLUMED_CONCAT(a, b) VOLUMED_CONCAT_INNER(a, b)

// Leaves the function with the error of `expr`, if it is one. `expr` is a Status or any Result.
#define RETURN_IF_ERROR(expr)                                   \
  do {                                                          \
    if (auto volumed_status_ = (expr); !volumed_status_.ok()) { \
      return volumed_status_.error();                           \
    }                                                           \
  } while (false)

// `lhs` = value of `rexpr` (a Result<T>), or leaves the function with its error.
#define ASSIGN_OR_RETURN(lhs, rexpr) \
  ASSIGN_OR_RETURN_INNER(VOLUMED_CONCAT(volumed_result_, __LINE__), lhs, rexpr)
#define ASSIGN_OR_RETURN_INNER(tmp, lhs, rexpr) \
  auto tmp = (rexpr);                           \
  if (!tmp.ok()) {                              \
    return tmp.error();                         \
  }                                             \
  lhs = std::move(tmp).value()
