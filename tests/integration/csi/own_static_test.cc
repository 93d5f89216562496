// Devices that an administrator has listed as volumes of the real daemon: real loop devices, with
// what happens to devices between two calls of a CO.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "integration/csi/own_static_fixture.h"

namespace volumed::own_static_test {
namespace {

using ::csi::v1::Controller;
using ::csi::v1::Node;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kPrecondition[] = "9: ";
constexpr char kOutOfRange[] = "11: ";

class OwnStaticTest : public OwnStaticFixture {
 protected:
  std::string Grow(int64_t bytes) const {
    ::csi::v1::ControllerExpandVolumeRequest request;
    request.set_volume_id(id_);
    request.mutable_capacity_range()->set_required_bytes(bytes);
    ::csi::v1::ControllerExpandVolumeResponse response;
    return Call<Controller>(&Controller::Stub::ControllerExpandVolume, request, &response);
  }
  std::string NodeGrow(int64_t bytes) const {
    ::csi::v1::NodeExpandVolumeRequest request;
    request.set_volume_id(id_);
    request.set_volume_path(target());
    request.mutable_capacity_range()->set_required_bytes(bytes);
    ::csi::v1::NodeExpandVolumeResponse response;
    return Call<Node>(&Node::Stub::NodeExpandVolume, request, &response);
  }
  void Live(bool is_block) {
    ASSERT_NO_FATAL_FAILURE(StartWithDevice(is_block));
    ASSERT_NO_FATAL_FAILURE(Have(is_block));
    ASSERT_EQ(WriteVolume(is_block, "kept"), "kept");
    ASSERT_NO_FATAL_FAILURE(Restart());
    ASSERT_NO_FATAL_FAILURE(Have(is_block));
    EXPECT_EQ(ReadVolume(is_block), "kept");
    const int64_t total = TotalBytes(id_);
    EXPECT_LE(total, kBytes);
    EXPECT_GE(total, is_block ? kBytes : kBytes / 2) << "less what the filesystem needs";
    ASSERT_NO_FATAL_FAILURE(Leave());
    EXPECT_THAT(Delete(id_), HasSubstr("listed in the configuration"));
    ASSERT_NO_FATAL_FAILURE(Have(is_block));
    EXPECT_EQ(ReadVolume(is_block), "kept") << "of the volume that was unstaged";
    ASSERT_NO_FATAL_FAILURE(Leave());
  }
};

TEST_F(OwnStaticTest, ABlankDeviceIsFormattedOnceAndKeepsItsFiles) {
  ASSERT_NO_FATAL_FAILURE(Live(/*is_block=*/false));
}

TEST_F(OwnStaticTest, ARawDeviceKeepsWhatWasWritten) {
  ASSERT_NO_FATAL_FAILURE(Live(/*is_block=*/true));
}

TEST_F(OwnStaticTest, ADeviceThatHasGrownIsSoLargeAfterTheNextStart) {
  ASSERT_NO_FATAL_FAILURE(StartWithDevice(/*is_block=*/true));
  ASSERT_NO_FATAL_FAILURE(Have(/*is_block=*/true));
  ASSERT_NO_FATAL_FAILURE(ResizeDevice(2 * kBytes));
  for (const std::string& why : {Grow(2 * kBytes), NodeGrow(2 * kBytes)}) {
    EXPECT_THAT(why, StartsWith(kOutOfRange));
    EXPECT_THAT(why, HasSubstr("start the agent again"));
  }
  ASSERT_NO_FATAL_FAILURE(Restart());
  EXPECT_TRUE(Eventually(kPatience, [this] { return Listed().capacity_bytes() == 2 * kBytes; }));
  EXPECT_EQ(Grow(2 * kBytes), "");
  EXPECT_EQ(NodeGrow(2 * kBytes), "");
  EXPECT_EQ(TotalBytes(id_), 2 * kBytes);
  ASSERT_NO_FATAL_FAILURE(Leave());
}

TEST_F(OwnStaticTest, AFilesystemFollowsItsDeviceWhenItIsStagedNext) {
  ASSERT_NO_FATAL_FAILURE(StartWithDevice(/*is_block=*/false, "ext4"));
  ASSERT_NO_FATAL_FAILURE(ResizeDevice(2 * kBytes));
  ASSERT_NO_FATAL_FAILURE(Restart());
  ASSERT_TRUE(Eventually(kPatience, [this] { return Listed().capacity_bytes() == 2 * kBytes; }));
  ASSERT_NO_FATAL_FAILURE(Have(/*is_block=*/false));
  EXPECT_GT(TotalBytes(id_), kBytes);
  EXPECT_EQ(NodeGrow(2 * kBytes), "");
  ASSERT_NO_FATAL_FAILURE(Leave());
}

TEST_F(OwnStaticTest, ADeviceThatIsAnotherOrSmallerOrAwayIsSaidToBeAndNotStaged) {
  link_ = "/dev/" + std::filesystem::path(scratch()).filename().string();
  ASSERT_NO_FATAL_FAILURE(StartWithDevice(/*is_block=*/false, "ext4"));
  ASSERT_NO_FATAL_FAILURE(ResizeDevice(kBytes / 2));
  const std::string smaller = Stage(id_, false);
  EXPECT_THAT(smaller, StartsWith(kPrecondition));
  EXPECT_THAT(smaller, HasSubstr("has 32Mi (33554432 bytes)"));
  ASSERT_NO_FATAL_FAILURE(ResizeDevice(kBytes));

  ASSERT_EQ(::unlink(link_.c_str()), 0);
  const std::string away = Stage(id_, false);
  EXPECT_THAT(away, StartsWith(kPrecondition));
  EXPECT_THAT(away, HasSubstr("open device " + link_));

  ASSERT_TRUE(MakeImage(scratch() + "/other", kBytes));
  const LoopDevice other(scratch() + "/other");
  ASSERT_TRUE(other.valid());
  ASSERT_EQ(::symlink(other.path().c_str(), link_.c_str()), 0);
  const std::string another = Stage(id_, false);
  EXPECT_THAT(another, StartsWith(kPrecondition));
  EXPECT_THAT(another, HasSubstr("is another device"));

  ASSERT_EQ(::unlink(link_.c_str()), 0);
  ASSERT_EQ(::symlink(device().c_str(), link_.c_str()), 0);
  ASSERT_NO_FATAL_FAILURE(Have(/*is_block=*/false));
  ASSERT_NO_FATAL_FAILURE(Leave());
}

TEST_F(OwnStaticTest, WhatSomebodyElseHasPutOnADeviceIsNotMountedAndStays) {
  ASSERT_NO_FATAL_FAILURE(StartWithDevice(/*is_block=*/false, "ext4"));
  ASSERT_EQ(RunCommand({"wipefs", "-qa", device()}).exit_status, 0);
  ASSERT_EQ(RunCommand({"mkswap", device()}).exit_status, 0);
  const std::string foreign = Stage(id_, false);
  EXPECT_THAT(foreign, StartsWith(kPrecondition));
  EXPECT_THAT(foreign, HasSubstr("is to have the filesystem with UUID"));
  EXPECT_THAT(RunCommand({"blkid", "-p", device()}).output, HasSubstr("swap"));
}

// A pod had every volume of the pool in it, and nobody else's volume was staged from then on.
TEST_F(OwnStaticTest, TheDiskOfThePoolWasListedAsAVolume) {
  settings["static-block-volumes"] = "{disk: " + disk() + "}";
  settings["csi-profile"] = "central";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::string why = "on the device " + disk() + " is pool fast at " + pool();
  EXPECT_TRUE(Eventually(kPatience, [&] { return FailedParts().find(why) != std::string::npos; }))
      << FailedParts();
  EXPECT_EQ(Listed().volume_id(), "");
}

TEST_F(OwnStaticTest, ADeviceThatIsMountedElsewhereIsNotHadRaw) {
  ASSERT_NO_FATAL_FAILURE(StartWithDevice(/*is_block=*/true, "ext4"));
  ASSERT_EQ(::mount(device().c_str(), elsewhere().c_str(), "ext4", 0, nullptr), 0);
  ASSERT_EQ(Stage(id_, true), "");
  const std::string why = Publish(id_, true);
  EXPECT_THAT(why, StartsWith(kPrecondition));
  EXPECT_THAT(why, HasSubstr("somebody has " + device() + " for himself"));
  ASSERT_EQ(::umount2(elsewhere().c_str(), 0), 0);
  ASSERT_EQ(Publish(id_, true), "");
  ASSERT_NO_FATAL_FAILURE(Leave());
}

TEST_F(OwnStaticTest, AFilesystemThatIsMountedElsewhereIsUnstagedOnceThatIsOver) {
  ASSERT_NO_FATAL_FAILURE(StartWithDevice(/*is_block=*/false, "ext4"));
  ASSERT_EQ(::mount(device().c_str(), elsewhere().c_str(), "ext4", 0, nullptr), 0);
  ASSERT_NO_FATAL_FAILURE(Have(/*is_block=*/false));
  ASSERT_EQ(Unpublish(id_), "");
  const std::string why = Unstage(id_);
  EXPECT_THAT(why, StartsWith(kPrecondition));
  EXPECT_THAT(why, HasSubstr(elsewhere()));
  ASSERT_EQ(::umount2(elsewhere().c_str(), 0), 0);
  EXPECT_EQ(Unstage(id_), "");
  EXPECT_EQ(LeftOnNode(), "");
}

}  // namespace
}  // namespace volumed::own_static_test
