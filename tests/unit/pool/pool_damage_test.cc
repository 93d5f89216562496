// What a pool does about volumes that have lost something: their row, their file, or the end of
// their first format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "unit/pool/pool_plugin_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kOtherPoolPath[] = "/srv/big";

std::vector<PoolSettings> TwoPools() { return {TestPool(), TestPool("big", kOtherPoolPath)}; }

PoolVolumeWish WishInOther(const std::string& name) {
  PoolVolumeWish wish = Wish(name);
  wish.parameters = {{"pool", "big"}};
  return wish;
}

std::string DirectoryOf(const std::string& id) { return kPoolPath + "/volumes/" + id; }

// The rows of all volumes; those of the pools stay.
void LoseVolumeRows(PoolWorld& world) {
  for (const Record& row : world.store.All()) {
    if (row.kind != kPoolVolumeRecordKind) continue;
    ASSERT_TRUE(world.store.Remove(row.kind, row.key, Durability::kPowerLoss).ok());
  }
}

Error WhyRefused(const Status& status) {
  return status.ok() ? Error::NotApplied(Code::kUnknown, "it was not refused") : status.error();
}
template <typename T>
Error WhyRefused(const Result<T>& result) {
  return WhyRefused(result.ok() ? OkStatus() : Status(result.error()));
}

// ---- a row that is older than its file ----------------------------------------------------------

// The records are those of before the volume was made, and its file has grown since.
TEST(PoolWithOlderRecords, AMakingThatWasRepeatedRemovedTheLargerFile) {
  PoolWorld world;
  world.kernel.AddMount("ext4", "/dev/sdb", kPoolPath);
  PoolVolumeRecord row;
  {
    PoolAgent agent(world, {TestPool()});
    ASSERT_TRUE(agent.Recover().ok());
    row = Must(agent.volumes->Create(Wish("pvc-1"), {}));
    ASSERT_EQ(Must(agent.volumes->Expand(row.id, 32 * kMiB, {})), 32 * kMiB);
  }
  row.state = PoolVolumeState::kMaking;
  row.object = {};
  ASSERT_TRUE(world.store.Put(EncodeRecord(row), Durability::kPowerLoss).ok());
  const std::string image = DirectoryOf(row.id) + "/image";

  PoolAgent next(world, {TestPool()});
  ASSERT_TRUE(next.Recover().ok());
  const Error refused = WhyRefused(next.volumes->Create(Wish("pvc-1"), {}));
  EXPECT_TRUE(refused.maybe_applied()) << refused.ToString();
  EXPECT_TRUE(world.kernel.Exists(image));
}

// The content that it was made of was put over what it had been given since.
TEST(PoolWithOlderRecords, AVolumeThatWasMadeOfASnapshotWasMadeAgainByRecordsThatWereAccepted) {
  const std::string snapshot = NewPoolId(PoolObject::kCut, "0123abcd").ToString();
  PoolWorld world;
  PoolVolumeRecord row;
  {
    PoolAgent agent(world, {TestPool()});
    ASSERT_TRUE(agent.Recover().ok());
    row = Must(agent.volumes->Create(Wish("pvc-1"), {}));
  }
  row.state = PoolVolumeState::kMaking;
  row.from_snapshot = snapshot;
  ASSERT_TRUE(world.store.Put(EncodeRecord(row), Durability::kPowerLoss).ok());
  {
    PoolAgent in_doubt(world, {TestPool()}, /*in_doubt=*/true);
    world.store.FailNext(Error::NotApplied(Code::kUnavailable, "no store"));
    EXPECT_FALSE(in_doubt.volumes->SaveDoubted().ok());
    EXPECT_TRUE(in_doubt.volumes->SaveDoubted().ok());
  }
  PoolAgent next(world, {TestPool()});
  ASSERT_TRUE(next.Recover().ok());
  PoolVolumeWish wish = Wish("pvc-1");
  wish.content.emplace();
  wish.content->is_snapshot = true;
  wish.content->handle = snapshot;
  const Error refused = WhyRefused(next.volumes->Create(wish, {}));
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition) << refused.ToString();
  EXPECT_FALSE(refused.maybe_applied());
  EXPECT_NE(refused.message().find("at " + DirectoryOf(row.id)), std::string::npos)
      << refused.ToString();
  EXPECT_TRUE(world.kernel.Exists(DirectoryOf(row.id) + "/image"));
  EXPECT_TRUE(next.volumes->Delete(row.id, false, {}).ok());
}

