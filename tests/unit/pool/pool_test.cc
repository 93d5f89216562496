#include "pool/pool.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pool/pool_directory.h"
#include "unit/pool/pool_fixture.h"

namespace volumed {
namespace {

class PoolTest : public ::testing::Test {
 protected:
  // What an Open() of a new agent answers, and what it leaves.
  Status OpenAnew(bool may_adopt = true, const std::string& path = kPoolPath) {
    agent_.reset();
    agent_ = std::make_unique<PoolAgent>(world_, std::vector{TestPool("fast", path)});
    return agent_->pool().Open(may_adopt, {});
  }
  std::string Marker() const { return world_.kernel.Find(kPoolPath + "/pool.volumed").content; }
  std::optional<PoolRecord> Recorded() const {
    const std::optional<Record> row = world_.store.Find(kPoolRecordKind, "fast");
    if (!row) return std::nullopt;
    return Must(DecodePoolRecord(*row));
  }
  void ExpectNotOpen(const Status& status, Code code, const std::string& words) const {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), code) << status.error().ToString();
    EXPECT_FALSE(status.error().maybe_applied()) << status.error().ToString();
    EXPECT_NE(status.error().message().find(words), std::string::npos) << status.error().ToString();
    const Status state = agent_->pool().state();
    ASSERT_FALSE(state.ok());
    EXPECT_EQ(state.error(), status.error());
  }

  PoolWorld world_;
  std::unique_ptr<PoolAgent> agent_;
};

// Each call about its volumes was an internal error that spoke of rights.
TEST_F(PoolTest, APoolOnAReadOnlyFilesystemDidNotSayThatItIsReadOnly) {
  const std::string words = "the pool's filesystem is mounted read-only";
  world_.kernel.AddMount("ext4", "/dev/sdb", kPoolPath, {"ro"});
  ExpectNotOpen(OpenAnew(), Code::kFailedPrecondition, words);
  world_.kernel.UnmountBelow(kPoolPath);
  ASSERT_TRUE(OpenAnew().ok());
  ASSERT_TRUE(agent_->pool().state().ok());
}

TEST_F(PoolTest, AnEmptyDirectoryBecomesAPool) {
  world_.kernel.AddDirectory(kPoolPath + "/lost+found");
  agent_ = std::make_unique<PoolAgent>(world_);
  EXPECT_EQ(agent_->pool().state().error().code(), Code::kUnavailable);
  EXPECT_EQ(agent_->pool().tag(), "");
  const Status opened = agent_->pool().Open(true, {});
  ASSERT_TRUE(opened.ok()) << opened.error().ToString();
  EXPECT_TRUE(agent_->pool().state().ok());
  const std::optional<PoolRecord> record = Recorded();
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->path, kPoolPath);
  EXPECT_NE(record->root.inode, 0u);
  EXPECT_EQ(Marker(), PoolMarkerText(record->uuid));
  EXPECT_EQ(agent_->pool().tag(), PoolTag(record->uuid));
  EXPECT_EQ(world_.kernel.Find(kPoolPath + "/volumes").mode, 0700u);
}

TEST_F(PoolTest, TheNextAgentFindsTheSamePool) {
  ASSERT_TRUE(OpenAnew().ok());
  const std::string tag = agent_->pool().tag();
  ASSERT_TRUE(agent_->pool().Open(true, {}).ok());
  EXPECT_EQ(agent_->pool().tag(), tag);
  const uint64_t writes = world_.store.calls();
  ASSERT_TRUE(OpenAnew(/*may_adopt=*/false).ok());
  EXPECT_EQ(agent_->pool().tag(), tag);
  EXPECT_EQ(world_.store.calls(), writes);
}

TEST_F(PoolTest, AMarkerWithoutARecordIsAPoolThatIsTakenOver) {
  ASSERT_TRUE(OpenAnew().ok());
  const std::string tag = agent_->pool().tag();
  ASSERT_TRUE(world_.store.Remove(kPoolRecordKind, "fast", kPoolRecordDurability).ok());
  ASSERT_TRUE(OpenAnew(/*may_adopt=*/false).ok());
  EXPECT_EQ(agent_->pool().tag(), tag);
  EXPECT_TRUE(Recorded().has_value());
}

