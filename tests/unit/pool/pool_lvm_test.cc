// Volumes that are thin logical volumes, over FakeKernel with the tools of lvm2: made, opened,
// grown, cut, copied and deleted; what is somebody else's, what is full, and what was left half
// way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fakes/must.h"
#include "unit/pool/pool_lvm_fixture.h"
#include "unit/pool/pool_plugin_fixture.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr int64_t kThinPoolBytes = int64_t{1} << 30;
// pool-reserve is 5 percent.
constexpr int64_t kThinPoolFree = kThinPoolBytes - kThinPoolBytes / 100 * 5 - 1;

class PoolLvmTest : public ::testing::Test {
 protected:
  explicit PoolLvmTest(bool has_lvm2 = true) : world_(has_lvm2) { StartAgent(); }
  void StartAgent() {
    agent_.reset();
    agent_ = std::make_unique<PoolAgent>(world_, std::vector<PoolSettings>{LvmTestPool()});
    contents_ = std::make_unique<TestContents>(world_, volumes());
    volumes().SetContentHolder(contents_.get());
    recovered_ = agent_->Recover();
  }
  PoolVolumes& volumes() { return *agent_->volumes; }
  FakeLvm& lvm() { return world_.lvm; }

  PoolVolumeRecord Make(const std::string& name, int64_t bytes = 16 * kMiB) {
    return Must(volumes().Create(LvmWish(name, bytes), {}));
  }
  // Formatted and mounted, as the plugin does it.
  CutWish::Mounted MountAt(const std::string& place, const std::string& id) {
    const OpenedVolume opened = Must(volumes().Open(id, false, {}));
    const std::string uuid = "uuid-of-" + id;
    if (world_.kernel.Device(opened.device).fs_type.empty()) {
      world_.Aside(FormatDevice{opened.device, opened.identity, "ext4", uuid, {}});
    }
    world_.kernel.AddDirectory(place);
    world_.Aside(Mount{"ext4", opened.device, {place, ""}, {}});
    EXPECT_TRUE(volumes().NoteFilesystem(id, {"ext4", uuid}).ok());
    return {{place, ""}, 0, 0};
  }
  void UnmountAt(const std::string& place, const std::string& id) {
    world_.Aside(Unmount{{place, ""}});
    const Status closed = volumes().Close(id, {});
    EXPECT_TRUE(closed.ok()) << closed.error().ToString();
  }
  PoolVolumeRecord MakeUsed(const std::string& name) {
    const std::string id = Make(name).id;
    MountAt("/mnt", id);
    UnmountAt("/mnt", id);
    return Must(volumes().Find(id));
  }
  Result<std::vector<PoolCutRecord>> Cut(
      const std::string& id, const std::optional<CutWish::Mounted>& mounted = std::nullopt) {
    return volumes().Cut({{id, volumes().NewCutId(id), mounted}}, {}, {});
  }
  int64_t Free(const std::string& backend = "lvm") {
    return Must(volumes().Capacity({{"backend", backend}}, {})).free_bytes;
  }
  template <typename T>
  static void ExpectRefused(const T& result, Code code, const std::string& why) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code(), code) << result.error().ToString();
    EXPECT_THAT(result.error().message(), HasSubstr(why));
  }
  void ExpectNothingIsLeft() {
    EXPECT_THAT(world_.Rows(), IsEmpty());
    EXPECT_THAT(world_.CutRows(), IsEmpty());
    EXPECT_THAT(world_.Directories(), IsEmpty());
    EXPECT_THAT(world_.CutDirectories(), IsEmpty());
    EXPECT_THAT(lvm().Names(), IsEmpty());
  }

  LvmWorld world_;
  std::unique_ptr<PoolAgent> agent_;
  std::unique_ptr<TestContents> contents_;
  Status recovered_;
};

class PoolWithoutLvm2Test : public PoolLvmTest {
 protected:
  PoolWithoutLvm2Test() : PoolLvmTest(false) {}
};

