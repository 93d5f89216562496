#include "metrics/metrics_provider.h"

namespace volumed {
namespace {

// The subjects by which MetricsErrorCodeOf() tells these errors from all others.
constexpr std::string_view kAboutSupport = "metrics: not supported";
constexpr std::string_view kAboutPath = "metrics: no path defined";
constexpr std::string_view kAboutFsInfo = "metrics: FsInfo failed";

Error Unimplemented(std::string message) {
  return Error::NotApplied(Code::kUnimplemented, std::move(message))
      .About(std::string(kAboutSupport));
}

}  // namespace

// Source of the texts: kubernetes pkg/volume/metrics_errors.go@v1.36.2.
Error NewNotSupportedError() {
  return Unimplemented("metrics are not supported for MetricsNil Volumes");
}

Error NewNotSupportedErrorWithDriverName(std::string_view driver_name) {
  return Unimplemented("metrics are not supported for " + std::string(driver_name) + " volumes");
}

Error NewNotImplementedError(std::string_view reason) {
  return Unimplemented("metrics support is not implemented: " + std::string(reason));
}

Error NewNoPathDefinedError() {
  return Error::NotApplied(Code::kInvalidArgument, "no path defined for disk usage metrics.")
      .About(std::string(kAboutPath));
}

// The cause's code and errno are kept: a deadline that passed still looks like one.
Error NewFsInfoFailedError(const Error& cause) {
  return Error::FromParts(cause.code(), Outcome::kNotApplied, cause.sys_errno(),
                          "failed to get FsInfo due to error " + cause.message())
      .About(std::string(kAboutFsInfo));
}

std::optional<MetricsErrorCode> MetricsErrorCodeOf(const Error& error) {
  if (error.IsAbout(kAboutFsInfo)) return MetricsErrorCode::kFsInfoFailed;
  if (error.IsAbout(kAboutPath)) return MetricsErrorCode::kNoPathDefined;
  if (error.IsAbout(kAboutSupport)) return MetricsErrorCode::kNotSupported;
  return std::nullopt;
}

bool IsNotSupported(const Error& error) {
  return MetricsErrorCodeOf(error) == MetricsErrorCode::kNotSupported;
}

}  // namespace volumed
