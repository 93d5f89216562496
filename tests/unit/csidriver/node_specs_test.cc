// What a CO asked for is read back from the specification that is on record.
#include "csidriver/node_specs.h"

#include <gtest/gtest.h>

#include <string>

#include "operation/recorded_volume.h"
#include "pool/pool_names.h"
#include "pool/pool_operations.h"

namespace volumed {
namespace {

using Modes = ::csi::v1::VolumeCapability::AccessMode;

constexpr char kId[] = "v-3fa91c02-0123456789abcdef01234567";
constexpr char kDriver[] = "pool.volumed.io";

PersistentVolume Volume(bool is_block = false, int64_t bytes = 16 << 20) {
  PoolVolumeRecord record;
  record.id = kId;
  record.name = "a name of a CO";
  record.capacity_bytes = bytes;
  record.is_block = is_block;
  record.filesystem = {is_block ? "" : "ext4", ""};
  return PoolPvOf(record, kDriver, "node");
}

CsiCapabilityWish Wish(CsiAccessMode mode = Modes::SINGLE_NODE_WRITER) {
  CsiCapabilityWish wish;
  wish.access_mode = mode;
  return wish;
}

PodVolumeRecord Published(const CsiCapabilityWish& wish, bool read_only = false) {
  PodVolumeRecord record;
  record.place = "/co/v";
  record.volume_json =
      EncodeRecordedVolume(NodeSpecOf(Volume(wish.is_block), kId, wish, read_only));
  return record;
}

void ExpectSame(const CsiPublication& a, const CsiPublication& b) {
  EXPECT_EQ(a.target_path, b.target_path);
  EXPECT_EQ(a.capability, b.capability);
  EXPECT_EQ(a.read_only, b.read_only);
}

TEST(NodeSpecsTest, WhatWasAskedForIsReadBackInEveryMode) {
  for (int number = 1; number <= 7; ++number) {
    const auto mode = static_cast<CsiAccessMode>(number);
    for (const bool read_only : {false, true}) {
      CsiCapabilityWish wish = Wish(mode);
      wish.fs_type = "ext4";
      wish.mount_flags = {"noatime", "commit=5"};
      wish.fs_group = 1000;
      ExpectSame(PublicationOnRecord(Published(wish, read_only)),
                 PublicationWanted("/co/v", wish, read_only));
      wish = Wish(mode);
      wish.is_block = true;
      ExpectSame(PublicationOnRecord(Published(wish, read_only)),
                 PublicationWanted("/co/v", wish, read_only));
    }
  }
}

TEST(NodeSpecsTest, TheFilesystemIsTheSameWhetherItIsNamedOrNot) {
  CsiCapabilityWish named = Wish();
  named.fs_type = "ext4";
  ExpectSame(PublicationOnRecord(Published(named)), PublicationWanted("/co/v", Wish(), false));
  ExpectSame(PublicationOnRecord(Published(Wish())), PublicationWanted("/co/v", named, false));
}

TEST(NodeSpecsTest, TheSpecificationIsThatOfTheVolumeByItsId) {
  CsiCapabilityWish wish = Wish();
  wish.mount_flags = {"noatime"};
  const VolumeSpec spec = NodeSpecOf(Volume(), kId, wish, false);
  EXPECT_EQ(spec.name(), SpecName(kId));
  const Result<std::string> id = PoolVolumeIdOf(spec, kDriver);
  ASSERT_TRUE(id.ok()) << id.error().ToString();
  EXPECT_EQ(*id, kId);
  EXPECT_EQ(spec.persistent_volume()->spec.mount_options, wish.mount_flags);
  EXPECT_FALSE(IsBlockVolume(spec));
  EXPECT_FALSE(IsReadOnlyPoolVolume(spec));
  EXPECT_TRUE(IsBlockVolume(NodeSpecOf(Volume(true), kId, Wish(), false)));
}

TEST(NodeSpecsTest, WhoeverOnlyReadsHasItReadOnly) {
  EXPECT_TRUE(IsReadOnlyPoolVolume(NodeSpecOf(Volume(), kId, Wish(), true)));
  for (const CsiAccessMode mode : {Modes::SINGLE_NODE_READER_ONLY, Modes::MULTI_NODE_READER_ONLY}) {
    EXPECT_TRUE(IsReadOnlyPoolVolume(NodeSpecOf(Volume(), kId, Wish(mode), false)));
    EXPECT_TRUE(PublicationWanted("/t", Wish(mode), false).read_only);
  }
}

TEST(NodeSpecsTest, AVolumeThatHasGrownIsTheSame) {
  const std::string recorded = EncodeRecordedVolume(NodeSpecOf(Volume(), kId, Wish(), false));
  const std::string grown =
      EncodeRecordedVolume(NodeSpecOf(Volume(false, 32 << 20), kId, Wish(), false));
  EXPECT_NE(recorded, grown);
  EXPECT_EQ(CapabilityOnRecord(recorded), CapabilityOnRecord(grown));
}

TEST(NodeSpecsTest, ATextThatIsNoVolumeIsLikeNothingThatIsAskedFor) {
  PodVolumeRecord record;
  record.place = "/co/v";
  for (const char* text : {"", "{}", "not json", "{\"kind\": \"Pod\"}"}) {
    record.volume_json = text;
    EXPECT_EQ(PublicationOnRecord(record).target_path, "/co/v");
    EXPECT_EQ(CapabilityOnRecord(text).access_mode, Modes::UNKNOWN) << text;
    EXPECT_FALSE(IsStagedAlike(CapabilityOnRecord(text), Wish())) << text;
  }
}

TEST(NodeSpecsTest, StagedAlikeIsWhatDiffersInItsGroupAlone) {
  CsiCapabilityWish other = Wish();
  other.fs_group = 7;
  EXPECT_TRUE(IsStagedAlike(Wish(), other));
  EXPECT_FALSE(IsStagedAlike(Wish(), Wish(Modes::SINGLE_NODE_MULTI_WRITER)));
  other.mount_flags = {"noatime"};
  EXPECT_FALSE(IsStagedAlike(Wish(), other));
  other = Wish();
  other.is_block = true;
  EXPECT_FALSE(IsStagedAlike(Wish(), other));
}

}  // namespace
}  // namespace volumed