TEST_F(PoolTest, APathThatIsNotThereYetIsWaitedFor) {
  world_.kernel.Remove(kPoolPath);
  ExpectNotOpen(OpenAnew(), Code::kUnavailable, "nothing is there");
  world_.kernel.AddDirectory(kPoolPath);
  EXPECT_TRUE(agent_->pool().Open(true, {}).ok());
}

TEST_F(PoolTest, ADirectoryThatIsNotEmptyIsNoPoolAndStaysAsItIs) {
  world_.kernel.AddFile(kPoolPath + "/photos.tar", "x");
  const std::string before = world_.kernel.DumpTree(kPoolPath);
  ExpectNotOpen(OpenAnew(), Code::kFailedPrecondition, "photos.tar");
  EXPECT_EQ(world_.kernel.DumpTree(kPoolPath), before);
  EXPECT_FALSE(Recorded().has_value());
}

TEST_F(PoolTest, NothingIsAdoptedWhileRecordsAreInDoubt) {
  const std::string before = world_.kernel.DumpTree(kPoolPath);
  ExpectNotOpen(OpenAnew(/*may_adopt=*/false), Code::kFailedPrecondition, "records are in doubt");
  EXPECT_EQ(world_.kernel.DumpTree(kPoolPath), before);
}

TEST_F(PoolTest, AFileIsNoPool) {
  world_.kernel.Remove(kPoolPath);
  world_.kernel.AddFile(kPoolPath, "");
  ExpectNotOpen(OpenAnew(), Code::kUnavailable, "no directory is there");
}

TEST_F(PoolTest, APoolInMemoryIsRefused) {
  world_.kernel.AddMount("tmpfs", "tmpfs", kPoolPath);
  ExpectNotOpen(OpenAnew(), Code::kFailedPrecondition, "memory");
  EXPECT_EQ(Marker(), "");
}

// Another directory is at the path then, and it is empty.
TEST_F(PoolTest, ThePlaceOfAnUnmountedDiskIsNoPool) {
  world_.kernel.AddMount("ext4", "/dev/sdb", kPoolPath);
  ASSERT_TRUE(OpenAnew().ok());
  agent_.reset();
  world_.kernel.UnmountBelow(kPoolPath);
  const std::string before = world_.kernel.DumpTree(kPoolPath);
  ExpectNotOpen(OpenAnew(), Code::kUnavailable, "is its disk mounted?");
  EXPECT_EQ(world_.kernel.DumpTree(kPoolPath), before);
}

TEST_F(PoolTest, APoolThatLostItsMarkerIsNotMadeAnew) {
  ASSERT_TRUE(OpenAnew().ok());
  agent_.reset();
  world_.kernel.Remove(kPoolPath + "/pool.volumed");
  ExpectNotOpen(OpenAnew(), Code::kUnavailable, "its marker is missing");
  EXPECT_EQ(Marker(), "");
}

TEST_F(PoolTest, TheMarkerOfAnotherPoolIsSeen) {
  ASSERT_TRUE(OpenAnew().ok());
  agent_.reset();
  world_.kernel.AddFile(kPoolPath + "/pool.volumed", PoolMarkerText("another"));
  ExpectNotOpen(OpenAnew(), Code::kUnavailable, "another pool");
  // The lock of that one was not taken.
  PoolAgent other(world_, {TestPool("other")});
  EXPECT_TRUE(other.pool().Open(true, {}).ok());
}

TEST_F(PoolTest, ADamagedMarkerStaysAsItIs) {
  ASSERT_TRUE(OpenAnew().ok());
  agent_.reset();
  world_.kernel.AddFile(kPoolPath + "/pool.volumed", "");
  ExpectNotOpen(OpenAnew(), Code::kDataLoss, "damaged");
  EXPECT_EQ(Marker(), "");
}

