#include "metrics/metrics_statfs.h"

#include <utility>

namespace volumed {

void FillFromFsInfo(const FsInfo& info, Metrics& metrics) {
  metrics.capacity_bytes = info.capacity_bytes;
  metrics.available_bytes = info.available_bytes;
  metrics.used_bytes = info.used_bytes;
  metrics.inodes = info.inodes;
  metrics.inodes_free = info.inodes_free;
  metrics.inodes_used = info.inodes_used;
}

MetricsStatFs::MetricsStatFs(Kernel& kernel, const Clock& clock, SafePath path)
    : kernel_(kernel), clock_(clock), path_(std::move(path)) {}

Result<Metrics> MetricsStatFs::GetMetrics(const CallOptions& options) {
  if (path_.root.empty()) return NewNoPathDefinedError();
  const Result<FsInfo> info = kernel_.Call(StatFs{path_}, options);
  if (!info.ok()) return NewFsInfoFailedError(info.error());
  Metrics metrics;
  FillFromFsInfo(*info, metrics);
  metrics.time_unix_ms = clock_.WallUnixMillis();
  return metrics;
}

}  // namespace volumed
