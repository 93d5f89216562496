// Volumes that are directories and subvolumes of the pool, over FakeKernel: made, bounded, bound,
// cut, copied and deleted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <string>
#include <vector>

#include "fakes/must.h"
#include "mounter/mount_refs.h"
#include "unit/pool/pool_trees_fixture.h"

namespace volumed {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_P(TreeBackendTest, AVolumeIsADirectoryWithItsSizeAsItsLimitAndHasNoDevice) {
  const PoolVolumeRecord made = Must(volumes().Create(TreeWish(Backend()), {}));
  EXPECT_EQ(made.state, PoolVolumeState::kReady);
  EXPECT_EQ(PoolBackendName(made.backend), Backend());
  EXPECT_EQ(made.capacity_bytes, kTreeBytes);
  const FakeFile data = node_.kernel.Find(DataOf(made.id));
  EXPECT_EQ(data.type, FileType::kDirectory);
  EXPECT_EQ(data.mode, 0755u);
  EXPECT_EQ(QuotaOf(made.id).limit_bytes, kTreeBytes);
  EXPECT_EQ(Write(DataOf(made.id) + "/f", kTreeBytes + 1), Beyond());
  EXPECT_EQ(Write(DataOf(made.id) + "/f", kTreeBytes / 2), 0);
  const OpenedVolume opened = Must(volumes().Open(made.id, false, {}));
  EXPECT_EQ(opened.device, "");
  EXPECT_EQ(opened.directory.Display(), DataOf(made.id));
  EXPECT_THAT(node_.Loops(), IsEmpty());
  // The same again is the same volume.
  EXPECT_EQ(Must(volumes().Create(TreeWish(Backend()), {})).id, made.id);
  EXPECT_THAT(node_.Directories(), SizeIs(1));
}

TEST_P(TreeBackendTest, ABlockVolumeIsRefused) {
  PoolVolumeWish wish = TreeWish(Backend());
  wish.is_block = true;
  ExpectRefused(volumes().Create(wish, {}), Code::kInvalidArgument, "cannot be a block volume");
  EXPECT_THAT(node_.Rows(), IsEmpty());
}

TEST_P(TreeBackendTest, AMakingThatWasCutOffGoesOn) {
  node_.kernel.FailNext("SetTreeQuota", Error::MaybeApplied(Code::kUnavailable, "it died"), 1,
                        /*apply=*/true);
  const auto cut_off = volumes().Create(TreeWish(Backend()), {});
  ASSERT_FALSE(cut_off.ok());
  EXPECT_TRUE(cut_off.error().maybe_applied());
  const PoolVolumeRecord made = Must(volumes().Create(TreeWish(Backend()), {}));
  EXPECT_EQ(QuotaOf(made.id).limit_bytes, kTreeBytes);
  EXPECT_THAT(node_.Directories(), SizeIs(1));
}

// The records are those of before the volume was made, and it has been used since.
TEST_P(TreeBackendTest, AMakingThatWasRepeatedWithOlderRecordsRemovedWhatWasWritten) {
  PoolVolumeRecord row = Must(volumes().Create(TreeWish(Backend()), {}));
  const std::string file = DataOf(row.id) + "/f";
  ASSERT_EQ(Write(file, kMiB), 0);
  row.state = PoolVolumeState::kMaking;
  row.object = {};
  ASSERT_TRUE(node_.store.Put(EncodeRecord(row), Durability::kPowerLoss).ok());
  agent_.reset();
  agent_ = std::make_unique<PoolPluginAgent>(node_);
  ASSERT_TRUE(agent_->Recover().ok());
  node_.kernel.FailNext("SetTreeQuota", Error::NotApplied(Code::kUnavailable, "no quota now"), 1,
                        /*apply=*/false);
  const auto refused = volumes().Create(TreeWish(Backend()), {});
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(refused.error().maybe_applied()) << refused.error().ToString();
  EXPECT_TRUE(node_.kernel.Exists(file));
}

TEST_P(TreeBackendTest, GrowthRaisesTheLimitAndQuotaBytesKeepsItLower) {
  const PoolVolumeRecord made = Must(volumes().Create(TreeWish(Backend()), {}));
  EXPECT_EQ(Must(volumes().Expand(made.id, 2 * kTreeBytes, {})), 2 * kTreeBytes);
  EXPECT_EQ(QuotaOf(made.id).limit_bytes, 2 * kTreeBytes);
  const StringMap lower = {{"quotaBytes", std::to_string(kMiB)}};
  ASSERT_TRUE(volumes().Modify(made.id, lower, {}).ok());
  EXPECT_EQ(QuotaOf(made.id).limit_bytes, kMiB);
  Must(volumes().Expand(made.id, 4 * kTreeBytes, {}));
  EXPECT_EQ(QuotaOf(made.id).limit_bytes, kMiB);
  const Status more = volumes().Modify(made.id, {{"quotaBytes", std::to_string(64 * kMiB)}}, {});
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().code(), Code::kInvalidArgument);
  const Status device = volumes().Modify(made.id, {{"directIO", "true"}}, {});
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(volumes().Find(made.id)->mutable_parameters, lower);
}