TEST_F(PoolTest, APoolWhoseRowCannotBeReadIsNotLookedFor) {
  ASSERT_TRUE(OpenAnew().ok());
  agent_.reset();
  world_.store.Corrupt(kPoolRecordKind, "fast", "the checksum is wrong");
  const uint64_t calls = world_.kernel.call_count();
  ExpectNotOpen(OpenAnew(), Code::kFailedPrecondition, "the checksum is wrong");
  EXPECT_EQ(world_.kernel.call_count(), calls);
}

TEST_F(PoolTest, OneAgentHasThePool) {
  ASSERT_TRUE(OpenAnew().ok());
  PoolSettings settings = TestPool();
  settings.holder = "the agent of node n2, with pid 1";
  PoolAgent second(world_, {settings});
  const Status refused = second.pool().Open(true, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kUnavailable);
  EXPECT_NE(refused.error().message().find("the agent of node n1, with pid 4711"),
            std::string::npos)
      << refused.error().ToString();
  EXPECT_FALSE(second.pool().state().ok());
  // However it ends, its lock goes with it.
  agent_.reset();
  EXPECT_TRUE(second.pool().Open(true, {}).ok());
}

TEST_F(PoolTest, TheLinkOfAnAdministratorIsFollowedOnce) {
  world_.kernel.AddSymlink("/pools/fast", kPoolPath);
  world_.kernel.AddDirectory("/srv/elsewhere");
  ASSERT_TRUE(OpenAnew(true, "/pools/fast").ok());
  EXPECT_EQ(agent_->pool().path(), "/pools/fast");
  ASSERT_TRUE(Recorded().has_value());
  EXPECT_EQ(Recorded()->path, kPoolPath);
  world_.kernel.Remove("/pools/fast");
  world_.kernel.AddSymlink("/pools/fast", "/srv/elsewhere");
  ExpectNotOpen(agent_->pool().Open(true, {}), Code::kUnavailable, "start the agent again");
  EXPECT_FALSE(world_.kernel.Exists("/srv/elsewhere/pool.volumed"));
}

// The directory may be renamed while no agent runs: it is the same one.
TEST_F(PoolTest, APoolThatWasMovedIsTheSamePool) {
  ASSERT_TRUE(OpenAnew().ok());
  const std::string tag = agent_->pool().tag();
  agent_.reset();
  world_.kernel.Rename(kPoolPath, "moved");
  const Status opened = OpenAnew(true, "/srv/moved");
  ASSERT_TRUE(opened.ok()) << opened.error().ToString();
  EXPECT_EQ(agent_->pool().tag(), tag);
  EXPECT_EQ(Recorded()->path, "/srv/moved");
}

// The agent was started before its disk was mounted, and the name was of no use from then on.
TEST_F(PoolTest, AnEmptyPoolBelowAnUnmountedDiskKeptItsNameFromTheDiskForEver) {
  ASSERT_TRUE(OpenAnew().ok());
  const std::string tag = agent_->pool().tag();
  world_.kernel.AddMount("ext4", "/dev/sdb", kPoolPath);
  ExpectNotOpen(agent_->pool().Open(true, {}), Code::kUnavailable, "another directory is there");
  ExpectNotOpen(OpenAnew(/*may_adopt=*/false), Code::kUnavailable, "another directory is there");
  const Status opened = OpenAnew();
  ASSERT_TRUE(opened.ok()) << opened.error().ToString();
  EXPECT_NE(agent_->pool().tag(), tag);
  const std::optional<PoolRecord> on_disk = Recorded();
  ASSERT_TRUE(OpenAnew().ok());
  EXPECT_EQ(Recorded(), on_disk);
  // The way back is none: what was under the mount is not where the volumes are to be.
  agent_.reset();
  world_.kernel.UnmountBelow(kPoolPath);
  ExpectNotOpen(OpenAnew(), Code::kUnavailable, "another directory is there");
}

