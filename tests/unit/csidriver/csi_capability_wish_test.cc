#include "csidriver/csi_capability_wish.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace volumed {
namespace {

using ::csi::v1::VolumeCapability;
using Modes = VolumeCapability::AccessMode;
using Capabilities = google::protobuf::RepeatedPtrField<VolumeCapability>;

VolumeCapability MountWish(const std::string& fs_type = "",
                           const std::vector<std::string>& flags = {},
                           CsiAccessMode mode = Modes::SINGLE_NODE_WRITER) {
  VolumeCapability capability;
  capability.mutable_mount()->set_fs_type(fs_type);
  for (const std::string& flag : flags) capability.mutable_mount()->add_mount_flags(flag);
  capability.mutable_access_mode()->set_mode(mode);
  return capability;
}

VolumeCapability BlockWish() {
  VolumeCapability capability;
  capability.mutable_block();
  capability.mutable_access_mode()->set_mode(Modes::SINGLE_NODE_WRITER);
  return capability;
}

template <typename... Parts>
Capabilities All(const Parts&... parts) {
  Capabilities all;
  (all.Add()->CopyFrom(parts), ...);
  return all;
}

PoolVolumeRecord Volume(bool is_block, const std::string& fs_type = "ext4") {
  PoolVolumeRecord volume;
  volume.is_block = is_block;
  volume.parameters = {{"csi.storage.k8s.io/fstype", fs_type}};
  return volume;
}

TEST(CsiCapabilityWishTest, AMountHasAllThatWasAskedFor) {
  VolumeCapability capability =
      MountWish("xfs", {"noatime", "logbufs=8"}, Modes::MULTI_NODE_MULTI_WRITER);
  capability.mutable_mount()->set_volume_mount_group("1000");
  const Result<CsiCapabilityWish> wish = ParseCsiCapability(capability);
  ASSERT_TRUE(wish.ok()) << wish.error().ToString();
  EXPECT_FALSE(wish->is_block);
  EXPECT_EQ(wish->fs_type, "xfs");
  EXPECT_EQ(wish->mount_flags, (std::vector<std::string>{"noatime", "logbufs=8"}));
  EXPECT_EQ(wish->access_mode, Modes::MULTI_NODE_MULTI_WRITER);
  EXPECT_EQ(wish->fs_group, 1000);
}

TEST(CsiCapabilityWishTest, ABlockVolumeHasNoFilesystem) {
  const Result<CsiCapabilityWish> wish = ParseCsiCapability(BlockWish());
  ASSERT_TRUE(wish.ok()) << wish.error().ToString();
  EXPECT_TRUE(wish->is_block);
  EXPECT_EQ(wish->fs_type, "");
  EXPECT_EQ(wish->fs_group, std::nullopt);
}

TEST(CsiCapabilityWishTest, WhatIsNotKnownIsAnInvalidArgument) {
  VolumeCapability no_type;
  no_type.mutable_access_mode()->set_mode(Modes::SINGLE_NODE_WRITER);
  VolumeCapability no_mode;
  no_mode.mutable_mount();
  VolumeCapability later_mode = MountWish();
  later_mode.mutable_access_mode()->set_mode(static_cast<CsiAccessMode>(99));
  for (const VolumeCapability& capability :
       {no_type, no_mode, later_mode, MountWish("ntfs"), MountWish("", {"nouuid"})}) {
    const Result<CsiCapabilityWish> wish = ParseCsiCapability(capability);
    ASSERT_FALSE(wish.ok()) << capability.ShortDebugString();
    EXPECT_EQ(wish.error().code(), Code::kInvalidArgument);
    EXPECT_FALSE(wish.error().maybe_applied());
  }
}

TEST(CsiCapabilityWishTest, AMountGroupIsTheIdOfAGroup) {
  const auto group_of = [](const std::string& text) {
    VolumeCapability capability = MountWish();
    capability.mutable_mount()->set_volume_mount_group(text);
    return ParseCsiCapability(capability);
  };
  EXPECT_EQ(group_of("0")->fs_group, 0);
  EXPECT_EQ(group_of("4294967294")->fs_group, 4294967294);
  for (const char* const text : {"4294967295", "-1", "wheel", "1 ", "99999999999999999999"}) {
    EXPECT_FALSE(group_of(text).ok()) << text;
  }
}

TEST(CsiCapabilityWishTest, NoMessageHasAMountFlag) {
  const Result<CsiCapabilityWish> wish =
      ParseCsiCapability(MountWish("", {"noatime", "password=hunter2"}));
  ASSERT_FALSE(wish.ok());
  EXPECT_EQ(wish.error().message().find("hunter2"), std::string::npos) << wish.error().ToString();
  EXPECT_NE(wish.error().message().find("mount_flags[1]"), std::string::npos)
      << wish.error().ToString();
}

TEST(CsiCapabilityWishTest, AMountFlagIsOnTheListOrRefused) {
  for (const char* const flag :
       {"ro", "noatime", "nosuid", "commit=30", "data=journal", "errors=remount-ro", "compress",
        "compress=zstd", "discard=async", "inode64"}) {
    EXPECT_TRUE(IsAllowedMountFlag(flag)) << flag;
  }
  for (const char* const flag : {"",          "=",         "ro,suid",   "ro ",
                                 "RO",        "loop",      "bind",      "remount",
                                 "nouuid",    "subvol=/",  "uid=0",     "errors=panic",
                                 "commit",    "commit=",   "commit=-1", "commit=3,suid",
                                 "data=none", "nobarrier", "prjquota",  "x-mount.mkdir",
                                 "noatime=1"}) {
    EXPECT_FALSE(IsAllowedMountFlag(flag)) << flag;
  }
}

TEST(CsiCapabilityWishTest, OneVolumeIsNotBothBlockAndMount) {
  const auto wishes = ParseCsiCapabilities(All(MountWish(), BlockWish()));
  ASSERT_FALSE(wishes.ok());
  EXPECT_EQ(wishes.error().code(), Code::kInvalidArgument);
}

TEST(CsiCapabilityWishTest, OneVolumeHasOneFilesystem) {
  EXPECT_FALSE(ParseCsiCapabilities(All(MountWish("xfs"), MountWish(), MountWish("ext4"))).ok());
  const auto wishes =
      ParseCsiCapabilities(All(MountWish("xfs"), MountWish(), MountWish("xfs", {"noatime"})));
  ASSERT_TRUE(wishes.ok()) << wishes.error().ToString();
  EXPECT_EQ(wishes->size(), 3u);
}

TEST(CsiCapabilityWishTest, AVolumeIsUsableAsWhatItIs) {
  const auto why_not = [](const PoolVolumeRecord& volume, const VolumeCapability& capability) {
    return WhyNotUsableSo(volume, *ParseCsiCapability(capability));
  };
  EXPECT_EQ(why_not(Volume(true), BlockWish()), "");
  EXPECT_NE(why_not(Volume(true), MountWish()), "");
  EXPECT_NE(why_not(Volume(false), BlockWish()), "");
  EXPECT_EQ(why_not(Volume(false), MountWish()), "");
  EXPECT_EQ(why_not(Volume(false, "xfs"), MountWish("xfs")), "");
  EXPECT_NE(why_not(Volume(false, "xfs"), MountWish("ext4")), "");
  // What was found on it counts, and not what it was to be formatted with.
  PoolVolumeRecord mounted = Volume(false, "ext4");
  mounted.filesystem = {"btrfs", "uuid"};
  EXPECT_EQ(why_not(mounted, MountWish("btrfs")), "");
  EXPECT_NE(why_not(mounted, MountWish("ext4")), "");
}

TEST(CsiCapabilityWishTest, EveryAccessModeIsOfOneNodeOrOfMany) {
  const auto* const modes = Modes::Mode_descriptor();
  for (int i = 0; i < modes->value_count(); ++i) {
    const auto mode = static_cast<CsiAccessMode>(modes->value(i)->number());
    const std::string name = modes->value(i)->name();
    EXPECT_EQ(IsMultiNodeMode(mode), name.starts_with("MULTI_NODE_")) << name;
    EXPECT_EQ(IsReadOnlyMode(mode), name.ends_with("_READER_ONLY")) << name;
  }
}

}  // namespace
}  // namespace volumed