TEST_P(TreeBackendTest, AnotherDirectoryInItsPlaceIsNeitherOpenedNorRemoved) {
  const PoolVolumeRecord made = Must(volumes().Create(TreeWish(Backend()), {}));
  node_.kernel.Rename(DataOf(made.id), "moved");
  node_.kernel.AddFile(DataOf(made.id) + "/f", "somebody's");
  ExpectRefused(volumes().Open(made.id, false, {}), Code::kFailedPrecondition,
                "another directory than the one on record");
  const Status deleted = volumes().Delete(made.id, false, {});
  ASSERT_FALSE(deleted.ok());
  EXPECT_EQ(node_.kernel.Find(DataOf(made.id) + "/f").content, "somebody's");
}

TEST_P(TreeBackendTest, ADeletedVolumeIsGoneAndOneThatIsBoundSomewhereIsNot) {
  const PoolVolumeRecord made = Must(volumes().Create(TreeWish(Backend()), {}));
  ASSERT_EQ(Write(DataOf(made.id) + "/f", 10), 0);
  node_.kernel.AddDirectory("/elsewhere");
  node_.Aside(BindMount{.source = {DataOf(made.id), ""}, .target = {"/elsewhere", ""}});
  const Status bound = volumes().Delete(made.id, false, {});
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(bound.error().message(), HasSubstr("/elsewhere"));
  EXPECT_FALSE(bound.error().maybe_applied());
  EXPECT_TRUE(node_.kernel.Exists(DataOf(made.id) + "/f"));
  node_.Aside(Unmount{{"/elsewhere", ""}});
  // It was promised to go all the same, and went with the next start.
  EXPECT_EQ(Must(volumes().Find(made.id)).state, PoolVolumeState::kReady);
  const Status deleted = volumes().Delete(made.id, false, {});
  ASSERT_TRUE(deleted.ok()) << deleted.error().ToString();
  EXPECT_THAT(node_.Directories(), IsEmpty());
  EXPECT_THAT(node_.Rows(), IsEmpty());
}

// A kubelet binds a directory of a volume for a subPath, and such a bind can outlive the volume's.
TEST_P(TreeBackendTest, AVolumeOfWhichADirectoryWasStillBoundSomewhereWasDeleted) {
  const PoolVolumeRecord made = Must(volumes().Create(TreeWish(Backend()), {}));
  node_.kernel.AddFile(DataOf(made.id) + "/sub/f", "somebody's");
  node_.kernel.AddDirectory("/elsewhere");
  node_.Aside(BindMount{.source = {DataOf(made.id), "sub"}, .target = {"/elsewhere", ""}});
  const Status bound = volumes().Delete(made.id, false, {});
  ASSERT_FALSE(bound.ok());
  EXPECT_THAT(bound.error().message(), HasSubstr("or something in it, is mounted at /elsewhere"));
  EXPECT_TRUE(node_.kernel.Exists("/elsewhere/f"));
  node_.Aside(Unmount{{"/elsewhere", ""}});
  const Status deleted = volumes().Delete(made.id, false, {});
  EXPECT_TRUE(deleted.ok()) << deleted.error().ToString();
}

