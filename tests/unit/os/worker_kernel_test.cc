// What a kernel of workers answers without one.
#include "os/worker_kernel.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace volumed {
namespace {

TEST(WorkerKernelTest, APartOfTheMountTableIsAnsweredIfThatIsAskedForAndElseAllOfIt) {
  const RealClock clock;
  // Its workers end at once, and nobody needs them.
  WorkerKernelOptions options;
  options.worker_path = "/bin/true";
  const Result<std::unique_ptr<WorkerKernel>> kernel = WorkerKernel::Create(options, clock);
  ASSERT_TRUE(kernel.ok()) << kernel.error().ToString();
  const Result<MountListing> whole = (*kernel)->Call(ListMounts{}, {});
  const Result<MountListing> part = (*kernel)->Call(ListMounts{.below = "/proc"}, {});
  ASSERT_TRUE(whole.ok()) << whole.error().ToString();
  ASSERT_TRUE(part.ok()) << part.error().ToString();
  EXPECT_GT(whole->mounts.size(), part->mounts.size()) << "there is something else than /proc";
  ASSERT_FALSE(part->mounts.empty());
  for (const MountEntry& mount : part->mounts) {
    EXPECT_TRUE(mount.mount_point.starts_with("/proc")) << mount.mount_point;
  }
}

}  // namespace
}  // namespace volumed
