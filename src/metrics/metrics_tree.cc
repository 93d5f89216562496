#include "metrics/metrics_tree.h"

#include <algorithm>
#include <utility>

#include "metrics/metrics_statfs.h"

namespace volumed {

FsInfo NarrowedTo(const TreeQuota& quota, FsInfo filesystem) {
  if (quota.kind == TreeQuotaKind::kNone) return filesystem;
  filesystem.used_bytes = quota.used_bytes;
  if (quota.limit_bytes > 0) {
    const int64_t left = std::max<int64_t>(quota.limit_bytes - quota.used_bytes, 0);
    filesystem.capacity_bytes = quota.limit_bytes;
    filesystem.available_bytes = std::min(filesystem.available_bytes, left);
  }
  if (quota.kind != TreeQuotaKind::kProject) return filesystem;
  filesystem.inodes_used = quota.used_inodes;
  if (quota.limit_inodes > 0) {
    const int64_t left = std::max<int64_t>(quota.limit_inodes - quota.used_inodes, 0);
    filesystem.inodes = quota.limit_inodes;
    filesystem.inodes_free = std::min(filesystem.inodes_free, left);
  }
  return filesystem;
}

Result<FsInfo> MeasureTree(Kernel& kernel, const SafePath& path, uint32_t project_id,
                           const CallOptions& call) {
  ASSIGN_OR_RETURN(const FsInfo filesystem, kernel.Call(StatFs{path}, call));
  const Result<TreeQuota> quota = kernel.Call(ReadTreeQuota{path}, call);
  if (quota.ok()) {
    const bool is_others =
        project_id != 0 && quota->kind == TreeQuotaKind::kProject && quota->id != project_id;
    return is_others ? filesystem : NarrowedTo(*quota, filesystem);
  }
  if (quota.error().code() == Code::kUnimplemented) return filesystem;
  return quota.error();
}

MetricsTree::MetricsTree(Kernel& kernel, const Clock& clock, SafePath path, uint32_t project_id)
    : kernel_(kernel), clock_(clock), path_(std::move(path)), project_id_(project_id) {}

Result<Metrics> MetricsTree::GetMetrics(const CallOptions& options) {
  const Result<FsInfo> info = MeasureTree(kernel_, path_, project_id_, options);
  if (!info.ok()) return NewFsInfoFailedError(info.error());
  Metrics metrics;
  FillFromFsInfo(*info, metrics);
  metrics.time_unix_ms = clock_.WallUnixMillis();
  return metrics;
}

}  // namespace volumed