TEST_F(PoolLvmTest, AVolumeIsAThinLogicalVolumeThatIsActiveOnlyWhileItIsOpen) {
  const PoolVolumeRecord made = Make("pvc-1", 18 * kMiB);
  EXPECT_EQ(made.state, PoolVolumeState::kReady);
  EXPECT_EQ(made.backend, PoolBackendKind::kLvm);
  EXPECT_EQ(made.capacity_bytes, 18 * kMiB);
  EXPECT_EQ(made.object.handle, lvm().at(made.id).uuid);
  EXPECT_EQ(lvm().at(made.id).size_bytes, 20 * kMiB);
  EXPECT_THAT(lvm().at(made.id).tags, ElementsAre("volumed." + made.id));
  EXPECT_THAT(world_.Directories(), ElementsAre(made.id));
  EXPECT_THAT(lvm().ActiveNames(), IsEmpty());
  const OpenedVolume opened = Must(volumes().Open(made.id, false, {}));
  EXPECT_THAT(opened.device, StartsWith("/dev/dm-"));
  EXPECT_EQ(opened.identity.size_bytes, 20 * kMiB);
  EXPECT_EQ(Must(volumes().Open(made.id, false, {})).device, opened.device);
  ASSERT_TRUE(volumes().Close(made.id, {}).ok());
  ASSERT_TRUE(volumes().Close(made.id, {}).ok());
  EXPECT_THAT(lvm().ActiveNames(), IsEmpty());
  EXPECT_EQ(Make("pvc-1", 18 * kMiB).id, made.id);
  ASSERT_TRUE(volumes().Delete(made.id, false, {}).ok());
  ExpectNothingIsLeft();
}

TEST_F(PoolLvmTest, WhoOnlyReadsABlockVolumeHasADeviceThatTakesNoWrites) {
  PoolVolumeWish wish = LvmWish("pvc-1");
  wish.is_block = true;
  const std::string id = Must(volumes().Create(wish, {})).id;
  const OpenedVolume read = Must(volumes().Open(id, /*read_only=*/true, {}));
  EXPECT_TRUE(world_.kernel.Device(read.device).read_only);
  ExpectRefused(volumes().Open(id, false, {}), Code::kFailedPrecondition, "takes no writes");
  ASSERT_TRUE(volumes().Close(id, {}).ok());
  const OpenedVolume written = Must(volumes().Open(id, false, {}));
  EXPECT_FALSE(world_.kernel.Device(written.device).read_only);
}

// ---- whose it is --------------------------------------------------------------------------------

TEST_F(PoolLvmTest, AnotherLogicalVolumeInItsPlaceIsNeitherOpenedNorRemoved) {
  const PoolVolumeRecord made = Make("pvc-1");
  lvm().at(made.id).uuid = "another";
  ExpectRefused(volumes().Open(made.id, false, {}), Code::kFailedPrecondition,
                "another one than that on record");
  ExpectRefused(volumes().Delete(made.id, false, {}), Code::kFailedPrecondition, "left as it is");
  EXPECT_TRUE(lvm().Has(made.id));
  EXPECT_EQ(Must(volumes().Find(made.id)).state, PoolVolumeState::kReady);
  lvm().at(made.id).uuid = made.object.handle;
  EXPECT_TRUE(volumes().Delete(made.id, false, {}).ok());
}

TEST_F(PoolLvmTest, ALogicalVolumeThatHadBecomeShorterWasOpenedGrownAndCut) {
  const PoolVolumeRecord made = Make("pvc-1");
  lvm().at(made.id).size_bytes = 2 * FakeLvm::kExtent;
  const std::string words = "its logical volume has 8Mi (8388608 bytes), and is to have";
  ExpectRefused(volumes().Cut({{made.id, volumes().NewCutId(made.id), std::nullopt}}, {}, {}),
                Code::kFailedPrecondition, words);
  ExpectRefused(volumes().Open(made.id, false, {}), Code::kFailedPrecondition, words);
  ExpectRefused(volumes().Expand(made.id, 64 * kMiB, {}), Code::kFailedPrecondition, words);
  EXPECT_EQ(lvm().at(made.id).size_bytes, 2 * FakeLvm::kExtent);
  EXPECT_TRUE(volumes().Delete(made.id, false, {}).ok());
  ExpectNothingIsLeft();
}

TEST_F(PoolLvmTest, WhatLacksTheTagIsNeverTouched) {
  const PoolVolumeRecord made = Make("pvc-1");
  lvm().at(made.id).tags = {"somebody"};
  ExpectRefused(volumes().Delete(made.id, false, {}), Code::kFailedPrecondition, "somebody else's");
  EXPECT_TRUE(lvm().Has(made.id));
  const PoolHealth health = volumes().Look("fast", {});
  EXPECT_TRUE(health.reachable.ok());
}

