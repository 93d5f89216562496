#include "metrics/metrics_provider.h"

namespace volumed {
namespace {

// Source: kubernetes pkg/volume/metrics_errors.go@v1.36.2.
constexpr std::string_view kNotSupportedPrefix = "metrics are not supported for ";
constexpr std::string_view kNilSubject = "MetricsNil Volumes";
constexpr std::string_view kDriverSuffix = " volumes";
constexpr std::string_view kNotImplementedPrefix = "metrics support is not implemented: ";
constexpr std::string_view kNoPathDefined = "no path defined for disk usage metrics.";
constexpr std::string_view kFsInfoFailedPrefix = "failed to get FsInfo due to error ";

Error Unimplemented(std::string message) {
  return Error::NotApplied(Code::kUnimplemented, std::move(message));
}

}  // namespace

Error NewNotSupportedError() {
  return Unimplemented(std::string(kNotSupportedPrefix) + std::string(kNilSubject));
}

Error NewNotSupportedErrorWithDriverName(std::string_view driver_name) {
  return Unimplemented(std::string(kNotSupportedPrefix) + std::string(driver_name) +
                       std::string(kDriverSuffix));
}

Error NewNotImplementedError(std::string_view reason) {
  return Unimplemented(std::string(kNotImplementedPrefix) + std::string(reason));
}

Error NewNoPathDefinedError() {
  return Error::NotApplied(Code::kInvalidArgument, std::string(kNoPathDefined));
}

// The cause's code and errno are kept: a deadline that passed still looks like one.
Error NewFsInfoFailedError(const Error& cause) {
  return Error::FromParts(cause.code(), Outcome::kNotApplied, cause.sys_errno(),
                          std::string(kFsInfoFailedPrefix) + cause.message());
}

std::optional<MetricsErrorCode> MetricsErrorCodeOf(const Error& error) {
  const std::string_view message = error.message();
  if (message.starts_with(kFsInfoFailedPrefix)) return MetricsErrorCode::kFsInfoFailed;
  if (error.code() == Code::kInvalidArgument && message == kNoPathDefined) {
    return MetricsErrorCode::kNoPathDefined;
  }
  if (error.code() == Code::kUnimplemented &&
      (message.starts_with(kNotSupportedPrefix) || message.starts_with(kNotImplementedPrefix))) {
    return MetricsErrorCode::kNotSupported;
  }
  return std::nullopt;
}

bool IsNotSupported(const Error& error) {
  return MetricsErrorCodeOf(error) == MetricsErrorCode::kNotSupported;
}

}  // namespace volumed