// ---- a disk that has failed ---------------------------------------------------------------------

// The loop devices of a pool whose disk had failed stayed for ever, and its disk could not be
// unmounted for them and for the lock.
TEST(PoolOnAFailedDisk, WhatWasOpenOnADiskThatFailedWasNeverClosed) {
  PoolWorld world;
  PoolAgent agent(world, {TestPool()});
  ASSERT_TRUE(agent.Recover().ok());
  PoolVolumes& volumes = *agent.volumes;
  const std::string id = Must(volumes.Create(Wish("pvc-1"), {})).id;
  ASSERT_TRUE(volumes.Open(id, false, {}).ok());
  ASSERT_EQ(world.Loops().size(), 1u);
  int told = 0;
  agent.pool().SetAway([&told] { ++told; });
  const auto fail = [&world](int count) {
    world.kernel.FailNextBelow("IdentifyStorage", kPoolPath,
                               Error::FromErrno(EIO, "look", Outcome::kNotApplied), count);
  };
  fail(1);
  EXPECT_EQ(WhyRefused(volumes.Capacity({}, {})).code(), Code::kDataLoss);
  EXPECT_EQ(told, 1);
  EXPECT_FALSE(agent.pool().state().ok());
  // The lock is given back: another agent finds the disk as it is.
  PoolAgent other(world, {TestPool()});
  EXPECT_TRUE(other.pool().Open(true, {}).ok()) << other.pool().state().error().ToString();
  fail(1);
  const Status closed = volumes.Close(id, {});
  EXPECT_TRUE(closed.ok()) << closed.error().ToString();
  EXPECT_TRUE(world.Loops().empty());
  EXPECT_EQ(told, 1);
}

// The same by the next agent, which never had the pool open.
TEST(PoolOnAFailedDisk, ANextAgentClosedNothingOnADiskThatHadFailed) {
  PoolWorld world;
  std::string id;
  {
    PoolAgent agent(world, {TestPool()});
    ASSERT_TRUE(agent.Recover().ok());
    id = Must(agent.volumes->Create(Wish("pvc-1"), {})).id;
    ASSERT_TRUE(agent.volumes->Open(id, false, {}).ok());
  }
  PoolAgent next(world, {TestPool()});
  world.kernel.FailNextBelow("IdentifyStorage", kPoolPath,
                             Error::FromErrno(EIO, "look", Outcome::kNotApplied), 2);
  EXPECT_FALSE(next.Recover().ok());
  const Status closed = next.volumes->Close(id, {});
  EXPECT_TRUE(closed.ok()) << closed.error().ToString();
  EXPECT_TRUE(world.Loops().empty());
  EXPECT_FALSE(next.volumes->Open(id, false, {}).ok()) << "it is not open for anything else";
}

// ---- a row that is lost -------------------------------------------------------------------------

// A volume of the pool "fast" without a row, on a disk that can be taken away.
class LostVolume : public ::testing::Test {
 protected:
  LostVolume() {
    world_.kernel.AddMount("ext4", "/dev/sdb", kPoolPath);
    world_.kernel.AddDirectory(kOtherPoolPath);
    {
      PoolAgent agent(world_, TwoPools());
      EXPECT_TRUE(agent.Recover().ok());
      id_ = Must(agent.volumes->Create(Wish("pvc-1"), {})).id;
    }
    LoseVolumeRows(world_);
  }

  PoolWorld world_;
  std::string id_;
};

TEST_F(LostVolume, KeptAllPoolsFromNewOnesUntilTheAgentWasStartedAgain) {
  PoolAgent agent(world_, TwoPools());
  ASSERT_TRUE(agent.Recover().ok());
  PoolVolumes& volumes = *agent.volumes;
  for (const PoolVolumeWish& wish : {Wish("pvc-2"), WishInOther("pvc-2")}) {
    const Error refused = WhyRefused(volumes.Create(wish, {}));
    EXPECT_EQ(refused.code(), Code::kFailedPrecondition) << refused.ToString();
    EXPECT_THAT(refused.message(), HasSubstr("in any pool of this node"));
    EXPECT_THAT(refused.message(), HasSubstr(DirectoryOf(id_)));
  }
  world_.kernel.Rename(DirectoryOf(id_), "kept-by-hand");
  EXPECT_TRUE(volumes.Create(WishInOther("pvc-2"), {}).ok());
  EXPECT_TRUE(volumes.Create(Wish("pvc-3"), {}).ok());
  EXPECT_EQ(volumes.MeaningOf(id_), PoolIdMeaning::kNone);
}