TEST_F(PoolLvmTest, WhatSomebodyHasOpenIsNeitherClosedNorDeleted) {
  const PoolVolumeRecord made = Make("pvc-1");
  Must(volumes().Open(made.id, false, {}));
  lvm().at(made.id).is_held_open = true;
  ExpectRefused(volumes().Close(made.id, {}), Code::kFailedPrecondition, "somebody still has");
  ExpectRefused(volumes().Delete(made.id, false, {}), Code::kFailedPrecondition, "open");
  EXPECT_TRUE(lvm().Has(made.id));
  lvm().at(made.id).is_held_open = false;
  EXPECT_TRUE(volumes().Delete(made.id, false, {}).ok());
  ExpectNothingIsLeft();
}

TEST_F(PoolLvmTest, ALogicalVolumeThatIsGoneIsToldAndItsVolumeCanBeDeleted) {
  const PoolVolumeRecord made = Make("pvc-1");
  const PoolVolumeRecord other = Make("pvc-2");
  lvm().Drop(made.id);
  EXPECT_THAT(
      volumes().Look("fast", {}).lost,
      ElementsAre(std::pair(made.id, "its logical volume is missing, or cannot be looked at")));
  ExpectRefused(volumes().Open(made.id, false, {}), Code::kFailedPrecondition, "not there");
  EXPECT_TRUE(volumes().Delete(made.id, false, {}).ok());
  EXPECT_THAT(lvm().Names(), ElementsAre(other.id));
}

// ---- room ---------------------------------------------------------------------------------------

TEST_F(PoolLvmTest, NoMoreIsPromisedThanTheThinPoolHas) {
  EXPECT_EQ(Free(), kThinPoolFree);
  const int64_t free_in_directory = Free("image");
  Make("pvc-1", 512 * kMiB);
  EXPECT_EQ(Free(), kThinPoolFree - 512 * kMiB);
  EXPECT_LE(free_in_directory - Free("image"), 4096) << "its description alone is the directory's";
  ExpectRefused(volumes().Create(LvmWish("pvc-2", 512 * kMiB), {}), Code::kResourceExhausted,
                "can promise");
  PoolVolumeWish promised_nothing = LvmWish("pvc-3", 512 * kMiB);
  promised_nothing.parameters["overcommit"] = "true";
  const PoolVolumeRecord over = Must(volumes().Create(promised_nothing, {}));
  EXPECT_EQ(Free(), kThinPoolFree - 512 * kMiB);
  // What it has written counts.
  Must(volumes().Open(over.id, false, {}));
  lvm().at(over.id).used = 5000;
  lvm().pool_used = 2500;
  EXPECT_LT(Free(), kThinPoolFree - 512 * kMiB - 255 * kMiB);
}

TEST_F(PoolLvmTest, WhatAVolumeHasIsStillKnownWhenNobodyHasIt) {
  const PoolVolumeRecord made = Make("pvc-1", 512 * kMiB);
  Must(volumes().Open(made.id, false, {}));
  lvm().at(made.id).used = 5000;
  lvm().pool_used = 2500;
  const PoolAccount open = Must(volumes().Capacity({{"backend", "lvm"}}, {}));
  ASSERT_TRUE(volumes().Close(made.id, {}).ok());
  const PoolAccount closed = Must(volumes().Capacity({{"backend", "lvm"}}, {}));
  EXPECT_EQ(closed.outstanding_bytes, open.outstanding_bytes);
  EXPECT_GT(closed.free_bytes, 400 * kMiB);
  // The node loses its power while a pod has it, and writes or discards: nobody knows any more.
  Must(volumes().Open(made.id, false, {}));
  world_.Reboot();
  StartAgent();
  EXPECT_EQ(Must(volumes().Capacity({{"backend", "lvm"}}, {})).outstanding_bytes, 512 * kMiB);
}

