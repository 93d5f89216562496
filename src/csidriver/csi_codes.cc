#include "csidriver/csi_codes.h"

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "base/printable_text.h"

namespace volumed {
namespace {

constexpr std::string_view kMaybe =
    " (it may have had its effect: repeat the call, or its inverse)";
constexpr std::string_view kCut = "...";
constexpr std::string_view kChattr = "chattr";
constexpr std::string_view kOfImmutable =
    " (so it is with what is immutable or append-only, or lies in such a directory: `lsattr -d` "
    "shows that, and `chattr -i -a` ends it)";

// A text of the program's own may have a file's name or a tool's output in it, of any length.
std::string Shown(std::string_view message, std::string_view end) {
  const size_t most = kMostCsiMessage - end.size();
  const std::string shown = PrintableText(BeginningOf(message, most));
  if (shown.size() <= most && message.size() <= most) return shown + std::string(end);
  return std::string(BeginningOf(shown, most - kCut.size())) + std::string(kCut) + std::string(end);
}

// What to do about the error, besides what it says.
std::string_view RemedyOf(const Error& error) {
  const bool says_so = error.message().find(kChattr) != std::string::npos;
  return error.sys_errno() == EPERM && !says_so ? kOfImmutable : "";
}

}  // namespace

Code CsiCodeOf(Code code, Outcome outcome) {
  // Of all codes that say "maybe" this one alone is about nothing else.
  const auto unless_maybe = [outcome](Code final) {
    return outcome == Outcome::kMaybeApplied ? Code::kUnavailable : final;
  };
  switch (code) {
    // Their meaning is the specification's.
    case Code::kInvalidArgument:
    case Code::kNotFound:
    case Code::kAlreadyExists:
    case Code::kFailedPrecondition:
    case Code::kOutOfRange:
    case Code::kDataLoss:
      return unless_maybe(code);
    // They say "maybe" whatever the outcome is.
    case Code::kResourceExhausted:
    case Code::kAborted:
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
      return code;
    // Nobody but a client's own library says so; here something else ended the call.
    case Code::kCancelled:
      return Code::kUnavailable;
    // To a caller it is an RPC that there is not, which it must not call again.
    case Code::kUnimplemented:
      return unless_maybe(Code::kFailedPrecondition);
    // To a caller it is about its secrets, of which this driver has none; here the kernel refuses
    // something to the agent, as of an immutable file, and somebody has to change that.
    case Code::kPermissionDenied:
      return unless_maybe(Code::kFailedPrecondition);
    // Likewise about secrets, and nothing here answers it.
    case Code::kUnauthenticated:
    case Code::kUnknown:
    case Code::kInternal:
      return unless_maybe(Code::kInternal);
  }
  // A number that is no code.
  return unless_maybe(Code::kInternal);
}

grpc::Status CsiStatusOf(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const Error& error = status.error();
  const std::string_view message =
      error.message().empty() ? CodeName(error.code()) : std::string_view(error.message());
  return {static_cast<grpc::StatusCode>(CsiCodeOf(error.code(), error.outcome())),
          Shown(message,
                std::string(RemedyOf(error)) + std::string(error.maybe_applied() ? kMaybe : ""))};
}

grpc::Status CsiNotServed(const std::string& rpc, const std::string& why) {
  return {grpc::StatusCode::UNIMPLEMENTED, Shown(rpc + " is not served: " + why, "")};
}

}  // namespace volumed