TEST_F(LostVolume, WasNeverDeletedThoughItsFilesWereMovedAway) {
  PoolAgent agent(world_, TwoPools());
  ASSERT_TRUE(agent.Recover().ok());
  EXPECT_EQ(WhyRefused(agent.volumes->Delete(id_, false, {})).code(), Code::kFailedPrecondition);
  world_.kernel.Rename(DirectoryOf(id_), "kept-by-hand");
  const Status deleted = agent.volumes->Delete(id_, false, {});
  EXPECT_TRUE(deleted.ok()) << deleted.error().ToString();
}

TEST_F(LostVolume, IsNotTakenForMovedAwayWhileItsDiskIsAway) {
  PoolAgent agent(world_, TwoPools());
  ASSERT_TRUE(agent.Recover().ok());
  world_.kernel.UnmountBelow(kPoolPath);
  EXPECT_EQ(WhyRefused(agent.volumes->Create(WishInOther("pvc-2"), {})).code(),
            Code::kFailedPrecondition);
  EXPECT_EQ(WhyRefused(agent.volumes->Delete(id_, false, {})).code(), Code::kFailedPrecondition);
  EXPECT_EQ(agent.volumes->MeaningOf(id_), PoolIdMeaning::kUnreadable);
}

TEST_F(LostVolume, WasNoSuchVolumeUntilItsPoolWasLookedThrough) {
  PoolAgent agent(world_, TwoPools());
  PoolVolumes& volumes = *agent.volumes;
  const auto nobody_knows = [&] {
    EXPECT_EQ(volumes.MeaningOf(id_), PoolIdMeaning::kNotKnownYet);
    EXPECT_EQ(WhyRefused(volumes.Find(id_)).code(), Code::kUnavailable);
    EXPECT_EQ(WhyRefused(volumes.Delete(id_, false, {})).code(), Code::kUnavailable);
    EXPECT_EQ(WhyRefused(volumes.Close(id_, {})).code(), Code::kUnavailable);
    EXPECT_EQ(WhyRefused(volumes.Create(Wish("pvc-1"), {})).code(), Code::kUnavailable);
  };
  nobody_knows();
  bool was_amid = false;
  world_.kernel.SetCallHook([&](const AnyRequest& request) {
    if (was_amid || !std::holds_alternative<ListDirectory>(request)) return;
    was_amid = true;
    EXPECT_TRUE(agent.pool().state().ok()) << "the pool is open already";
    nobody_knows();
  });
  ASSERT_TRUE(agent.Recover().ok());
  world_.kernel.SetCallHook({});
  EXPECT_TRUE(was_amid);
  EXPECT_EQ(WhyRefused(volumes.Find(id_)).code(), Code::kFailedPrecondition);
}

TEST(PoolDamage, ALostVolumeThatWasMountedCouldNeverBeTakenAway) {
  PoolPluginWorld node;
  ClaimedVolume claimed;
  {
    PoolPluginAgent agent(node);
    ASSERT_TRUE(agent.Recover().ok());
    claimed = Must(agent.Plan(ClaimOptions()));
    ASSERT_TRUE(agent.Make(claimed).ok());
    ASSERT_TRUE(agent.MountDevice(claimed.Spec()).ok());
  }
  LoseVolumeRows(node);
  PoolPluginAgent agent(node);
  ASSERT_TRUE(agent.Recover().ok());
  ASSERT_THAT(node.Loops(), SizeIs(1));
  const Status unmounted = agent.UnmountDevice(claimed.id());
  EXPECT_TRUE(unmounted.ok()) << unmounted.error().ToString();
  EXPECT_FALSE(node.kernel.IsMountPoint(PoolPluginAgent::DevicePlace(claimed.id())));
  EXPECT_THAT(node.Loops(), IsEmpty());
  EXPECT_TRUE(agent.volumes->EndLease(claimed.id(), "node-1", /*by_stage=*/true).ok());
  // To everybody else it is what it was.
  EXPECT_EQ(WhyRefused(agent.volumes->Open(claimed.id(), false, {})).code(),
            Code::kFailedPrecondition);
  EXPECT_TRUE(node.kernel.Exists(PoolWorld::ImageOf(claimed.id())));
}

// ---- a first format that did not end ------------------------------------------------------------