TEST_F(PoolTest, APoolThatHasAVolumeOrACutOnRecordStaysWhereItIs) {
  agent_ = std::make_unique<PoolAgent>(world_);
  ASSERT_TRUE(agent_->Recover().ok());
  ASSERT_TRUE(agent_->volumes->Create(Wish("a"), {}).ok());
  agent_.reset();
  world_.kernel.AddMount("ext4", "/dev/sdb", kPoolPath);
  ExpectNotOpen(OpenAnew(), Code::kUnavailable, "another directory is there");
  const PoolVolumeRecord volume = world_.Rows().front();
  ASSERT_TRUE(world_.store.Remove(kPoolVolumeRecordKind, volume.id, kPoolRecordDurability).ok());
  PoolCutRecord cut;
  cut.id = NewPoolId(PoolObject::kCut, agent_->pool().tag()).ToString();
  cut.pool = volume.pool;
  cut.volume = volume.id;
  cut.state = PoolCutState::kCut;
  cut.backend = PoolBackendKind::kImage;
  ASSERT_TRUE(world_.store.Put(EncodeRecord(cut), kPoolRecordDurability).ok());
  ExpectNotOpen(OpenAnew(), Code::kUnavailable, "another directory is there");
}

// It had nothing on record, and volumes with files.
TEST_F(PoolTest, APoolWithVolumesWithoutARecordWentToTheNextDiskAtItsPath) {
  agent_ = std::make_unique<PoolAgent>(world_);
  ASSERT_TRUE(agent_->Recover().ok());
  const std::string id = Must(agent_->volumes->Create(Wish("a"), {})).id;
  ASSERT_TRUE(world_.store.Remove(kPoolVolumeRecordKind, id, kPoolRecordDurability).ok());
  agent_ = std::make_unique<PoolAgent>(world_);
  ASSERT_TRUE(agent_->Recover().ok());
  world_.kernel.AddMount("ext4", "/dev/sdb", kPoolPath);
  ExpectNotOpen(OpenAnew(), Code::kUnavailable, "another directory is there");
}

// The uuid of a filesystem is not to be had at each moment: the next unmounted disk would not be
// told from it.
TEST_F(PoolTest, WhatIsOnRecordOfTheDirectoryIsNotForgotten) {
  world_.kernel.AddMount("ext4", "/dev/sdb", kPoolPath);
  ASSERT_TRUE(OpenAnew().ok());
  std::optional<PoolRecord> record = Recorded();
  ASSERT_TRUE(record.has_value());
  ASSERT_EQ(record->root.fs_uuid, "");
  record->root.fs_uuid = "was-known-once";
  ASSERT_TRUE(world_.store.Put(EncodeRecord(*record), kPoolRecordDurability).ok());
  ASSERT_TRUE(OpenAnew().ok());
  EXPECT_EQ(Recorded(), record);
}

TEST_F(PoolTest, WhatFailsIsTriedAgain) {
  world_.store.FailNext(Error::NotApplied(Code::kResourceExhausted, "the disk is full"));
  ExpectNotOpen(OpenAnew(), Code::kResourceExhausted, "the disk is full");
  const std::string marker = Marker();
  ASSERT_TRUE(agent_->pool().Open(true, {}).ok());
  EXPECT_EQ(Marker(), marker);
  agent_.reset();
  world_.kernel.FailNext("IdentifyStorage", EIO, Outcome::kNotApplied);
  EXPECT_FALSE(OpenAnew().ok());
  EXPECT_TRUE(agent_->pool().Open(true, {}).ok());
}

// ---- two pools of one uuid ----------------------------------------------------------------------

constexpr char kCopyPath[] = "/srv/copy";