// What lay beside the mount was gone when the deletion met it, and the rest went once it was away.
TEST_P(TreeBackendTest, AVolumeInWhichSomethingWasMountedWasDeletedInPart) {
  const PoolVolumeRecord made = Must(volumes().Create(TreeWish(Backend()), {}));
  const std::string data = DataOf(made.id);
  node_.kernel.AddFile(data + "/a/f", "somebody's");
  node_.kernel.AddDirectory(data + "/m");
  const auto expect_refused = [&](const std::string& place) {
    const Status refused = volumes().Delete(made.id, false, {});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
    EXPECT_FALSE(refused.error().maybe_applied());
    EXPECT_THAT(refused.error().message(), HasSubstr("is mounted at " + place));
    EXPECT_TRUE(node_.kernel.Exists(data + "/a/f"));
    EXPECT_EQ(Must(volumes().Find(made.id)).state, PoolVolumeState::kReady);
    node_.Aside(Unmount{{place, ""}});
  };
  node_.kernel.AddMount("tmpfs", "tmpfs", data + "/m");
  expect_refused(data + "/m");
  node_.Aside(BindMount{.source = {data, ""}, .target = {data, ""}});  // over itself
  expect_refused(data);
  const Status deleted = volumes().Delete(made.id, false, {});
  EXPECT_TRUE(deleted.ok()) << deleted.error().ToString();
}

TEST_P(TreeBackendTest, WhatItHasCountsAgainstThePoolOnce) {
  const PoolVolumeRecord made = Must(volumes().Create(TreeWish(Backend()), {}));
  const PoolAccount before = Must(volumes().Capacity({}, {}));
  EXPECT_EQ(before.promised_bytes, kTreeBytes);
  ASSERT_EQ(Write(DataOf(made.id) + "/f", kMiB), 0);
  const PoolAccount after = Must(volumes().Capacity({}, {}));
  EXPECT_EQ(after.outstanding_bytes, before.outstanding_bytes - kMiB);
  EXPECT_EQ(after.free_bytes, before.free_bytes);
}

// ---- on the node --------------------------------------------------------------------------------

TEST_P(TreeBackendTest, ItsDirectoryIsBoundForTheNodeAndForPodsWhoseWritesItKeeps) {
  const ClaimedVolume claimed = Claim(Backend());
  const std::string place = PoolPluginAgent::DevicePlace(claimed.id());
  for (int i = 0; i < 2; ++i) {
    const Status mounted = agent_->MountDevice(claimed.Spec());
    ASSERT_TRUE(mounted.ok()) << mounted.error().ToString();
  }
  EXPECT_TRUE(node_.kernel.IsMountPoint(place));
  ASSERT_TRUE(agent_->SetUp(claimed.Spec()).ok());
  const std::string pod = PoolPluginAgent::PodPlace(claimed);
  EXPECT_TRUE(node_.kernel.IsMountPoint(pod));
  EXPECT_EQ(Write(pod + "/note", 10), 0);
  EXPECT_EQ(Write(pod + "/big", kTreeBytes), Beyond());
  const SafePath path = Must(agent_->world.paths.BelowRoot(pod));
  const ReconstructedVolume found =
      Must(agent_->plugin.ConstructVolumeSpec(SpecName("pvc-1"), path, {}));
  EXPECT_EQ(Must(agent_->plugin.GetVolumeName(found.spec)), claimed.id());
  ASSERT_TRUE(agent_->TearDown(claimed.Spec()).ok());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(agent_->UnmountDevice(claimed.id()).ok());
  EXPECT_FALSE(node_.kernel.Exists(place));
  EXPECT_TRUE(node_.kernel.Exists(DataOf(claimed.id()) + "/note"));
  EXPECT_TRUE(agent_->Delete(claimed).ok());
}

TEST_P(TreeBackendTest, ItsFiguresAreItsOwnAndNotThoseOfThePool) {
  const ClaimedVolume claimed = Claim(Backend());
  ASSERT_TRUE(agent_->MountDevice(claimed.Spec()).ok());
  ASSERT_TRUE(agent_->SetUp(claimed.Spec()).ok());
  ASSERT_EQ(Write(PoolPluginAgent::PodPlace(claimed) + "/f", kMiB), 0);
  const auto mounter =
      Must(agent_->plugin.NewMounter(claimed.Spec(), TargetOf(agent_->world.paths, agent_->plugin,
                                                              claimed.Spec(), MakePod("u1"))));
  const Metrics metrics = Must(mounter->GetMetrics({}));
  EXPECT_EQ(metrics.capacity_bytes, kTreeBytes);
  EXPECT_EQ(metrics.used_bytes, kMiB);
  EXPECT_EQ(metrics.available_bytes, kTreeBytes - kMiB);
}