TEST_F(PoolLvmTest, AThinPoolThatTakesNothingMoreSaysWhyAndNothingIsLeft) {
  PoolVolumeWish wish = LvmWish("pvc-1");
  wish.parameters["overcommit"] = "true";
  lvm().pool_used = 10000;
  ExpectRefused(volumes().Create(wish, {}), Code::kResourceExhausted, "thin pool vg0/thin is full");
  ExpectRefused(volumes().Create(LvmWish("pvc-2"), {}), Code::kResourceExhausted, "is full");
  lvm().pool_used = 100;
  lvm().metadata_used = 9612;
  ExpectRefused(volumes().Create(wish, {}), Code::kResourceExhausted, "is full to 96.12%");
  EXPECT_EQ(Free(), 0);
  lvm().metadata_used = 100;
  lvm().pool_health = "metadata_read_only";
  ExpectRefused(volumes().Create(wish, {}), Code::kFailedPrecondition, "takes no writes");
  lvm().pool_health = "";
  lvm().pool_is_active = false;
  ExpectRefused(volumes().Create(wish, {}), Code::kUnavailable, "lvchange -ay vg0/thin");
  lvm().pool_is_active = true;
  lvm().refuses_new = true;
  const auto refused = volumes().Create(wish, {});
  ExpectRefused(refused, Code::kResourceExhausted, "above threshold");
  EXPECT_FALSE(refused.error().maybe_applied());
  ExpectNothingIsLeft();
}

TEST_F(PoolWithoutLvm2Test, EveryCallSaysWhatIsMissingAndOtherVolumesAreMade) {
  ExpectRefused(recovered_, Code::kFailedPrecondition, "needs lvm2");
  EXPECT_TRUE(agent_->pool().state().ok());
  ExpectRefused(volumes().Create(LvmWish("pvc-1"), {}), Code::kFailedPrecondition, "needs lvm2");
  ExpectRefused(volumes().Capacity({{"backend", "lvm"}}, {}), Code::kFailedPrecondition,
                "package lvm2");
  ExpectNothingIsLeft();
  EXPECT_EQ(Must(volumes().Create(Wish("pvc-2"), {})).backend, PoolBackendKind::kImage);
}

TEST_F(PoolLvmTest, APoolWithoutAThinPoolHasNoSuchVolumes) {
  agent_.reset();
  agent_ = std::make_unique<PoolAgent>(world_);
  ASSERT_TRUE(agent_->Recover().ok());
  ExpectRefused(volumes().Create(LvmWish("pvc-1"), {}), Code::kFailedPrecondition, "pool-lvm");
}

// ---- growth -------------------------------------------------------------------------------------

TEST_F(PoolLvmTest, ItGrowsWhileItIsOpenByWholeExtents) {
  const PoolVolumeRecord made = Make("pvc-1");
  const OpenedVolume opened = Must(volumes().Open(made.id, false, {}));
  EXPECT_EQ(Must(volumes().Expand(made.id, 30 * kMiB, {})), 30 * kMiB);
  EXPECT_EQ(lvm().at(made.id).size_bytes, 32 * kMiB);
  EXPECT_EQ(world_.kernel.Device(opened.device).identity.size_bytes, 32 * kMiB);
  EXPECT_EQ(Free(), kThinPoolFree - 32 * kMiB) << "it may have the whole of its last extent";
  lvm().at(made.id).size_bytes = 128 * kMiB;
  ExpectRefused(volumes().Expand(made.id, 64 * kMiB, {}), Code::kFailedPrecondition,
                std::to_string(128 * kMiB));
}

// ---- cuts ---------------------------------------------------------------------------------------

TEST_F(PoolLvmTest, ACutIsASnapshotThatTakesNoWritesAndNothingIsFrozenForIt) {
  const PoolVolumeRecord made = Make("pvc-1");
  const CutWish::Mounted mounted = MountAt("/mnt", made.id);
  lvm().at(made.id).used = 5000;
  const PoolCutRecord cut = Must(Cut(made.id, mounted)).at(0);
  EXPECT_TRUE(IsWhole(cut));
  EXPECT_FALSE(cut.was_frozen);
  EXPECT_EQ(cut.size_bytes, 16 * kMiB);
  EXPECT_GE(cut.allocated_bytes, 8 * kMiB);
  EXPECT_TRUE(lvm().at(cut.id).is_read_only);
  EXPECT_EQ(lvm().at(cut.id).origin, made.id);
  EXPECT_THAT(lvm().ActiveNames(), ElementsAre(made.id));
  for (const std::string& line : world_.kernel.call_log()) {
    EXPECT_THAT(line, ::testing::Not(HasSubstr("CutFrozen")));
  }
  ExpectRefused(volumes().ListCutExtents(cut.id, 0, 10, {}), Code::kFailedPrecondition,
                "logical volume");
  ASSERT_TRUE(volumes().Discard(cut.id, {}).ok());
  EXPECT_THAT(lvm().Names(), ElementsAre(made.id));
}

