#include "metrics/metrics_du.h"

#include <utility>

#include "metrics/metrics_statfs.h"
#include "metrics/metrics_timed.h"

namespace volumed {

MetricsDu::MetricsDu(Kernel& kernel, const Clock& clock, SafePath path)
    : kernel_(kernel), clock_(clock), path_(std::move(path)) {}

Result<Metrics> MetricsDu::GetMetrics(const CallOptions& options) {
  if (path_.root.empty()) return NewNoPathDefinedError();
  ASSIGN_OR_RETURN(const UsageInfo usage, kernel_.Call(Usage{path_}, options));
  const Result<FsInfo> info = kernel_.Call(StatFs{path_}, options);
  if (!info.ok()) return NewFsInfoFailedError(info.error());
  Metrics metrics;
  FillFromFsInfo(*info, metrics);
  metrics.used_bytes = usage.used_bytes;
  metrics.inodes_used = usage.inodes_used;
  metrics.time_unix_ms = clock_.WallUnixMillis();
  return metrics;
}

std::unique_ptr<MetricsProvider> NewTimedMetricsDu(Kernel& kernel, const Clock& clock,
                                                   SafePath path, ExportedFamilies& families) {
  return std::make_unique<MetricsTimed>(std::make_unique<MetricsDu>(kernel, clock, std::move(path)),
                                        "du", clock, families);
}

}  // namespace volumed