// Each had the other's volumes for its own, and neither said so.
TEST_F(PoolTest, ACopyOfAPoolsDirectoryBecameASecondPoolOfItsUuid) {
  world_.kernel.AddMount("ext4", "/dev/sdb", kPoolPath);
  ASSERT_TRUE(OpenAnew().ok());
  agent_.reset();
  world_.kernel.AddMount("ext4", "/dev/sdc", kCopyPath);
  world_.kernel.AddFile(std::string(kCopyPath) + "/pool.volumed", Marker());
  const std::string before = world_.kernel.DumpTree(kCopyPath);
  const std::vector<PoolSettings> both = {TestPool(), TestPool("copy", kCopyPath)};
  const auto refused = [&](Pool& copy) {
    const Status opened = copy.Open(true, {});
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code(), Code::kFailedPrecondition) << opened.error().ToString();
    EXPECT_NE(
        opened.error().message().find("the uuid of pool fast, whose directory is " + kPoolPath),
        std::string::npos)
        << opened.error().ToString();
    EXPECT_FALSE(copy.state().ok());
    EXPECT_EQ(copy.tag(), "");
  };
  // In whichever order they are opened, and whether the first one is there or not.
  agent_ = std::make_unique<PoolAgent>(world_, both);
  refused(*agent_->volumes->pools()[1]);
  EXPECT_TRUE(agent_->pool().Open(true, {}).ok());
  refused(*agent_->volumes->pools()[1]);
  // Nor without the first one: its records are of another directory.
  agent_ = std::make_unique<PoolAgent>(world_, std::vector{both[1]});
  refused(agent_->pool());
  EXPECT_EQ(world_.kernel.DumpTree(kCopyPath), before);
  EXPECT_FALSE(world_.store.Find(kPoolRecordKind, "copy").has_value());
}

TEST_F(PoolTest, OfTwoCopiesWithoutARecordOneIsAPool) {
  ASSERT_TRUE(OpenAnew().ok());
  agent_.reset();
  world_.kernel.AddFile(std::string(kCopyPath) + "/pool.volumed", Marker());
  ASSERT_TRUE(world_.store.Remove(kPoolRecordKind, "fast", kPoolRecordDurability).ok());
  agent_ =
      std::make_unique<PoolAgent>(world_, std::vector{TestPool(), TestPool("copy", kCopyPath)});
  EXPECT_TRUE(agent_->pool().Open(true, {}).ok());
  const Status second = agent_->volumes->pools()[1]->Open(true, {});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::kFailedPrecondition) << second.error().ToString();
}

TEST_F(PoolTest, APoolThatGetsAnotherNameInTheConfigurationIsTheSameDirectory) {
  ASSERT_TRUE(OpenAnew().ok());
  const std::string tag = agent_->pool().tag();
  agent_ = std::make_unique<PoolAgent>(world_, std::vector{TestPool("quick")});
  const Status renamed = agent_->pool().Open(true, {});
  ASSERT_TRUE(renamed.ok()) << renamed.error().ToString();
  EXPECT_EQ(agent_->pool().tag(), tag);
  ASSERT_TRUE(OpenAnew().ok());
  // But it is not both at once.
  ASSERT_TRUE(world_.store.Remove(kPoolRecordKind, "quick", kPoolRecordDurability).ok());
  agent_ = std::make_unique<PoolAgent>(world_, std::vector{TestPool("quick"), TestPool()});
  EXPECT_FALSE(agent_->pool().Open(true, {}).ok());
  EXPECT_TRUE(agent_->volumes->pools()[1]->Open(true, {}).ok());
}

// What it had promised to them was promised again.
TEST_F(PoolTest, APoolWithVolumesGotAnotherNameAndForgotWhatItHadPromised) {
  agent_ = std::make_unique<PoolAgent>(world_);
  ASSERT_TRUE(agent_->Recover().ok());
  const std::string id = Must(agent_->volumes->Create(Wish("a"), {})).id;
  agent_ = std::make_unique<PoolAgent>(world_, std::vector{TestPool("quick")});
  ExpectNotOpen(agent_->pool().Open(true, {}), Code::kFailedPrecondition,
                "it is the directory of pool fast, of which volumes or snapshots are on record: "
                "give it that name back");
  agent_ = std::make_unique<PoolAgent>(world_);
  ASSERT_TRUE(agent_->Recover().ok());
  ASSERT_TRUE(agent_->volumes->Delete(id, /*only_unused=*/false, {}).ok());
  agent_ = std::make_unique<PoolAgent>(world_, std::vector{TestPool("quick")});
  ASSERT_TRUE(agent_->Recover().ok());
  // Nor does it get the first name back, which is on record, too.
  ASSERT_TRUE(agent_->volumes->Create(Wish("b"), {}).ok());
  ExpectNotOpen(OpenAnew(), Code::kFailedPrecondition, "it is the directory of pool quick");
}

}  // namespace
}  // namespace volumed
