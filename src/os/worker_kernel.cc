#include "os/worker_kernel.h"

#include <utility>

#include "os/kernel_features.h"
#include "os/mount_table.h"
#include "os/worker_pool.h"

namespace volumed {
namespace {

// The lane of walks on the agent's own filesystem.
constexpr char kWalkDomain[] = "walks";

// Takes as long as its tree is big, which a pod decides.
bool IsWalk(const AnyRequest& request) {
  return std::holds_alternative<Usage>(request) ||
         std::holds_alternative<ChangeOwnership>(request) ||
         std::holds_alternative<RemoveTree>(request);
}

}  // namespace

Result<std::unique_ptr<WorkerKernel>> WorkerKernel::Create(const WorkerKernelOptions& options,
                                                           const Clock& clock) {
  ASSIGN_OR_RETURN(const KernelFeatures features, ProbeKernelFeatures(options.masked_features));
  ASSIGN_OR_RETURN(std::unique_ptr<WorkerPool> pool, WorkerPool::Create(options, clock));
  return std::unique_ptr<WorkerKernel>(new WorkerKernel(std::move(pool), features));
}

WorkerKernel::WorkerKernel(std::unique_ptr<WorkerPool> pool, KernelFeatures features)
    : pool_(std::move(pool)), features_(features) {}
WorkerKernel::~WorkerKernel() = default;

Result<AnyAnswer> WorkerKernel::Do(const AnyRequest& request, const CallOptions& options) {
  if (std::holds_alternative<ProbeFeatures>(request)) return AnyAnswer(features_);
  if (std::holds_alternative<ListMounts>(request)) {
    ASSIGN_OR_RETURN(std::vector<MountEntry> mounts, ReadMountTable());
    return AnyAnswer(MountListing{std::move(mounts)});
  }
  if (options.domain.empty() && IsWalk(request)) {
    // It must not hold up the mounts behind it in the fast lane.
    CallOptions walk = options;
    walk.domain = kWalkDomain;
    return pool_->Do(request, walk);
  }
  return pool_->Do(request, options);
}

void WorkerKernel::SetLimits(int max_workers, int max_per_domain) {
  pool_->SetLimits(max_workers, max_per_domain);
}

WorkerPoolStats WorkerKernel::stats() const { return pool_->stats(); }

std::vector<StuckOperation> WorkerKernel::stuck_operations() const {
  return pool_->stuck_operations();
}

}  // namespace volumed
