// Which volume of a pool a person means, who has it, and when it may be deleted by its id.
#include "agent/pool_volume_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "agent/delete_commands.h"
#include "agent/snapshot_view.h"
#include "csidriver/csi_volume_wish.h"
#include "operation/volume_state.h"
#include "pool/pool_id.h"
#include "unit/agent/snapshot_backend_fixture.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

PoolSettings LookedUpPool() {
  PoolSettings pool;
  pool.name = "fast";
  pool.path = "/srv/pool";
  return pool;
}

class PoolVolumeLookupTest : public SnapshotBackendTest {
 protected:
  PoolVolumeLookupTest() : SnapshotBackendTest({LookedUpPool()}) {
    PoolRecord pool;
    pool.name = "fast";
    pool.uuid = "0b3c1f4e-5a6d-4c7b-8e9f-001122334455";
    pool.path = "/srv/pool";
    pool.root.inode = 2;
    LoadedRecords rows;
    rows.records = {EncodeRecord(pool)};
    volumes_->Restore(kPoolRecordKind, rows);
    volume_.id = NewPoolId(PoolObject::kVolume, volumes_->pools().front()->tag()).ToString();
    volume_.pool = "fast";
    volume_.name = "hand:back";
    volume_.state = PoolVolumeState::kReady;
    volume_.backend = PoolBackendKind::kImage;
    volume_.capacity_bytes = int64_t{16} << 20;
  }
  void Keep() {
    LoadedRecords rows;
    rows.records = {EncodeRecord(volume_)};
    volumes_->Restore(kPoolVolumeRecordKind, rows);
  }
  std::string PvNamed(const std::string& name, const std::string& policy = "Retain") const {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + name +
           "}\nspec:\n  capacity: {storage: 16Mi}\n  accessModes: [ReadWriteOnce]\n"
           "  storageClassName: \"\"\n  persistentVolumeReclaimPolicy: " +
           policy + "\n  csi: {driver: pool.volumed.io, volumeHandle: " + volume_.id + "}\n";
  }
  static std::string ClaimNamed(const std::string& name, const std::string& volume) {
    return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
           ", namespace: shop, uid: c1}\nspec: {accessModes: [ReadWriteOnce], storageClassName: "
           "\"\", volumeName: \"" +
           volume + "\", resources: {requests: {storage: 16Mi}}}\n";
  }
  v1::Pool EncodedPool(const PoolGlance& seen) {
    v1::Pool out;
    EncodePool({*volumes_->pools().front(), 0, 0, seen}, &out);
    return out;
  }
  Status MayDelete(bool abandoned = false) {
    return CheckPoolVolumeIsFree(*backend_, volume_.id, abandoned);
  }
  std::string Found(const std::string& volume, const std::string& name_space = "") {
    const Result<std::string> found = FindPoolVolume(*backend_, name_space, volume);
    return found.ok() ? *found : found.error().message();
  }

  PoolVolumeRecord volume_;
};

// Nothing but an apply of a PersistentVolume, a claim and its deletion deleted such a
// volume.
TEST_F(PoolVolumeLookupTest, AVolumeThatNobodyNamesMayBeDeletedByItsId) {
  Keep();
  Deliver("");
  Settle();
  EXPECT_TRUE(MayDelete().ok()) << MayDelete().error().message();
  EXPECT_THAT(PoolVolumeHolders(*backend_).Of(volume_).had_by, IsEmpty());
  const Status unknown = CheckPoolVolumeIsFree(*backend_, "vol-slip", false);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code(), Code::kNotFound);
}

