#include "csidriver/csi_snapshot_wish.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace volumed {
namespace {

using ::csi::v1::CreateSnapshotRequest;
using ::csi::v1::CreateVolumeGroupSnapshotRequest;
using ::testing::ElementsAre;

const CsiPlaces kOnePlace{"topology.pool.volumed.io/node", {"n1"}};

SnapshotRecord CutRecord(const std::string& id, SnapshotPhase phase, int64_t cut_unix_ms) {
  SnapshotRecord record;
  record.id = id;
  record.volume = "v-1";
  record.phase = phase;
  record.size_bytes = 4096;
  record.cut_unix_ms = cut_unix_ms;
  return record;
}

TEST(CsiSnapshotWishTest, AWishHasTheNameOfItsCoAndNoSecretOrParameter) {
  CreateSnapshotRequest request;
  request.set_name("one");
  request.set_source_volume_id("v-1");
  (*request.mutable_parameters())["csi.storage.k8s.io/volumesnapshot/name"] = "monday";
  const auto wish = ParseCsiSnapshotWish(request, kOnePlace);
  ASSERT_TRUE(wish.ok()) << wish.error().ToString();
  EXPECT_EQ(wish->name, PoolNameOfCsi("one"));
  EXPECT_EQ(wish->volume, "v-1");
  EXPECT_TRUE(wish->tags.empty());
}

TEST(CsiSnapshotWishTest, AParameterThatIsNoneOfASidecarIsRefusedByItsName) {
  for (const std::string& key : {std::string("k"), std::string(""),
                                 std::string("csi.storage.k8s.io"), std::string("consistency")}) {
    CreateSnapshotRequest request;
    (*request.mutable_parameters())[key] = "the value";
    const auto refused = ParseCsiSnapshotWish(request, kOnePlace);
    ASSERT_FALSE(refused.ok()) << key;
    EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
    EXPECT_EQ(refused.error().message().find("the value"), std::string::npos);
    CreateVolumeGroupSnapshotRequest group;
    (*group.mutable_parameters())[key] = "v";
    EXPECT_FALSE(ParseCsiGroupWish(group).ok()) << key;
  }
}

TEST(CsiSnapshotWishTest, AGroupNamesItsVolumes) {
  CreateVolumeGroupSnapshotRequest request;
  request.set_name("g");
  request.add_source_volume_ids("v-2");
  request.add_source_volume_ids("v-1");
  const auto wish = ParseCsiGroupWish(request);
  ASSERT_TRUE(wish.ok()) << wish.error().ToString();
  EXPECT_EQ(wish->name, PoolNameOfCsi("g"));
  EXPECT_THAT(wish->volumes, ElementsAre("v-2", "v-1"));
  EXPECT_TRUE(wish->parameters.empty());
}

TEST(CsiSnapshotWishTest, OnlyAReadySnapshotIsReadyToUse) {
  for (const SnapshotPhase phase : {SnapshotPhase::kCut, SnapshotPhase::kProcessing}) {
    EXPECT_FALSE(CsiSnapshotOf(CutRecord("s-1", phase, 1), kOnePlace).ready_to_use());
  }
  EXPECT_TRUE(CsiSnapshotOf(CutRecord("s-1", SnapshotPhase::kReady, 1), kOnePlace).ready_to_use());
}

TEST(CsiSnapshotWishTest, TheMomentHasItsMilliseconds) {
  const auto snapshot =
      CsiSnapshotOf(CutRecord("s-1", SnapshotPhase::kReady, 1767225600045), kOnePlace);
  EXPECT_EQ(snapshot.creation_time().seconds(), 1767225600);
  EXPECT_EQ(snapshot.creation_time().nanos(), 45000000);
  EXPECT_EQ(snapshot.size_bytes(), 4096);
}

TEST(CsiSnapshotWishTest, AGroupIsReadyOnceEachMemberIs) {
  SnapshotGroupView view;
  view.group.id = "g-1";
  view.snapshots = {CutRecord("s-1", SnapshotPhase::kReady, 7000),
                    CutRecord("s-2", SnapshotPhase::kProcessing, 7000)};
  EXPECT_FALSE(CsiGroupOf(view, kOnePlace).ready_to_use());
  view.snapshots.back().phase = SnapshotPhase::kReady;
  const auto group = CsiGroupOf(view, kOnePlace);
  EXPECT_TRUE(group.ready_to_use());
  EXPECT_EQ(group.group_snapshot_id(), "g-1");
  EXPECT_EQ(group.creation_time().seconds(), 7);
  EXPECT_EQ(group.snapshots_size(), 2);
}

}  // namespace
}  // namespace volumed
