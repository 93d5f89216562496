// MetricsProvider: how a volume answers "how much of you is used".
// Source: kubernetes pkg/volume/volume.go@v1.36.2 (Metrics), pkg/volume/metrics_errors.go@v1.36.2.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// A value that the source did not report is absent, not zero.
struct Metrics {
  int64_t time_unix_ms = 0;
  std::optional<int64_t> used_bytes;
  std::optional<int64_t> capacity_bytes;
  std::optional<int64_t> available_bytes;
  std::optional<int64_t> inodes_used;
  std::optional<int64_t> inodes;
  std::optional<int64_t> inodes_free;
  std::optional<bool> abnormal;  // volume health, where a driver reports it
  std::string message;           // why abnormal
};

// Kubelet's codes, kept as numbers because callers compare them.
enum class MetricsErrorCode { kNotSupported = 1, kNoPathDefined = 2, kFsInfoFailed = 3 };

// The texts are kubelet's, letter for letter. All are NotApplied: measuring changes nothing.
Error NewNotSupportedError();  // of a volume without metrics (MetricsNil)
Error NewNotSupportedErrorWithDriverName(std::string_view);  // of a CSI driver
Error NewNotImplementedError(std::string_view reason);
Error NewNoPathDefinedError();
Error NewFsInfoFailedError(const Error& cause);

// Which of the above an error is, also if context was put in front of it, unlike in kubelet; none
// for any other error, whatever its text.
std::optional<MetricsErrorCode> MetricsErrorCodeOf(const Error& error);

// True for the first three above.
bool IsNotSupported(const Error& error);

// How a volume is measured by requests alone, for who measures many by one round trip.
struct MetricsPlan {
  std::vector<AnyRequest> requests;  // which change nothing, and need no other's answer
  // What the answers mean, in the order of the requests. `took`: this volume's part of the time.
  // The provider that made the plan outlives this.
  std::function<Result<Metrics>(const std::vector<Result<AnyAnswer>>& answers, Duration took)> read;
};

// Threads: any. Blocks: until the options' deadline; runs Kernel effects.
// Errors: those above; all NotApplied.
class MetricsProvider {
 public:
  virtual ~MetricsProvider() = default;
  virtual Result<Metrics> GetMetrics(const CallOptions& options) = 0;
  // Nothing: GetMetrics() is more than that. Blocks: never.
  virtual std::optional<MetricsPlan> PlanMetrics() { return std::nullopt; }
};

}  // namespace volumed