// A PersistentVolume of a cluster had it, whose pod was away: its data went without a question.
TEST_F(PoolVolumeLookupTest, AVolumeOfAnOrchestratorWasSaidToBeNobodysAndDeleted) {
  volume_.name = PoolNameOfCsi("pvc-6f0c");
  Keep();
  Deliver("");
  Settle();
  const Status wanted = MayDelete();
  ASSERT_FALSE(wanted.ok());
  EXPECT_EQ(wanted.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(wanted.error().message(), HasSubstr("--abandoned"));
  EXPECT_TRUE(MayDelete(/*abandoned=*/true).ok());
  // Its id was never told to anybody.
  volume_.state = PoolVolumeState::kMaking;
  Keep();
  EXPECT_TRUE(MayDelete().ok());
}

TEST_F(PoolVolumeLookupTest, WhatIsAbandonedByAnOrchestratorMayStillBeANodes) {
  volume_.name = PoolNameOfCsi("pvc-6f0c");
  volume_.leases.push_back({.node = "node-2"});
  Keep();
  Deliver("");
  Settle();
  EXPECT_FALSE(MayDelete(/*abandoned=*/true).ok());
}

TEST_F(PoolVolumeLookupTest, WhoHasAVolumeKeepsItAndIsNamed) {
  Keep();
  Deliver(PvNamed("back") + ClaimNamed("data", "back"));
  Settle();
  const Status had = MayDelete();
  ASSERT_FALSE(had.ok());
  EXPECT_EQ(had.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(had.error().message(), HasSubstr("PersistentVolume back, claim shop/data"));
  const PoolVolumeHolding holding = PoolVolumeHolders(*backend_).Of(volume_);
  EXPECT_EQ(holding.persistent_volume, "back");
  EXPECT_EQ(ToString(holding.claim), "shop/data");
}

TEST_F(PoolVolumeLookupTest, ANodeThatHasAVolumeKeepsIt) {
  volume_.leases.push_back({.node = "node-2"});
  Keep();
  Deliver("");
  Settle();
  const Status had = MayDelete();
  ASSERT_FALSE(had.ok());
  EXPECT_EQ(had.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(had.error().message(), HasSubstr("node node-2"));
}

TEST_F(PoolVolumeLookupTest, AClaimWhoseVolumeIsBeingMadeKeepsIt) {
  volume_.name = "pvc-c1";
  volume_.state = PoolVolumeState::kMaking;
  Keep();
  Deliver(ClaimNamed("data", ""));
  Settle();
  EXPECT_THAT(PoolVolumeHolders(*backend_).Of(volume_).had_by, ElementsAre("claim shop/data"));
  EXPECT_FALSE(MayDelete().ok());
}

TEST_F(PoolVolumeLookupTest, AnInlineVolumeIsItsPods) {
  volume_.inline_use = {
      .target = "/r/t", .target_root = "/r", .pod_namespace = "shop", .pod_name = "web"};
  Keep();
  Deliver("");
  Settle();
  const Status had = MayDelete();
  ASSERT_FALSE(had.ok());
  EXPECT_EQ(had.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(had.error().message(), HasSubstr("web"));
}

TEST_F(PoolVolumeLookupTest, WhileASourceMayHaveAPersistentVolumeOfItNothingIsDeleted) {
  Keep();
  const Status unseen = MayDelete();
  ASSERT_FALSE(unseen.ok());
  EXPECT_EQ(unseen.error().code(), Code::kUnavailable);
}

// `snapshot create` said that there is no volume and no PersistentVolume of a claim's name.
TEST_F(PoolVolumeLookupTest, AClaimStandsForItsVolume) {
  Keep();
  Deliver(PvNamed("back") + ClaimNamed("data", "back"));
  Settle();
  for (const std::string word : {"back", "pv/back", "shop/data", "pvc/shop/data"}) {
    EXPECT_EQ(Found(word), volume_.id) << word;
  }
  EXPECT_EQ(Found("data", "shop"), volume_.id);
  EXPECT_EQ(Found("pvc/data", "shop"), volume_.id);
  EXPECT_EQ(Found(volume_.id), volume_.id);
  EXPECT_EQ(Found("data"),
            "there is no PersistentVolume data, no claim default/data, and it is no id of a pool's "
            "volume");
  EXPECT_EQ(Found("pvc/data"), "there is no claim default/data");
  EXPECT_EQ(Found("pv/data"), "there is no PersistentVolume data");
}

TEST_F(PoolVolumeLookupTest, AClaimWithoutAVolumeIsToldSo) {
  Deliver(ClaimNamed("data", "later"));
  Settle();
  EXPECT_EQ(Found("shop/data"), "claim shop/data has no volume yet");
}

// `delete pv` of a volume that no claim has had said nothing of the data, which stayed.
TEST_F(PoolVolumeLookupTest, ADeletedPersistentVolumeThatNoClaimHadSaysThatItsDataStays) {
  Keep();
  for (const std::string policy : {"Delete", "Retain"}) {
    Deliver(PvNamed("back", policy));
    Settle();
    DeleteCommands commands(*backend_);
    std::optional<Status> told;
    v1::DeleteRequest request;
    request.mutable_object()->set_kind("PersistentVolume");
    request.mutable_object()->set_name("back");
    v1::DeleteResponse response;
    commands.Delete({{request, &response, [&told](const Status& status) { told = status; }}});
    Settle();
    ASSERT_TRUE(told && told->ok()) << policy;
    EXPECT_THAT(response.warning(), HasSubstr("stays: ")) << policy;
    EXPECT_THAT(response.warning(), HasSubstr("`volumectl pool delete " + volume_.id + "`"));
    Deliver("");
    Settle();
  }
}

// The metric had a number, and `get pools` a dash.
TEST_F(PoolVolumeLookupTest, AMeasuredPoolWithoutAConfiguredCapacityWasShownWithoutOne) {
  EXPECT_EQ(EncodedPool({}).capacity_bytes(), 0) << "it was never measured";
  PoolGlance seen;
  seen.account.emplace();
  seen.account->capacity_bytes = int64_t{4} << 30;
  EXPECT_EQ(EncodedPool(seen).capacity_bytes(), int64_t{4} << 30);
}

// A volume that a pod could not mount was said to be staged.
TEST_F(PoolVolumeLookupTest, AVolumeThatIsMountedNowhereWasSaidToBeStaged) {
  const auto shown = [](VolumeState state) {
    return ShownPoolVolumeUser("this node, where its device is " +
                               std::string(VolumeStateName(state)) + ",");
  };
  EXPECT_EQ(shown(VolumeState::kAttached), "this node, where its device is Attached");
  EXPECT_EQ(shown(VolumeState::kMountingDevice), "this node, where its device is MountingDevice");
  EXPECT_EQ(shown(VolumeState::kDeviceMounted), "this node, where it is staged");
  EXPECT_EQ(ShownPoolVolumeUser("pod shop/DeviceMounted"), "pod shop/DeviceMounted");
}

}  // namespace
}  // namespace volumed
