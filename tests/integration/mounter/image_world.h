// ImageDifferential: a filesystem on a loop device, with images on it, in the real world and in
// that of FakeKernel.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "base/random.h"
#include "fakes/fake_kernel.h"
#include "integration/differential/world_text.h"
#include "integration/loop_device.h"
#include "integration/mounter/block_mount_fixture.h"

namespace volumed {

inline constexpr int64_t kPoolBytes = int64_t{1} << 30;
// Nobody else's: tests that run at the same time see each other's filesystems.
inline const std::string& ImageUuid() {
  static const std::string uuid = NewUuid();
  return uuid;
}

// One world: a filesystem that images lie on, and a place to mount what is on one.
struct ImageWorld {
  Kernel& kernel;
  SafePath pool;
  SafePath place;
  std::string text = {};  // one line per step

  std::string Do(const AnyRequest& request) {
    return ResultText(kernel.Do(request, {}), place.Display());
  }
  void Step(const std::string& name, const AnyRequest& request) {
    text += name + ": " + Do(request) + "\n";
  }
  SafePath Image() const { return pool.Below("image"); }
  SetFileSize Size(int64_t bytes, bool make = false, bool allocate = false) const {
    SetFileSize set{Image(), make};
    set.bytes = bytes;
    set.allocate = allocate;
    return set;
  }
  AttachLoop Attach() const { return {Image()}; }
  // Its loop device, which it has; a step of its own.
  IdentifiedDevice Loop() {
    const auto loop = kernel.Call(Attach(), {});
    text += "the same again: " + std::string(loop.ok() && !loop->changed ? "yes" : "no") + "\n";
    return loop.ok() ? loop->device : IdentifiedDevice{};
  }
  DeviceIdentity Probed() {
    const auto probe = kernel.Call(ProbeDevice{Loop().path, false, false}, {});
    return probe.ok() ? probe->identity : DeviceIdentity{};
  }
  void MountIt(const std::string& type) {
    Step("mount", Mount{type, Loop().path, place, {}, Probed()});
  }
  // Whoever looks at all devices of the machine may hold one for a moment.
  void AwaitNoLoops() { AwaitNoLoops(pool); }
  void AwaitNoLoops(const SafePath& at) {
    std::string loops;
    for (int tries = 0; tries < 1000; ++tries) {
      loops = Do(ListLoops{at});
      if (loops == "0 loops") break;
      ::usleep(10'000);
    }
    text += "left: " + loops + "\n";
  }
};

class ImageDifferential : public BlockMountTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    BlockMountTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const std::string pool = BlockMountTest::Image("pool", kPoolBytes);
    Mkfs(GetParam(), pool);
    disk_.emplace(pool);
    ASSERT_TRUE(disk_->valid());
    ASSERT_EQ(::mount(disk_->path().c_str(), Path("mnt").c_str(), GetParam(), 0, nullptr), 0);
    ASSERT_EQ(::mkdir(Path("mnt/d").c_str(), 0755), 0);
    fake_kernel_.AddMount(GetParam(), "/dev/disk", "/scratch/mnt");
    fake_kernel_.AddDirectory("/scratch/mnt/d");
    fake_kernel_.AddDirectory("/scratch/mnt2");
    fake_kernel_.LimitFilesystem("/scratch/mnt", kPoolBytes);
  }
  void TearDown() override {
    if (local_ != nullptr) {
      ::umount2(Path("mnt2").c_str(), 0);
      (void)local_->Call(DetachLoops{real().Image()}, {});
    }
    BlockMountTest::TearDown();
  }
  ImageWorld real() { return {*local_, {scratch(), "mnt"}, {scratch(), "mnt2"}}; }
  ImageWorld fake() { return {fake_kernel_, {"/scratch", "mnt"}, {"/scratch", "mnt2"}}; }

  std::optional<LoopDevice> disk_;
  FakeKernel fake_kernel_;
};

}  // namespace volumed
