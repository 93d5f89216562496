// When a device has to leave the place that it has for another PersistentVolume of its storage.
#include "volumemanager/devices/other_volume.h"

#include <gtest/gtest.h>

#include <string>

namespace volumed {
namespace {

ActualDevice There(VolumeState state, const std::string& spec, bool is_block = false) {
  ActualDevice device;
  device.state = state;
  device.spec = SpecName(spec);
  device.is_block = is_block;
  return device;
}

WantedVolume Wanted(const std::string& name, bool is_block = false) {
  PersistentVolume volume;
  volume.metadata.name = name;
  WantedVolume wanted{.spec = VolumeSpec::FromPersistentVolume(volume, false)};
  wanted.is_block = is_block;
  return wanted;
}

TEST(OtherVolumeTest, TheSameVolumeNeverIsAnother) {
  for (const bool used : {false, true}) {
    for (const VolumeState state : {VolumeState::kMountingDevice, VolumeState::kDeviceMounted,
                                    VolumeState::kUnmountingDevice, VolumeState::kExpanding}) {
      EXPECT_FALSE(IsThereForAnother(There(state, "p"), Wanted("p"), used));
      EXPECT_FALSE(IsThereForAnother(There(state, "p", true), Wanted("p", true), used));
    }
  }
}

TEST(OtherVolumeTest, WhatIsAtNoPlaceIsNobodys) {
  EXPECT_FALSE(IsThereForAnother(There(VolumeState::kAttached, "p", true), Wanted("q"), false));
  EXPECT_FALSE(IsThereForAnother(There(VolumeState::kDetaching, "p", true), Wanted("q"), false));
  ActualDevice rest = There(VolumeState::kAttached, "p");
  rest.attachable = true;
  rest.rest_of_mount = true;
  EXPECT_TRUE(IsThereForAnother(rest, Wanted("q"), false));
}

TEST(OtherVolumeTest, AMountIsAnotherForARawDeviceWhoeverUsesIt) {
  const ActualDevice mounted = There(VolumeState::kDeviceMounted, "p");
  EXPECT_TRUE(IsThereForAnother(mounted, Wanted("p", true), false));
  EXPECT_TRUE(IsThereForAnother(mounted, Wanted("q", true), true));
  EXPECT_TRUE(IsThereForAnother(There(VolumeState::kDeviceMounted, "p", true), Wanted("q"), true));
}

// Pods that name one disk in their own words share its mount.
TEST(OtherVolumeTest, AnotherNameCountsOnlyWhereNoPodHasAnyOfIt) {
  EXPECT_FALSE(IsThereForAnother(There(VolumeState::kDeviceMounted, "p"), Wanted("q"), false))
      << "the mount is as good as a new one";
  EXPECT_TRUE(IsThereForAnother(There(VolumeState::kUnmountingDevice, "p"), Wanted("q"), false));
  EXPECT_FALSE(IsThereForAnother(There(VolumeState::kUnmountingDevice, "p"), Wanted("q"), true));
  EXPECT_TRUE(
      IsThereForAnother(There(VolumeState::kDeviceMounted, "p", true), Wanted("q", true), false));
  ActualDevice unrecorded = There(VolumeState::kDeviceMounted, "p");
  unrecorded.unrecorded = true;
  unrecorded.uncertain = true;
  EXPECT_FALSE(IsThereForAnother(unrecorded, Wanted("q"), false));
}

PersistentVolume OfFsType(const std::string& name, const std::string& fs_type) {
  PersistentVolume volume;
  volume.metadata.name = name;
  CsiPersistentVolumeSource source;
  source.fs_type = fs_type;
  volume.spec.source = source;
  return volume;
}

TEST(OtherVolumeTest, ASecondVolumeOfAStorageGotAnotherFilesystemThanItAsksForWithoutAWord) {
  const auto text = [](const PersistentVolume& wanted, const PersistentVolume& there) {
    return OtherFsTypeText(VolumeSpec::FromPersistentVolume(wanted, false), there);
  };
  EXPECT_EQ(
      text(OfFsType("q", "xfs"), OfFsType("p", "ext4")),
      "volume q asks for fsType xfs, and has what PersistentVolume p of the same storage asks "
      "for, which was mounted first: ext4");
  EXPECT_EQ(text(OfFsType("q", "ext4"), OfFsType("p", "ext4")), "");
  // Who asks for nothing has what he asks for, and nobody knows what a driver has chosen.
  EXPECT_EQ(text(OfFsType("q", ""), OfFsType("p", "ext4")), "");
  EXPECT_EQ(text(OfFsType("q", "xfs"), OfFsType("p", "")), "");
  PersistentVolume path;
  path.spec.source = HostPathVolumeSource{"/srv", HostPathType::kUnset};
  EXPECT_EQ(text(path, OfFsType("p", "ext4")), "");
}

}  // namespace
}  // namespace volumed