// A node with a claim's volume whose device is open and blank.
class HalfFormat : public PoolPluginTest {
 protected:
  HalfFormat() : claimed_(Claim()) {
    EXPECT_TRUE(agent_.volumes->Open(claimed_.id(), false, {}).ok());
    before_ = node_.Rows().at(0).object;
  }
  void Change(const std::function<void(FakeDevice&)>& change) {
    node_.kernel.ChangeDevice(node_.Loops().at(0).path, change);
  }
  // The volume's own format, as it fails on a disk that is full.
  void FailFormat() {
    const Error failed = WhyRefused(agent_.MountDevice(claimed_.Spec()));
    EXPECT_TRUE(failed.maybe_applied()) << failed.ToString();
    EXPECT_FALSE(node_.kernel.IsMountPoint(PoolPluginAgent::DevicePlace(claimed_.id())));
  }
  void ExpectMountedAnew() {
    Expect(agent_.MountDevice(claimed_.Spec()));
    const std::vector<PoolVolumeRecord> rows = node_.Rows();
    ASSERT_THAT(rows, SizeIs(1));
    EXPECT_EQ(rows[0].filesystem.type, "ext4");
    EXPECT_NE(rows[0].object, before_);
    EXPECT_EQ(rows[0].capacity_bytes, 16 * kMiB);
    EXPECT_THAT(node_.Directories(), SizeIs(1));
    EXPECT_EQ(node_.Look(PoolWorld::ImageOf(claimed_.id())).size_bytes, 16 * kMiB);
  }
  void ExpectLeftAsItIs(const std::string& why) {
    ExpectRefused(agent_.MountDevice(claimed_.Spec()), Code::kFailedPrecondition, why);
    EXPECT_EQ(node_.Rows().at(0).object, before_);
  }

  const ClaimedVolume claimed_;
  StorageObject before_;
};

TEST_F(HalfFormat, ADiskThatWasFullAmidTheFirstFormatMadeTheVolumeUnusableForGood) {
  Change([](FakeDevice& device) { device.cut_next_format = true; });
  FailFormat();
  ExpectMountedAnew();
}

TEST_F(HalfFormat, AFilesystemWhoseMakingWasCutOffMadeTheVolumeUnusableForGood) {
  Change([](FakeDevice& device) { device.unheard_next_format = CheckResult::kUncorrected; });
  FailFormat();
  ExpectMountedAnew();
}

TEST(PoolDamage, MakingAVolumeAnewThatWasCutOffLeftItWithoutAFile) {
  for (const char* effect : {"RemoveFile", "MakeDirectory", "WriteFile", "SetFileSize"}) {
    SCOPED_TRACE(effect);
    PoolPluginWorld node;
    PoolPluginAgent agent(node);
    ASSERT_TRUE(agent.Recover().ok());
    const ClaimedVolume claimed = Must(agent.Plan(ClaimOptions()));
    ASSERT_TRUE(agent.Make(claimed).ok());
    ASSERT_TRUE(agent.volumes->Open(claimed.id(), false, {}).ok());
    node.kernel.ChangeDevice(node.Loops().at(0).path,
                             [](FakeDevice& device) { device.cut_next_format = true; });
    EXPECT_FALSE(agent.MountDevice(claimed.Spec()).ok());
    node.kernel.FailNextBelow(effect, kPoolPath,
                              Error::MaybeApplied(Code::kUnavailable, "the worker died"));
    const Error cut_off = WhyRefused(agent.MountDevice(claimed.Spec()));
    EXPECT_TRUE(cut_off.maybe_applied()) << cut_off.ToString();
    const Status mounted = agent.MountDevice(claimed.Spec());
    EXPECT_TRUE(mounted.ok()) << mounted.error().ToString();
    EXPECT_THAT(node.Directories(), SizeIs(1));
    EXPECT_THAT(node.Loops(), SizeIs(1));
  }
}

TEST_F(HalfFormat, DataThatNoFormatOfTheVolumeHasLeftStays) {
  Change([](FakeDevice& device) { device.data = "byte 0x53 at offset 0"; });
  ExpectLeftAsItIs("unknown data");
}

TEST_F(HalfFormat, AnotherFilesystemThanTheOneThatWasBegunStays) {
  Change([](FakeDevice& device) { device.cut_next_format = true; });
  FailFormat();
  Change([](FakeDevice& device) {
    device.data.clear();
    device.fs_type = "xfs";
    device.usage = "filesystem";
    device.identity.uuid = "6b1c6a5e-0000-4000-8000-000000000001";
  });
  ExpectLeftAsItIs("xfs");
}