TEST_F(PoolLvmTest, TwoVolumesAreNeverCutAtOneMoment) {
  const std::string one = Make("pvc-1").id;
  const std::string two = Make("pvc-2").id;
  ExpectRefused(volumes().Cut({{one, volumes().NewCutId(one), std::nullopt},
                               {two, volumes().NewCutId(two), std::nullopt}},
                              {}, {}),
                Code::kFailedPrecondition, "at one moment");
  EXPECT_THAT(volumes().Cuts(), IsEmpty());
  EXPECT_EQ(lvm().Names().size(), 2u);
}

// LVM has noted the snapshot, and the origin's writers wait.
TEST_F(PoolLvmTest, ACutWhoseToolWasKilledDoesNotCountAndHoldsNobodyUp) {
  const PoolVolumeRecord made = Make("pvc-1");
  const CutWish::Mounted mounted = MountAt("/mnt", made.id);
  lvm().kill_next_snapshot = true;
  const auto killed = Cut(made.id, mounted);
  ASSERT_FALSE(killed.ok());
  EXPECT_FALSE(lvm().at(made.id).is_suspended);
  EXPECT_FALSE(lvm().pool_is_suspended);
  EXPECT_THAT(lvm().Names(), ElementsAre(made.id));
  EXPECT_THAT(volumes().Cuts(), IsEmpty());
  EXPECT_TRUE(Cut(made.id, mounted).ok());
}

// LVM has noted the snapshot, the thin pool has it, and no tool gets any further.
TEST_F(PoolLvmTest, ACutWhoseToolWasKilledAmidItsMessagesIsTakenOutOfTheThinPool) {
  const PoolVolumeRecord made = Make("pvc-1");
  lvm().kill_next_snapshot_half_made = true;
  ASSERT_FALSE(Cut(made.id).ok());
  EXPECT_THAT(lvm().Names(), ElementsAre(made.id));
  EXPECT_THAT(volumes().Cuts(), IsEmpty());
  EXPECT_TRUE(Cut(made.id).ok());
}

TEST_F(PoolLvmTest, WhatSomebodyElsesToolHasLeftHalfMadeIsTold) {
  const PoolVolumeRecord made = Make("pvc-1");
  lvm().kill_next_snapshot_half_made = true;
  ASSERT_TRUE(world_.kernel
                  .Call(RunProgram{.arguments = {"/usr/sbin/lvcreate", "--config", "none", "--yes",
                                                 "--type", "thin", "--addtag", "theirs", "--name",
                                                 "of-somebody", "vg0/" + made.id}},
                        {})
                  .ok());
  ExpectRefused(volumes().Create(LvmWish("pvc-2", kMiB), {}), Code::kInternal,
                "already contain thin device");
  EXPECT_THAT(lvm().commands, ::testing::Each(::testing::Not(HasSubstr("dmsetup"))));
}

TEST_F(PoolLvmTest, WhatAnAgentThatIsGoneHasLeftSuspendedIsResumedAtTheStart) {
  const PoolVolumeRecord made = Make("pvc-1");
  Must(volumes().Open(made.id, false, {}));
  lvm().at(made.id).is_suspended = true;
  lvm().pool_is_suspended = true;
  FakeLogicalVolume foreign;
  foreign.size_bytes = FakeLvm::kExtent;
  foreign.is_suspended = true;
  lvm().Add("of-somebody", foreign);
  StartAgent();
  EXPECT_TRUE(recovered_.ok()) << recovered_.error().ToString();
  EXPECT_FALSE(lvm().at(made.id).is_suspended);
  EXPECT_FALSE(lvm().pool_is_suspended);
  EXPECT_TRUE(lvm().at("of-somebody").is_suspended);
}

