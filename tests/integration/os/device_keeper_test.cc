// What keeps a block volume's device open, on real loop devices and a filesystem that stops
// answering.
#include "os/device_keeper.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "integration/hangfs/hangfs_mount.h"
#include "integration/loop_device.h"
#include "integration/mount_namespace_fixture.h"
#include "mounter/host_directory.h"
#include "os/local_kernel.h"
#include "places.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int64_t kKeptBytes = int64_t{10} << 20;

class DeviceKeeperTest : public MountNamespaceTest {
 protected:
  void SetUp() override {
    MountNamespaceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
    auto created = LocalKernel::Create({});
    ASSERT_TRUE(created.ok());
    kernel_ = std::move(created).value();
  }
  std::string Path(const std::string& name) const { return scratch() + "/" + name; }

  std::unique_ptr<LocalKernel> kernel_;
};

// A CSI driver unmounts what it has bound for a pod while the device is kept: it got EBUSY.
TEST_F(DeviceKeeperTest, ADeviceThatIsKeptLetsABindOfItsNodeGo) {
  ASSERT_TRUE(MakeImage(Path("image"), kKeptBytes));
  const LoopDevice disk(Path("image"));
  ASSERT_TRUE(disk.valid());
  const std::string bound = Path("bound");
  ASSERT_TRUE(MakeImage(bound, 0));
  ASSERT_EQ(::mount(disk.path().c_str(), bound.c_str(), nullptr, MS_BIND, nullptr), 0);
  const auto kept = kernel_->Call(IdentifyDevice{HostPath(bound), true}, {});
  ASSERT_TRUE(kept.ok()) << kept.error().ToString();
  EXPECT_EQ(kept->path, bound);
  EXPECT_EQ(kept->node, disk.path());
  EXPECT_EQ(::umount2(bound.c_str(), 0), 0) << std::strerror(errno);
  EXPECT_EQ(DescriptorsOf(disk.path()), 1u);
  EXPECT_TRUE(LetDeviceGo(*kept->pin, seconds(10)));
  EXPECT_EQ(DescriptorsOf(disk.path()), 0u);
}

// An agent that was ended then did not end: no other one could start.
TEST_F(DeviceKeeperTest, WhoKeptADeviceWaitedForADiskThatDidNotAnswer) {
  ASSERT_TRUE(MakeImage(Path("image"), kKeptBytes));
  ASSERT_EQ(::mkdir(Path("hung").c_str(), 0755), 0);
  HangfsMount hangfs(HangfsPath(), Path("hung"), Path("control"), Path("image"));
  if (!hangfs.mounted()) GTEST_SKIP() << "skipped: needs /dev/fuse";
  const LoopDevice disk(Path("hung/image"));
  ASSERT_TRUE(disk.valid());
  auto kept = kernel_->Call(IdentifyDevice{HostPath(disk.path()), true}, {});
  ASSERT_TRUE(kept.ok()) << kept.error().ToString();
  {
    const Descriptor device(::open(disk.path().c_str(), O_WRONLY | O_CLOEXEC));
    const std::string data(1 << 20, 'x');
    ASSERT_EQ(::pwrite(device.get(), data.data(), data.size(), 0), ssize_t{1} << 20);
    hangfs.Hang();
  }
  EXPECT_TRUE(IsDeviceKept(*kept->pin));
  EXPECT_FALSE(LetDeviceGo(*kept->pin, milliseconds(100)));
  EXPECT_FALSE(LetDeviceGo(*kept->pin, milliseconds(0))) << "asked again";
  hangfs.Heal();
  EXPECT_TRUE(LetDeviceGo(*kept->pin, seconds(10)));
  EXPECT_FALSE(IsDeviceKept(*kept->pin));
}

// Or was killed itself: the device is let go, and what it was kept for is seen to be missing.
TEST_F(DeviceKeeperTest, ADeviceIsKeptForAsLongAsSomebodyHasTheSocketOfItsKeeper) {
  ASSERT_TRUE(MakeImage(Path("image"), kKeptBytes));
  const LoopDevice disk(Path("image"));
  ASSERT_TRUE(disk.valid());
  auto kept = kernel_->Call(IdentifyDevice{HostPath(disk.path()), true}, {});
  ASSERT_TRUE(kept.ok()) << kept.error().ToString();
  EXPECT_EQ(DescriptorsOf(disk.path()), 1u);
  kept->pin.reset();
  for (int i = 0; i < 2000 && DescriptorsOf(disk.path()) > 0; ++i) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_EQ(DescriptorsOf(disk.path()), 0u);
}

}  // namespace
}  // namespace volumed
