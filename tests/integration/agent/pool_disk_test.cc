// A pool on a disk of its own that goes while the real daemon runs: what is said, and the way back.
#include <fcntl.h>
#include <linux/types.h>
#include <sys/ioctl.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/descriptor.h"
#include "integration/agent/pool_fixture.h"
#include "integration/loop_device.h"

namespace volumed::pool_test {
namespace {

// Source: Linux fs/xfs/libxfs/xfs_fs.h (XFS_IOC_GOINGDOWN, XFS_FSOP_GOING_FLAGS_LOGFLUSH).
constexpr unsigned long kShutDown = _IOR('X', 125, __u32);
constexpr __u32 kWithItsLog = 1;
constexpr int64_t kDiskBytes = int64_t{512} << 20;

class PoolDiskTest : public PoolTest {
 protected:
  void SetUp() override {
    PoolTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    settings.erase("pool-capacity");
    ASSERT_NO_FATAL_FAILURE(NeedMkfs("xfs"));
    if (IsSkipped()) return;
    ASSERT_TRUE(MakeImage(scratch() + "/disk", kDiskBytes));
    disk_.emplace(scratch() + "/disk");
    ASSERT_TRUE(disk_->valid());
    const CommandResult made = RunCommand({"mkfs.xfs", "-q", disk_->path()});
    ASSERT_EQ(made.exit_status, 0) << made.output;
    MakePool();
    ASSERT_NO_FATAL_FAILURE(MountDisk());
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_NO_FATAL_FAILURE(ApplyOk(Class() + Claim("data")));
    ASSERT_NO_FATAL_FAILURE(ApplyPod("a", "data"));
  }
  void TearDown() override {
    if (AgentRuns()) KillAgent();
    (void)RunCommand(
        {"sh", "-c",
         "umount -l " + root() + "/pods/*/volumes/*/* " + root() + "/plugins/*/*/mounts/*"});
    for (const std::string& loop : Loops()) (void)RunCommand({"losetup", "-d", loop});
    (void)RunCommand({"umount", pool()});
    disk_.reset();
    PoolTest::TearDown();
  }

  void MountDisk() {
    const CommandResult mounted = RunCommand({"mount", disk_->path(), pool()});
    ASSERT_EQ(mounted.exit_status, 0) << mounted.output;
  }
  void FailDisk() {
    const Descriptor root(::open(pool().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    __u32 how = kWithItsLog;
    ASSERT_EQ(::ioctl(root.get(), kShutDown, &how), 0);
  }
  bool PartFails() { return FailedParts().find("pool fast: ") != std::string::npos; }
  std::string Scrape() const { return HttpGet("/metrics"); }

  std::optional<LoopDevice> disk_;
};

// `get pools` had it open, nothing else told, its loop devices stayed, and so its disk could not be
// unmounted before the agent had ended.
TEST_F(PoolDiskTest, ADiskThatFailedWasOpenAndCouldNotBeUnmounted) {
  ASSERT_NO_FATAL_FAILURE(FailDisk());
  const std::string pools = Ctl({"get", "pools"}).output;
  EXPECT_NE(pools.find("not open"), std::string::npos) << pools;
  EXPECT_TRUE(Eventually(kPatience, [this] { return PartFails(); })) << FailedParts();
  const std::string explained = Ctl({"explain", "a"}).output;
  EXPECT_NE(explained.find("PoolUnreachable"), std::string::npos) << explained;
  EXPECT_NE(explained.find("an administrator"), std::string::npos) << explained;
  EXPECT_TRUE(Eventually(kPatience, [this] {
    return Scrape().find("volumed_pool_up{pool=\"fast\"} 0\n") != std::string::npos;
  })) << Scrape();
  EXPECT_NE(Scrape().find("volumed_part_up{part=\"pool fast\"} 0\n"), std::string::npos);

  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  EXPECT_TRUE(Eventually(kPatience, [this] { return Loops().empty(); }))
      << Ctl({"top", "--once"}).output;
  const CommandResult unmounted = RunCommand({"umount", pool()});
  ASSERT_EQ(unmounted.exit_status, 0) << unmounted.output;
  ASSERT_NO_FATAL_FAILURE(MountDisk());
  EXPECT_TRUE(Eventually(kPatience, [this] { return !PartFails(); })) << FailedParts();
  ASSERT_NO_FATAL_FAILURE(ApplyPod("b", "data"));
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("b"));
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "data").ok());
  EXPECT_EQ(NothingIsLeft(), "");
}

TEST_F(PoolDiskTest, ADiskThatWasUnmountedWasSeenByNobodyAndItsClaimsWaitedForTheirTime) {
  ASSERT_EQ(RunCommand({"umount", "-l", pool()}).exit_status, 0);
  EXPECT_TRUE(Eventually(kPatience, [this] { return PartFails(); })) << FailedParts();
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Claim("more")));
  EXPECT_TRUE(DescribeHas("pvc", "more", "is its disk mounted?"));
  ASSERT_NO_FATAL_FAILURE(MountDisk());
  EXPECT_TRUE(Eventually(kPatience, [this] { return !PartFails(); })) << FailedParts();
  EXPECT_NE(VolumeOf("more"), "") << Describe("pvc", "more");
  const std::string explained = Ctl({"explain", "a"}).output;
  EXPECT_EQ(explained.find("PoolUnreachable"), std::string::npos) << explained;
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  for (const std::string claim : {"data", "more"}) {
    ASSERT_TRUE(Delete("PersistentVolumeClaim", claim).ok());
  }
  EXPECT_EQ(NothingIsLeft(), "");
}

}  // namespace
}  // namespace volumed::pool_test