TEST_P(TreeBackendTest, WhoOnlyReadsGetsAReadOnlyBind) {
  const ClaimedVolume claimed = Claim(Backend());
  ASSERT_TRUE(agent_->MountDevice(claimed.Spec(/*read_only=*/true)).ok());
  const auto bind = Must(FindMountAt(node_.kernel, PoolPluginAgent::DevicePlace(claimed.id()), {}));
  ASSERT_TRUE(bind.has_value());
  EXPECT_TRUE(bind->read_only());
}

TEST_P(TreeBackendTest, MountOptionsAreRefusedAsItsFilesystemIsMountedAlready) {
  ClaimedVolume claimed = Claim(Backend());
  claimed.volume.spec.mount_options = {"noatime"};
  const Status mounted = agent_->MountDevice(claimed.Spec());
  ASSERT_FALSE(mounted.ok());
  EXPECT_EQ(mounted.error().code(), Code::kInvalidArgument);
  EXPECT_FALSE(node_.kernel.Exists(PoolPluginAgent::DevicePlace(claimed.id())));
}

TEST_P(TreeBackendTest, SomethingElseAtItsPlaceIsNotTakenForIt) {
  const ClaimedVolume claimed = Claim(Backend());
  node_.kernel.AddMount("tmpfs", "few", PoolPluginAgent::DevicePlace(claimed.id()));
  const Status mounted = agent_->MountDevice(claimed.Spec());
  ASSERT_FALSE(mounted.ok());
  EXPECT_EQ(mounted.error().code(), Code::kFailedPrecondition);
}

TEST_P(TreeBackendTest, ItGrowsWhileAPodHasIt) {
  const ClaimedVolume claimed = Claim(Backend());
  ASSERT_TRUE(agent_->MountDevice(claimed.Spec()).ok());
  ASSERT_TRUE(agent_->SetUp(claimed.Spec()).ok());
  EXPECT_EQ(Write(PoolPluginAgent::PodPlace(claimed) + "/f", kTreeBytes + kMiB), Beyond());
  Must(agent_->Expand(claimed, 2 * kTreeBytes));
  EXPECT_TRUE(Must(agent_->NodeExpand(claimed, 2 * kTreeBytes)));
  EXPECT_EQ(Write(PoolPluginAgent::PodPlace(claimed) + "/f", kTreeBytes + kMiB), 0);
}

// ---- contents -----------------------------------------------------------------------------------

TEST_P(TreeBackendTest, AVolumeMadeOfACutHasWhatWasThereThenAndALimitOfItsOwn) {
  const PoolVolumeRecord source = Must(volumes().Create(TreeWish(Backend()), {}));
  node_.kernel.AddFile(DataOf(source.id) + "/f", "then");
  const std::string cut = Cut(source.id);
  ASSERT_TRUE(volumes().CopyCut(cut, 0, {}).ok());
  EXPECT_TRUE(IsWhole(Must(volumes().FindCut(cut))));
  node_.kernel.AddFile(DataOf(source.id) + "/f", "later");
  PoolVolumeWish larger = TreeWish(Backend(), "copy");
  larger.size.required_bytes = 2 * kTreeBytes;
  const PoolVolumeRecord copy = Must(MakeOf(cut, larger));
  EXPECT_EQ(node_.kernel.Find(DataOf(copy.id) + "/f").content, "then");
  EXPECT_EQ(QuotaOf(copy.id).limit_bytes, 2 * kTreeBytes);
  EXPECT_EQ(QuotaOf(source.id).limit_bytes, kTreeBytes);
  EXPECT_EQ(Write(DataOf(copy.id) + "/new", 10), 0);
  ASSERT_TRUE(volumes().Discard(cut, {}).ok());
  EXPECT_FALSE(node_.kernel.Exists(DataOf(cut)));
  EXPECT_EQ(node_.kernel.Find(DataOf(copy.id) + "/f").content, "then");
}

