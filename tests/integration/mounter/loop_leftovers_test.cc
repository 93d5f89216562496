// What somebody has set for a loop device stays so for the next file that is attached to it, and a
// volume must not have it.
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <sys/ioctl.h>

#include <fstream>
#include <functional>
#include <string>

#include "base/descriptor.h"
#include "fakes/must.h"
#include "integration/mounter/block_mount_fixture.h"
#include "os/sysfs.h"

namespace volumed {
namespace {

using WithLoop = std::function<void(const std::string& name)>;

class LoopLeftoversTest : public BlockMountTest {
 protected:
  void SetUp() override {
    BlockMountTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    Image("image");
  }

  // Attaches a volume's image to a loop device that `leave` was done to, and does `look` then.
  void AfterSomebodyElse(const WithLoop& leave, const WithLoop& undo, const WithLoop& look) {
    const Descriptor control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
    // Another test may take the free one first.
    for (int tries = 0; tries < 100 && !HasFatalFailure(); ++tries) {
      const std::string free = "loop" + std::to_string(::ioctl(control.get(), LOOP_CTL_GET_FREE));
      leave(free);
      const AttachedLoop loop = Must(local_->Call(AttachLoop{{scratch(), "image"}}, {}));
      const bool is_it = loop.device.path == "/dev/" + free;
      if (is_it) look(free);
      undo(free);
      Must(local_->Call(DetachLoops{{scratch(), "image"}}, {}));
      if (is_it) return;
    }
    FAIL() << "others take each free loop device first";
  }
};

void SetReadOnly(const std::string& name, int read_only) {
  const Descriptor device(::open(("/dev/" + name).c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::ioctl(device.get(), BLKROSET, &read_only), 0) << name;
}

bool IsReadOnly(const std::string& name) {
  const Descriptor device(::open(("/dev/" + name).c_str(), O_RDONLY | O_CLOEXEC));
  int read_only = 1;
  EXPECT_EQ(::ioctl(device.get(), BLKROGET, &read_only), 0) << name;
  return read_only != 0;
}

std::string QueueOf(const std::string& name, const char* attribute) {
  return "/sys/block/" + name + "/queue/" + attribute;
}

void Set(const std::string& attribute, const std::string& value) {
  std::ofstream file(attribute);
  file << value << std::flush;
  ASSERT_TRUE(file.good()) << attribute;
}

TEST_F(LoopLeftoversTest, ALoopDeviceThatSomebodyHadMadeReadOnlyTookNoWritesOfAVolume) {
  AfterSomebodyElse([](const std::string& name) { SetReadOnly(name, 1); },
                    [](const std::string& name) { SetReadOnly(name, 0); },
                    [](const std::string& name) { EXPECT_FALSE(IsReadOnly(name)); });
}

// Each fsync in the volume was answered without a flush, and a power loss took what it promised.
TEST_F(LoopLeftoversTest, ALoopDeviceThatSomebodyHadSetToWriteThroughDroppedEachFlushOfAVolume) {
  const auto cache = [](const std::string& name) { return QueueOf(name, "write_cache"); };
  AfterSomebodyElse(
      [&](const std::string& name) { Set(cache(name), "write through"); },
      [&](const std::string& name) { Set(cache(name), "write back"); },
      [&](const std::string& name) { EXPECT_EQ(ReadAttribute(cache(name)), "write back"); });
}

}  // namespace
}  // namespace volumed
