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

// What one measurement found. A value that the source did not report is absent, not zero. The time
// is when the answer came; bytes and inodes are counts of the volume, or of the filesystem that it
// lies on: each provider says which.
struct Metrics {
  int64_t time_unix_ms = 0;
  std::optional<int64_t> used_bytes;
  std::optional<int64_t> capacity_bytes;
  std::optional<int64_t> available_bytes;
  std::optional<int64_t> inodes_used;
  std::optional<int64_t> inodes;
  std::optional<int64_t> inodes_free;
  std::optional<bool> abnormal;  // volume health, if a driver reports it
  std::string message;           // why abnormal
};

// Kubelet's codes, kept as numbers because callers compare them.
enum class MetricsErrorCode { kNotSupported = 1, kNoPathDefined = 2, kFsInfoFailed = 3 };

// The texts are kubelet's, letter for letter. All are NotApplied: measuring changes nothing. The
// first three have the code Unimplemented, NoPathDefined has InvalidArgument, and FsInfoFailed has
// the code and errno of its cause: a deadline that passed still looks like one.
Error NewNotSupportedError();  // of a volume without metrics (MetricsNil)
Error NewNotSupportedErrorWithDriverName(std::string_view);  // of a CSI driver
Error NewNotImplementedError(std::string_view reason);
Error NewNoPathDefinedError();
Error NewFsInfoFailedError(const Error& cause);

// Which of the above an error is, also if context was put in front of it, unlike in kubelet;
// nullopt for any other error, whatever its text.
std::optional<MetricsErrorCode> MetricsErrorCodeOf(const Error& error);

// True for the first three above.
bool IsNotSupported(const Error& error);

// How a volume is measured by requests alone, for whoever measures many by one round trip.
struct MetricsPlan {
  std::vector<AnyRequest> requests;  // they change nothing, and none needs another's answer
  // Says what the answers mean, which come in the order of the requests, one for each. `took` is
  // this volume's part of the time. The provider that made the plan outlives this.
  std::function<Result<Metrics>(const std::vector<Result<AnyAnswer>>& answers, Duration took)> read;
};

// Threads: any. Blocks: until the options' deadline; runs Kernel effects. Errors: those above, all
// NotApplied, unless a provider says otherwise of itself.
class MetricsProvider {
 public:
  virtual ~MetricsProvider() = default;
  virtual Result<Metrics> GetMetrics(const CallOptions& options) = 0;
  // Nullopt if GetMetrics() does more than send requests, so that the volume has to be asked by
  // itself. Blocks: never.
  virtual std::optional<MetricsPlan> PlanMetrics() { return std::nullopt; }
};

}  // namespace volumed
