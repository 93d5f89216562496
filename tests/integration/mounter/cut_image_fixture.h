// An image on a pool's filesystem, mounted, and what a cut of it is asked for, for tests.
#pragma once

#include <sys/mount.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include "base/random.h"
#include "fakes/must.h"
#include "integration/mounter/block_mount_fixture.h"
#include "os/freeze_point.h"
#include "places.h"

namespace volumed {

// A pool on an xfs at "mnt", an image in it, and that mounted at "mnt2".
class CutImageTest : public BlockMountTest, public ::testing::WithParamInterface<const char*> {
 protected:
  static constexpr int64_t kCutPoolBytes = int64_t{3} << 30;
  static constexpr std::chrono::milliseconds kFreezeLimit{1000};
  // Nothing is frozen for longer than the limit and about as long again; a node that is busy with
  // other tests gets this long. What stays frozen does so for ever.
  static constexpr std::chrono::milliseconds kPatience{10'000};

  void SetUp() override {
    BlockMountTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    LocalKernelOptions options;
    options.thawer = VolumedWorkerPath();
    local_ = Must(LocalKernel::Create(options));
    disk_.emplace(BlockMountTest::Image("pool", kCutPoolBytes));
    ASSERT_TRUE(disk_->valid());
    Mkfs("xfs", disk_->path());
    ASSERT_EQ(::mount(disk_->path().c_str(), Path("mnt").c_str(), "xfs", 0, nullptr), 0);
    ASSERT_EQ(::mkdir(Path("copy").c_str(), 0755), 0);
    SetFileSize size{In("image"), true};
    size.bytes = kImageBytes;
    Must(local_->Call(size, {}));
    const AttachedLoop loop = Must(local_->Call(AttachLoop{In("image")}, {}));
    FormatDevice format{loop.device.path, loop.device.facts.identity, GetParam(), source_uuid_, {}};
    Must(local_->Call(format, {}));
    Must(local_->Call(Mount{GetParam(), loop.device.path, Volume(), {}}, {}));
    std::ofstream(Path("mnt2/f")) << "kept";
    const std::optional<MountEntry> entry = Mounted("mnt2");
    ASSERT_TRUE(entry);
    point_ = {Volume(), entry->device_major, entry->device_minor};
    cut_.freeze = {point_};
    cut_.never = {{scratch(), "mnt"}};
    cut_.cuts = {{In("image"), {}, In("cut")}};
    cut_.longest_us = std::chrono::microseconds(kFreezeLimit).count();
  }
  void TearDown() override {
    if (disk_) {
      (void)local_->Call(ThawFilesystem{point_}, {});
      ::umount2(Path("copy").c_str(), 0);
      ::umount2(Path("mnt2").c_str(), 0);
      for (const char* name : {"image", "cut"}) (void)local_->Call(DetachLoops{In(name)}, {});
    }
    BlockMountTest::TearDown();
  }
  SafePath In(const std::string& name) const { return {scratch(), "mnt/" + name}; }
  SafePath Volume() const { return {scratch(), "mnt2"}; }

  // What the volume's file holds on the image that was cut, which has this UUID.
  std::string ReadCut(const std::string& uuid) {
    const AttachedLoop loop = Must(local_->Call(AttachLoop{In("cut")}, {}));
    EXPECT_EQ(Must(local_->Call(ProbeDevice{loop.device.path}, {})).identity.uuid, uuid);
    Must(local_->Call(Mount{GetParam(), loop.device.path, {scratch(), "copy"}, {}}, {}));
    return Must(local_->Call(ReadFile{{scratch(), "copy/f"}}, {})).bytes;
  }

  // Its filesystem gets the other UUID, and is read by it. The error of asking again while it is
  // mounted.
  Error RenameAndRead(const ChangeFilesystemUuid& change) {
    EXPECT_TRUE(Must(local_->Call(change, {})).changed);
    EXPECT_FALSE(Must(local_->Call(change, {})).changed);
    EXPECT_EQ(ReadCut(copy_uuid_), "kept");
    const auto in_use = local_->Call(change, {});
    EXPECT_FALSE(in_use.ok());
    return in_use.ok() ? Error::NotApplied(Code::kUnknown, "it was done") : in_use.error();
  }

  // Nobody else's: tests that run at the same time see each other's filesystems.
  const std::string source_uuid_ = NewUuid();
  const std::string copy_uuid_ = NewUuid();
  std::optional<LoopDevice> disk_;
  FreezePoint point_;
  CutFrozen cut_;
};

}  // namespace volumed