TEST_F(PoolLvmTest, ARestoredVolumeIsLargerAndHasAUuidOfItsOwnBeforeAnybodyHasIt) {
  const PoolVolumeRecord source = MakeUsed("pvc-1");
  const PoolCutRecord cut = Must(Cut(source.id)).at(0);
  const PoolVolumeRecord made =
      Must(volumes().Create(LvmWishOf("pvc-2", SnapshotContent(cut.id), 32 * kMiB), {}));
  EXPECT_EQ(lvm().at(made.id).origin, cut.id);
  EXPECT_FALSE(lvm().at(made.id).is_read_only);
  EXPECT_EQ(lvm().at(made.id).size_bytes, 32 * kMiB);
  EXPECT_EQ(made.family, source.family);
  EXPECT_EQ(lvm().Content(made.id).identity.uuid, source.filesystem.uuid);
  const OpenedVolume opened = Must(volumes().Open(made.id, false, {}));
  const PoolFilesystem noted = Must(volumes().Find(made.id)).filesystem;
  EXPECT_EQ(noted.new_uuid, "");
  EXPECT_NE(noted.uuid, source.filesystem.uuid);
  EXPECT_EQ(world_.kernel.Device(opened.device).identity.uuid, noted.uuid);
  EXPECT_EQ(lvm().Content(cut.id).identity.uuid, source.filesystem.uuid);
  ASSERT_TRUE(volumes().Close(made.id, {}).ok());
  // The cut can go, and the source.
  ASSERT_TRUE(volumes().Discard(cut.id, {}).ok());
  ASSERT_TRUE(volumes().Delete(source.id, false, {}).ok());
  EXPECT_THAT(lvm().Names(), ElementsAre(made.id));
}

TEST_F(PoolLvmTest, ACopyThatIsCutBeforeItWasOpenedGetsItsUuidFirst) {
  const PoolVolumeRecord source = MakeUsed("pvc-1");
  const PoolVolumeRecord clone =
      Must(volumes().Create(LvmWishOf("pvc-2", CloneContent(source.id)), {}));
  const PoolCutRecord cut = Must(Cut(clone.id)).at(0);
  const PoolFilesystem noted = Must(volumes().Find(clone.id)).filesystem;
  EXPECT_EQ(noted.new_uuid, "");
  EXPECT_EQ(cut.filesystem, noted);
  EXPECT_EQ(lvm().Content(cut.id).identity.uuid, noted.uuid);
  EXPECT_THAT(lvm().ActiveNames(), IsEmpty());
}

TEST_F(PoolLvmTest, ACutThatHasLostItsLogicalVolumeMakesNoVolume) {
  const PoolCutRecord cut = Must(Cut(MakeUsed("pvc-1").id)).at(0);
  lvm().at(cut.id).uuid = "another";
  ExpectRefused(volumes().Create(LvmWishOf("pvc-2", SnapshotContent(cut.id)), {}),
                Code::kFailedPrecondition, "another one than that on record");
  EXPECT_EQ(world_.Rows().size(), 1u);
}

// ---- on the node --------------------------------------------------------------------------------

TEST(PoolLvmPlugin, APodHasItAndItGrowsThereAndGoesWithItsClaim) {
  PoolPluginWorld node;
  FakeLvm lvm(node.kernel);
  PoolPluginAgent agent(node, kDriver, {LvmTestPool()});
  ASSERT_TRUE(agent.Recover().ok());
  VolumeOptions options = ClaimOptions();
  options.parameters["backend"] = "lvm";
  ClaimedVolume claimed = Must(agent.Plan(options));
  claimed.volume.spec = Must(agent.Make(claimed)).spec;
  for (int i = 0; i < 2; ++i) {
    const Status mounted = agent.MountDevice(claimed.Spec());
    ASSERT_TRUE(mounted.ok()) << mounted.error().ToString();
  }
  ASSERT_TRUE(agent.SetUp(claimed.Spec()).ok());
  EXPECT_EQ(lvm.Content(claimed.id()).fs_type, "ext4");
  EXPECT_EQ(lvm.Content(claimed.id()).formats, 1);
  Must(agent.Expand(claimed, 32 * kMiB));
  Must(agent.NodeExpand(claimed, 32 * kMiB));
  EXPECT_EQ(lvm.Content(claimed.id()).growths, 1);
  EXPECT_FALSE(agent.Delete(claimed).ok()) << "it is mounted";
  ASSERT_TRUE(agent.TearDown(claimed.Spec()).ok());
  ASSERT_TRUE(agent.UnmountDevice(claimed.id()).ok());
  EXPECT_THAT(lvm.ActiveNames(), IsEmpty());
  ASSERT_TRUE(agent.MountDevice(claimed.Spec()).ok());
  EXPECT_EQ(lvm.Content(claimed.id()).formats, 1);
  ASSERT_TRUE(agent.UnmountDevice(claimed.id()).ok());
  EXPECT_TRUE(agent.Delete(claimed).ok());
  EXPECT_THAT(lvm.Names(), IsEmpty());
}

}  // namespace
}  // namespace volumed
