#include "metrics/metrics_block.h"

#include <utility>

namespace volumed {

MetricsBlock::MetricsBlock(Kernel& kernel, const Clock& clock, SafePath device)
    : kernel_(kernel), clock_(clock), device_(std::move(device)) {}

Result<Metrics> MetricsBlock::GetMetrics(const CallOptions& options) {
  if (device_.root.empty()) return NewNoPathDefinedError();
  const auto info = kernel_.Call(Stat{.path = device_, .follow = true}, options);
  if (!info.ok()) return NewFsInfoFailedError(info.error());
  if (info->type != FileType::kBlockDevice) {
    return NewFsInfoFailedError(Error::NotApplied(
        Code::kFailedPrecondition, device_.Display() + " is not a block device"));
  }
  if (info->size_bytes == 0) {
    return NewFsInfoFailedError(
        Error::NotApplied(Code::kUnavailable, "the size of " + device_.Display() + " is unknown"));
  }
  Metrics metrics;
  metrics.time_unix_ms = clock_.WallUnixMillis();
  metrics.capacity_bytes = info->size_bytes;
  return metrics;
}

}  // namespace volumed
