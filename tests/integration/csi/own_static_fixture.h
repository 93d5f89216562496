// OwnStaticFixture: a device that an administrator has listed, which is the one volume of the real
// daemon.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "integration/csi/own_volumes_fixture.h"

namespace volumed {

class OwnStaticFixture : public OwnVolumesFixture {
 protected:
  static constexpr int64_t kBytes = 64 * kMiB;

  explicit OwnStaticFixture(int64_t pool_bytes = 256 * kMiB)
      : OwnVolumesFixture("ext4", pool_bytes) {}

  void TearDown() override {
    if (!link_.empty()) ::unlink(link_.c_str());
    ::umount2(elsewhere().c_str(), MNT_DETACH);
    OwnVolumesFixture::TearDown();
  }

  std::string file() const { return scratch() + "/device"; }
  std::string elsewhere() const { return scratch() + "/elsewhere"; }
  const std::string& device() const { return device_->path(); }

  // A device of its own, which is the one volume of the driver that then runs.
  void StartWithDevice(bool is_block, const std::string& filesystem = "") {
    ASSERT_TRUE(MakeImage(file(), device_bytes_));
    device_ = std::make_unique<LoopDevice>(file());
    ASSERT_TRUE(device_->valid());
    std::filesystem::create_directory(elsewhere());
    if (!filesystem.empty()) {
      ASSERT_EQ(RunCommand({"mkfs." + filesystem, "-q", device()}).exit_status, 0);
    }
    if (!link_.empty()) {
      ASSERT_EQ(::symlink(device().c_str(), link_.c_str()), 0);
    }
    settings[is_block ? "static-block-volumes" : "static-volumes"] =
        "{db: " + (link_.empty() ? device() : link_) + "}";
    settings["csi-profile"] = "central";
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_TRUE(Eventually(kPatience, [this] { return !(id_ = Listed().volume_id()).empty(); }))
        << FailedParts();
  }
  // The one volume; one without an id if there is none.
  ::csi::v1::Volume Listed() const {
    ::csi::v1::ListVolumesResponse response;
    const std::string error = Call<::csi::v1::Controller>(
        &::csi::v1::Controller::Stub::ListVolumes, ::csi::v1::ListVolumesRequest(), &response);
    if (!error.empty() || response.entries_size() != 1) return {};
    return response.entries(0).volume();
  }
  void Have(bool is_block) {
    ASSERT_EQ(Stage(id_, is_block), "");
    ASSERT_EQ(Publish(id_, is_block), "");
    ASSERT_NO_FATAL_FAILURE(ExpectAtTarget(is_block));
  }
  void Leave() {
    ASSERT_EQ(Unpublish(id_), "");
    ASSERT_EQ(Unstage(id_), "");
    EXPECT_EQ(LeftOnNode(), "");
  }
  void ResizeDevice(int64_t bytes) {
    ASSERT_EQ(::truncate(file().c_str(), bytes), 0);
    ASSERT_EQ(RunCommand({"losetup", "-c", device()}).exit_status, 0);
  }

  int64_t device_bytes_ = kBytes;
  std::unique_ptr<LoopDevice> device_;
  std::string
      link_;  // in /dev, as those by which udev names disks; "": the device itself is listed
  std::string id_;
};

}  // namespace volumed