// A person has made it by hand, as the refusal says, and nothing in an xfs tells whether it was
// used since.
TEST_F(HalfFormat, AnXfsWithTheUuidOfTheFormatThatIsNotCleanStays) {
  Change([](FakeDevice& device) { device.cut_next_format = true; });
  FailFormat();
  const std::string key = "volumed.io/pool/" + claimed_.id();
  FormatIntent begun = Must(node_.intents.Find(key)).value();
  begun.fs_type = "xfs";
  ASSERT_TRUE(node_.intents.Begin(key, begun).ok());
  Change([&begun](FakeDevice& device) {
    device.data.clear();
    device.fs_type = "xfs";
    device.usage = "filesystem";
    device.identity.uuid = begun.fs_uuid;
    device.damage = CheckResult::kUncorrected;
  });
  ClaimedVolume as_xfs = claimed_;
  std::get<CsiPersistentVolumeSource>(as_xfs.volume.spec.source).fs_type = "xfs";
  ExpectRefused(agent_.MountDevice(as_xfs.Spec()), Code::kFailedPrecondition, "mend it");
  EXPECT_EQ(node_.Rows().at(0).object, before_);
}

TEST_F(HalfFormat, NothingIsMadeAnewWhileRecordsAreInDoubt) {
  Change([](FakeDevice& device) { device.cut_next_format = true; });
  FailFormat();
  agent_.irreversible.hold = true;
  ExpectLeftAsItIs("is held back");
  agent_.irreversible.hold = false;
  ExpectMountedAnew();
}

TEST_F(HalfFormat, AVolumeThatWasMountedIsNeverMadeAnew) {
  Expect(agent_.MountDevice(claimed_.Spec()));
  node_.kernel.UnmountBelow(PoolPluginAgent::DevicePlace(claimed_.id()));
  ExpectRefused(agent_.volumes->MakeAnew(claimed_.id(), {}), Code::kFailedPrecondition,
                "may have somebody's data");
  VolumeOptions options = ClaimOptions("pvc-2");
  options.claim.spec.volume_mode = VolumeMode::kBlock;
  const ClaimedVolume block = Claim(options);
  ExpectRefused(agent_.volumes->MakeAnew(block.id(), {}), Code::kFailedPrecondition,
                "may have somebody's data");
  EXPECT_THAT(node_.Directories(), SizeIs(2));
}

// ---- a file that is lost, or another ------------------------------------------------------------

TEST(PoolDamage, TheGrowthOfAVolumeWithoutItsFileSaidThatThereIsNoSuchVolume) {
  PoolWorld world;
  PoolAgent agent(world);
  ASSERT_TRUE(agent.Recover().ok());
  PoolVolumes& volumes = *agent.volumes;
  const std::string id = Must(volumes.Create(Wish("pvc-1"), {})).id;
  world.kernel.Remove(PoolWorld::ImageOf(id));
  for (const Error& error :
       {WhyRefused(volumes.Expand(id, 64 * kMiB, {})), WhyRefused(volumes.Open(id, false, {}))}) {
    EXPECT_EQ(error.code(), Code::kFailedPrecondition) << error.ToString();
    EXPECT_THAT(error.message(), HasSubstr(PoolWorld::ImageOf(id)));
  }
}

TEST(PoolDamage, TheDeletionOfAVolumeWithAnotherFileNeverEndedAndSaidNoWayOut) {
  PoolWorld world;
  PoolAgent agent(world);
  ASSERT_TRUE(agent.Recover().ok());
  PoolVolumes& volumes = *agent.volumes;
  const std::string id = Must(volumes.Create(Wish("pvc-1"), {})).id;
  world.kernel.Rename(PoolWorld::ImageOf(id), "kept-by-hand");
  world.kernel.AddFile(PoolWorld::ImageOf(id), "somebody's");
  const Error refused = WhyRefused(volumes.Delete(id, false, {}));
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition) << refused.ToString();
  EXPECT_THAT(refused.message(), HasSubstr("move " + DirectoryOf(id) + " away"));
  EXPECT_TRUE(world.kernel.Exists(PoolWorld::ImageOf(id)));
  world.kernel.Rename(DirectoryOf(id), "moved-away");
  const Status deleted = volumes.Delete(id, false, {});
  EXPECT_TRUE(deleted.ok()) << deleted.error().ToString();
  EXPECT_THAT(world.Rows(), IsEmpty());
}

}  // namespace
}  // namespace volumed