TEST_P(TreeBackendTest, TwoAreNeverCutAtOneMoment) {
  const PoolVolumeRecord one = Must(volumes().Create(TreeWish(Backend(), "one"), {}));
  const PoolVolumeRecord two = Must(volumes().Create(TreeWish(Backend(), "two"), {}));
  const auto cut = volumes().Cut(
      {{.volume = one.id, .cut = volumes().NewCutId(one.id), .mounted = std::nullopt},
       {.volume = two.id, .cut = volumes().NewCutId(two.id), .mounted = std::nullopt}},
      {}, {});
  ExpectRefused(cut, Code::kFailedPrecondition, "at one moment");
  EXPECT_THAT(volumes().Cuts(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Kinds, TreeBackendTest,
                         ::testing::Values(TreeKind{"directory", "xfs", ENOSPC},
                                           TreeKind{"subvolume", "btrfs", EDQUOT}),
                         [](const auto& kind) { return std::string(kind.param.backend); });

// ---- of one backend -----------------------------------------------------------------------------

TEST_F(TreePoolTest, ASubvolumeOnAnotherFilesystemIsRefusedAndNothingIsLeft) {
  ASSERT_NO_FATAL_FAILURE(Start("xfs"));
  ExpectRefused(volumes().Create(TreeWish("subvolume"), {}), Code::kFailedPrecondition,
                "no volumes of backend subvolume");
  EXPECT_THAT(node_.Rows(), IsEmpty());
  EXPECT_THAT(node_.Directories(), IsEmpty());
}

// The account of the subvolume that it lies in is not its own.
TEST_F(TreePoolTest, ADirectoryOnABtrfsHasNoLimitAndNoFiguresOfItsOwn) {
  ASSERT_NO_FATAL_FAILURE(Start("btrfs"));
  ExpectRefused(volumes().Create(TreeWish("directory"), {}), Code::kFailedPrecondition,
                "best-effort");
  PoolVolumeWish wish = TreeWish("directory");
  wish.parameters["quota"] = "best-effort";
  const PoolVolumeRecord made = Must(volumes().Create(wish, {}));
  ASSERT_EQ(Write(DataOf(made.id) + "/f", kMiB), 0);
  EXPECT_EQ(Must(volumes().Capacity({}, {})).outstanding_bytes, kTreeBytes);
}

TEST_F(TreePoolTest, ADirectoryThatSomebodyWritesToIsNotCopiedUnlessItsClassSaysSo) {
  ASSERT_NO_FATAL_FAILURE(Start("xfs"));
  const PoolVolumeRecord made = Must(volumes().Create(TreeWish("directory"), {}));
  const CutWish::Mounted mounted{{"/r", "place"}, 8, 1};
  const auto cut = volumes().Cut(
      {{.volume = made.id, .cut = volumes().NewCutId(made.id), .mounted = mounted}}, {}, {});
  ExpectRefused(cut, Code::kFailedPrecondition, "mounted for writing");
  EXPECT_THAT(volumes().Cuts(), IsEmpty());
  // And whoever would write to it waits for the copy.
  const std::string id = Cut(made.id);
  ExpectRefused(volumes().Open(made.id, false, {}), Code::kFailedPrecondition, "being copied");
  ASSERT_TRUE(volumes().CopyCut(id, 0, {}).ok());
  EXPECT_TRUE(volumes().Open(made.id, false, {}).ok());
}

TEST_F(TreePoolTest, ACopyThatFailedBeginsAnew) {
  ASSERT_NO_FATAL_FAILURE(Start("xfs"));
  const PoolVolumeRecord made = Must(volumes().Create(TreeWish("directory"), {}));
  node_.kernel.AddFile(DataOf(made.id) + "/f", "kept");
  const std::string cut = Cut(made.id);
  node_.kernel.FailNext("CopyTree", ENOSPC, Outcome::kMaybeApplied);
  node_.kernel.AddFile(DataOf(cut) + "/half", "x");
  const Status failed = volumes().CopyCut(cut, 0, {});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code(), Code::kResourceExhausted);
  EXPECT_FALSE(IsWhole(Must(volumes().FindCut(cut))));
  node_.kernel.AddFile(DataOf(cut) + "/half", "x");
  ASSERT_TRUE(volumes().CopyCut(cut, 0, {}).ok());
  EXPECT_EQ(node_.kernel.Find(DataOf(cut) + "/f").content, "kept");
  EXPECT_FALSE(node_.kernel.Exists(DataOf(cut) + "/half"));
}

TEST_F(TreePoolTest, ACopyWithoutRoomLeftAHalfVolumeThatNobodyKnew) {
  ASSERT_NO_FATAL_FAILURE(Start("xfs"));
  const PoolVolumeRecord made = Must(volumes().Create(TreeWish("directory"), {}));
  node_.kernel.AddFile(DataOf(made.id) + "/f", "kept");
  const std::string cut = Cut(made.id);
  ASSERT_TRUE(volumes().CopyCut(cut, 0, {}).ok());
  node_.kernel.FailNext("CopyTree", ENOSPC, Outcome::kMaybeApplied);
  ExpectRefused(MakeOf(cut, TreeWish("directory", "copy")), Code::kResourceExhausted, "");
  EXPECT_THAT(node_.Rows(), SizeIs(1)) << "that of the source";
  EXPECT_TRUE(MakeOf(cut, TreeWish("directory", "copy")).ok());
}

TEST_F(TreePoolTest, ADirectoryWithASubvolumeInItWasCutWithoutThat) {
  ASSERT_NO_FATAL_FAILURE(Start("btrfs"));
  PoolVolumeWish wish = TreeWish("directory");
  wish.parameters["quota"] = "best-effort";
  const PoolVolumeRecord made = Must(volumes().Create(wish, {}));
  node_.Aside(MakeSubvolume{.path = {DataOf(made.id), "inside"}});
  const std::string cut = Cut(made.id);
  const Status copied = volumes().CopyCut(cut, 0, {});
  ASSERT_FALSE(copied.ok());
  EXPECT_EQ(copied.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(copied.error().message(), HasSubstr("a subvolume is in it"));
  EXPECT_FALSE(IsWhole(Must(volumes().FindCut(cut))));
}

TEST_F(TreePoolTest, ADirectoryWithAReadOnlySubvolumeInItStayedForEver) {
  ASSERT_NO_FATAL_FAILURE(Start("btrfs"));
  PoolVolumeWish wish = TreeWish("directory");
  wish.parameters["quota"] = "best-effort";
  const PoolVolumeRecord made = Must(volumes().Create(wish, {}));
  const SafePath one{DataOf(made.id), "one"};
  node_.Aside(MakeSubvolume{.path = one});
  ASSERT_EQ(Write(one.Display() + "/f", 10), 0);
  MakeSubvolume snapshot{.path = {DataOf(made.id), "two"}, .of = one};
  snapshot.read_only = true;
  node_.Aside(snapshot);
  const Status deleted = volumes().Delete(made.id, false, {});
  ASSERT_TRUE(deleted.ok()) << deleted.error().ToString();
  EXPECT_THAT(node_.Directories(), IsEmpty());
}

TEST_F(TreePoolTest, ACopyOfADirectoryKeepsToTheRateOfCopies) {
  ASSERT_NO_FATAL_FAILURE(Start("xfs"));
  const PoolVolumeRecord made = Must(volumes().Create(TreeWish("directory"), {}));
  const std::string cut = Cut(made.id);
  const Status refused = volumes().CopyCut(cut, -1, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kInvalidArgument) << "it gets to the effect";
  EXPECT_TRUE(volumes().CopyCut(cut, kMiB, {}).ok());
}

TEST_F(TreePoolTest, ADirectoryOfAClassWithoutMomentsIsCopiedWhileAPodHasIt) {
  ASSERT_NO_FATAL_FAILURE(Start("xfs"));
  const ClaimedVolume claimed = Claim("directory", {{"consistency", "best-effort"}});
  ASSERT_TRUE(agent_->MountDevice(claimed.Spec()).ok());
  const std::string place = PoolPluginAgent::DevicePlace(claimed.id());
  ASSERT_EQ(Write(place + "/d-f", 10), 0);
  const auto bind = Must(FindMountAt(node_.kernel, place, {}));
  const CutWish::Mounted mounted{
      {place, ""}, bind->device_major, bind->device_minor, /*is_bind=*/true};
  const std::string id = volumes().NewCutId(claimed.id());
  const std::vector<PoolCutRecord> cuts =
      Must(volumes().Cut({{.volume = claimed.id(), .cut = id, .mounted = mounted}}, {}, {}));
  EXPECT_TRUE(cuts.at(0).is_copy);
  EXPECT_FALSE(cuts.at(0).was_frozen);
  // Another pod gets it meanwhile; but it is not deleted.
  EXPECT_TRUE(volumes().Open(claimed.id(), false, {}).ok());
  ExpectRefused(volumes().Delete(claimed.id(), false, {}), Code::kFailedPrecondition,
                "being copied");
  ASSERT_TRUE(volumes().CopyCut(id, 0, {}).ok());
  EXPECT_TRUE(node_.kernel.Exists(DataOf(id) + "/d-f"));
  ASSERT_EQ(Write(place + "/g", 10), 0);
  EXPECT_FALSE(node_.kernel.Exists(DataOf(id) + "/g"));
}

TEST_F(TreePoolTest, ASubvolumeIsCutWhileAPodWritesAndTheCutTakesNoWrites) {
  ASSERT_NO_FATAL_FAILURE(Start("btrfs"));
  const ClaimedVolume claimed = Claim("subvolume");
  ASSERT_TRUE(agent_->MountDevice(claimed.Spec()).ok());
  ASSERT_EQ(Write(PoolPluginAgent::DevicePlace(claimed.id()) + "/f", 10), 0);
  const std::string place = PoolPluginAgent::DevicePlace(claimed.id());
  const auto bind = Must(FindMountAt(node_.kernel, place, {}));
  const CutWish::Mounted mounted{{place, ""}, bind->device_major, bind->device_minor};
  const std::string id = volumes().NewCutId(claimed.id());
  const std::vector<PoolCutRecord> cuts =
      Must(volumes().Cut({{.volume = claimed.id(), .cut = id, .mounted = mounted}}, {}, {}));
  EXPECT_FALSE(cuts.at(0).is_copy);
  EXPECT_FALSE(cuts.at(0).was_frozen);
  EXPECT_EQ(Write(DataOf(id) + "/new", 10), EROFS);
  EXPECT_EQ(Write(place + "/g", 10), 0);
  EXPECT_FALSE(node_.kernel.Exists(DataOf(id) + "/g"));
}

// ---- what a copy may have -----------------------------------------------------------------------

// Of a pool on a filesystem that shares no blocks, of which nobody counts the directories.
class UncountedTreeTest : public TreePoolTest {
 protected:
  void SetUp() override { Start("ext4", /*counts_projects=*/false); }
  static PoolVolumeWish Uncounted(const std::string& name = "v") {
    PoolVolumeWish wish = TreeWish("directory", name);
    wish.parameters["quota"] = "best-effort";
    wish.parameters["consistency"] = "best-effort";
    return wish;
  }
  // With content: what is a hole stays one in a copy.
  void Fill(const std::string& volume, const std::string& name, int64_t bytes) {
    node_.kernel.AddFile(DataOf(volume) + "/" + name, std::string(static_cast<size_t>(bytes), 'x'));
  }
  PoolAccount Account() { return Must(volumes().Capacity({}, {})); }
};

TEST_F(UncountedTreeTest, APodThatRefilledItsDirectoryMadeTheCutAsLargeAsItLiked) {
  const PoolVolumeRecord made = Must(volumes().Create(Uncounted(), {}));
  const int64_t promised = Account().promised_bytes;
  const std::string cut = Cut(made.id);
  // What it has had one after the other, the fake has at once.
  Fill(made.id, "refilled", 2 * kTreeBytes);
  const Status copied = volumes().CopyCut(cut, 0, {});
  ASSERT_FALSE(copied.ok());
  EXPECT_EQ(copied.error().code(), Code::kResourceExhausted);
  EXPECT_THAT(copied.error().message(),
              AllOf(HasSubstr("snapshot " + cut + " was promised 3.2Mi"), HasSubstr(made.id),
                    HasSubstr("freeze or stop who writes to it")));
  EXPECT_FALSE(IsWhole(Must(volumes().FindCut(cut))));
  ASSERT_TRUE(volumes().Discard(cut, {}).ok());
  EXPECT_FALSE(node_.kernel.Exists(DataOf(cut)));
  EXPECT_EQ(Account().promised_bytes, promised);
}

TEST_F(UncountedTreeTest, ACopyOfWhatNobodyCountsWasPromisedNothing) {
  const PoolVolumeRecord made = Must(volumes().Create(Uncounted(), {}));
  Fill(made.id, "f", kMiB);
  const std::string cut = Cut(made.id);
  const PoolAccount before = Account();
  EXPECT_EQ(before.promised_bytes, kTreeBytes + kTreeBytes + kTreeBytes / 8 + kMiB);
  EXPECT_EQ(before.outstanding_bytes, before.promised_bytes);
  ASSERT_TRUE(volumes().CopyCut(cut, 0, {}).ok());
  const PoolAccount after = Account();
  EXPECT_GE(after.promised_bytes, kTreeBytes + kMiB) << "what was written";
  EXPECT_LT(after.promised_bytes, kTreeBytes + 2 * kMiB);
  EXPECT_EQ(after.outstanding_bytes, kTreeBytes) << "nobody writes to the cut any more";
}

TEST_F(UncountedTreeTest, ACutIsNotBegunInAPoolWithoutRoomForAllThatTheCopyMayHave) {
  const PoolVolumeRecord made = Must(volumes().Create(Uncounted(), {}));
  PoolVolumeWish rest = TreeWish("directory", "rest");
  rest.parameters["quota"] = "best-effort";
  rest.size.required_bytes = Account().free_bytes / kMiB * kMiB - kMiB;
  Must(volumes().Create(rest, {}));
  const auto cut = volumes().Cut(
      {{.volume = made.id, .cut = volumes().NewCutId(made.id), .mounted = std::nullopt}}, {}, {});
  ExpectRefused(cut, Code::kResourceExhausted, "3.2Mi (3407872 bytes) are needed");
  EXPECT_THAT(volumes().Cuts(), IsEmpty());
}

TEST_F(UncountedTreeTest, AVolumeMadeOfALargerCutHadMoreThanItsSize) {
  const PoolVolumeRecord made = Must(volumes().Create(Uncounted(), {}));
  Fill(made.id, "f", kTreeBytes + kMiB);  // it has no limit
  const std::string cut = Cut(made.id);
  ASSERT_TRUE(volumes().CopyCut(cut, 0, {}).ok());
  ExpectRefused(MakeOf(cut, Uncounted("copy")), Code::kResourceExhausted,
                "snapshot " + cut + " has more: ask for a larger one");
  EXPECT_THAT(node_.Rows(), SizeIs(1)) << "that of the source";
  PoolVolumeWish larger = Uncounted("copy");
  larger.size.required_bytes = 2 * kTreeBytes;
  EXPECT_TRUE(MakeOf(cut, larger).ok());
}

// The volume may write all of its blocks anew, and the copies keep theirs.
TEST_F(TreePoolTest, CopiesThatSharedTheirBlocksWereCountedAsIfTheyHadTheirOwn) {
  ASSERT_NO_FATAL_FAILURE(Start("xfs"));
  const PoolVolumeRecord made = Must(volumes().Create(TreeWish("directory"), {}));
  ASSERT_EQ(Write(DataOf(made.id) + "/f", kMiB), 0);
  const std::string cut = Cut(made.id);
  ASSERT_TRUE(volumes().CopyCut(cut, 0, {}).ok());
  const PoolCutRecord row = Must(volumes().FindCut(cut));
  EXPECT_EQ(row.family, made.family);
  EXPECT_GE(row.allocated_bytes, kMiB);
  EXPECT_GE(Must(volumes().Capacity({}, {})).outstanding_bytes, kTreeBytes);
  EXPECT_EQ(Must(MakeOf(cut, TreeWish("directory", "copy"))).family, made.family);
}

}  // namespace
}  // namespace volumed
