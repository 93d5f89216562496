// Snapshots and clones of devices that an administrator has listed: copies, which are images of the
// pool from then on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "unit/csidriver/snapshot_fixture.h"

namespace volumed {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kListedDisk = "/dev/sdx";

class StaticSnapshotsTest : public SnapshotFixture {
 protected:
  static constexpr int64_t kDiskBytes = 64 * kMiB;

  // On a pool that shares blocks, so that what is copied is copied for its source.
  StaticSnapshotsTest() {
    FakeDevice disk;
    disk.identity.stable_id = "wwid:naa.1";
    disk.identity.size_bytes = kDiskBytes;
    disk.fs_type = "ext4";
    disk.usage = "filesystem";
    disk.identity.uuid = "uuid-of-the-disk";
    node_.AddDevice(kListedDisk, disk);
    volumes_->ListStatic({"db"});
  }
  std::string Take(bool is_block = false) {
    return Must(volumes_->TakeStatic({"db", "fast", kListedDisk, is_block}, {})).id;
  }
  // Of the copy itself: the look before it is about no file of the pool.
  void LoseNextCopy() {
    node_.FailNextBelow("CopyDevice", kPoolPath,
                        Error::MaybeApplied(Code::kUnavailable, "the worker died"));
  }
  void RunLong() { scheduler_.RunFor(std::chrono::minutes(2)); }
};

TEST_F(StaticSnapshotsTest, TheCutOfADeviceIsOneOfAnImage) {
  const std::string id = Take();
  const int64_t before = Must(volumes_->Capacity({}, {})).free_bytes;
  const ::csi::v1::Snapshot made = Cut("one", id);
  EXPECT_EQ(made.source_volume_id(), id);
  EXPECT_EQ(made.size_bytes(), kDiskBytes);
  RunLong();
  const PoolCutRecord cut = Must(volumes_->FindCut(made.snapshot_id()));
  EXPECT_EQ(cut.backend, PoolBackendKind::kImage);
  EXPECT_TRUE(cut.is_copy);
  EXPECT_TRUE(IsWhole(cut));
  EXPECT_EQ(cut.block_bytes, 512) << "the sectors of the device";
  EXPECT_TRUE(Cut("one", id).ready_to_use());

  ASSERT_EQ(CreateCode(RestoreRequest("restored", made.snapshot_id(), kDiskBytes)), StatusCode::OK)
      << message_;
  const PoolVolumeRecord restored = *volumes_->FindByName("csi:restored");
  EXPECT_EQ(restored.backend, PoolBackendKind::kImage);
  EXPECT_EQ(restored.block_bytes, 512);
  ASSERT_EQ(StageIt(restored.id), StatusCode::OK) << message_;
  EXPECT_NE(Must(volumes_->Find(restored.id)).filesystem.uuid, "uuid-of-the-disk");
  EXPECT_EQ(node_.Device(kListedDisk).identity.uuid, "uuid-of-the-disk");
  ASSERT_EQ(UnstageIt(restored.id), StatusCode::OK) << message_;
  EXPECT_EQ(Delete(restored.id), StatusCode::OK) << message_;
  EXPECT_EQ(DeleteCut(made.snapshot_id()), StatusCode::OK) << message_;
  RunLong();
  EXPECT_EQ(Must(volumes_->Capacity({}, {})).free_bytes, before);
}

TEST_F(StaticSnapshotsTest, ADeviceThatSomebodyCanWriteToIsNotCutAndHeIsNamed) {
  const std::string id = Take();
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(CutCode("one", id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("it is staged for writing at"));
  EXPECT_EQ(CreateCode(CloneRequest("clone", id, kDiskBytes)), StatusCode::FAILED_PRECONDITION);
  ASSERT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  node_.ChangeDevice(kListedDisk, [](FakeDevice& disk) { disk.claimed = true; });
  EXPECT_EQ(CutCode("one", id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("somebody has it for himself"));
  EXPECT_THAT(volumes_->Cuts(), IsEmpty());
}

TEST_F(StaticSnapshotsTest, ARawDeviceThatIsStagedForWritingIsNotCut) {
  const std::string id = Take(/*is_block=*/true);
  ASSERT_EQ(StageIt(id, Block()), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(id, Block()), StatusCode::OK) << message_;
  EXPECT_EQ(CutCode("one", id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("it is staged for writing at"));
  ASSERT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(CutCode("one", id), StatusCode::OK) << message_;
}

TEST_F(StaticSnapshotsTest, NobodyGetsTheDeviceForWritingUntilItIsCopied) {
  const std::string id = Take();
  LoseNextCopy();
  const ::csi::v1::Snapshot made = Cut("one", id);
  EXPECT_FALSE(made.ready_to_use());
  EXPECT_EQ(StageIt(id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("is being copied for snapshot " + made.snapshot_id()));
  RunLong();
  EXPECT_EQ(Cut("one", id).snapshot_id(), made.snapshot_id());
  EXPECT_TRUE(cut_.snapshot().ready_to_use());
  EXPECT_EQ(StageIt(id), StatusCode::OK) << message_;
}

// Readers made way for somebody who wrote, and were there again when the copy ended.
TEST_F(StaticSnapshotsTest, ACopyThatSomebodyWroteIntoWasToldAsReady) {
  const std::string id = Take();
  LoseNextCopy();
  ASSERT_FALSE(Cut("one", id).ready_to_use());
  node_.ChangeDevice(kListedDisk, [](FakeDevice& disk) { ++disk.writes; });
  RunLong();
  EXPECT_EQ(CutCode("one", id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("something was written to it"));
  RunLong();
  EXPECT_THAT(volumes_->Cuts(), IsEmpty());
  EXPECT_EQ(CutCode("two", id), StatusCode::OK) << message_;
}

TEST_F(StaticSnapshotsTest, BesideReadersIsCopiedOnlyWhatIsCounted) {
  const std::string id = Take();
  ASSERT_EQ(StageIt(id, In(Modes::SINGLE_NODE_READER_ONLY)), StatusCode::OK) << message_;
  node_.ChangeDevice(kListedDisk, [](FakeDevice& disk) { disk.does_not_count = true; });
  EXPECT_EQ(CutCode("one", id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("does not count"));
  node_.ChangeDevice(kListedDisk, [](FakeDevice& disk) { disk.does_not_count = false; });
  ASSERT_EQ(CutCode("one", id), StatusCode::OK) << message_;
  RunLong();
  EXPECT_TRUE(Cut("one", id).ready_to_use());
}

// The end of what was no whole block was not in its copy, and nobody was told.
TEST_F(StaticSnapshotsTest, TheLastSectorsOfADeviceWereNotInItsSnapshot) {
  node_.ChangeDevice(kListedDisk,
                     [](FakeDevice& disk) { disk.identity.size_bytes = kDiskBytes + 1536; });
  const std::string id = Take();
  EXPECT_EQ(Cut("one", id).size_bytes(), kDiskBytes + 4096);
  RunLong();
  EXPECT_TRUE(Cut("one", id).ready_to_use());
  ASSERT_EQ(CreateCode(RestoreRequest("restored", cut_.snapshot().snapshot_id(), kDiskBytes)),
            StatusCode::OK)
      << message_;
  EXPECT_EQ(volumes_->FindByName("csi:restored")->capacity_bytes, kDiskBytes + 4096);
}

// What its filesystem had got since was not in the copy, which was told as ready.
TEST_F(StaticSnapshotsTest, ADeviceThatHadGrownWasCutAtItsFormerSize) {
  const std::string id = Take();
  node_.ChangeDevice(kListedDisk, [](FakeDevice& d) { d.identity.size_bytes = 2 * kDiskBytes; });
  EXPECT_EQ(Cut("one", id).size_bytes(), 2 * kDiskBytes);
  RunLong();
  EXPECT_TRUE(Cut("one", id).ready_to_use());
}

// It was UNAVAILABLE for ever, with a promise that nobody could take back.
TEST_F(StaticSnapshotsTest, ACloneWhoseDeviceIsNotListedAnyMoreIsRefusedAndLeavesNothing) {
  const std::string id = Take();
  const int64_t before = Must(volumes_->Capacity({}, {})).free_bytes;
  LoseNextCopy();
  CreateCode(CloneRequest("clone", id, kDiskBytes));
  ASSERT_TRUE(volumes_->FindByName("csi:clone").has_value()) << "it is being made";
  RestartSnapshots();
  RunLong();
  EXPECT_EQ(CreateCode(CloneRequest("clone", id, kDiskBytes)), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("not listed in the configuration any more"));
  EXPECT_FALSE(volumes_->FindByName("csi:clone").has_value());
  RunLong();
  EXPECT_EQ(Must(volumes_->Capacity({}, {})).free_bytes, before);
}

TEST_F(StaticSnapshotsTest, ACloneOfADeviceIsAnImage) {
  const std::string id = Take();
  ASSERT_EQ(CreateCode(CloneRequest("clone", id, kDiskBytes)), StatusCode::OK) << message_;
  const PoolVolumeRecord clone = *volumes_->FindByName("csi:clone");
  EXPECT_EQ(clone.backend, PoolBackendKind::kImage);
  EXPECT_EQ(clone.from_volume, id);
  EXPECT_EQ(clone.block_bytes, 512);
  RunLong();
  EXPECT_THAT(volumes_->Cuts(), IsEmpty()) << "nobody needs it any more";
}

// It was ready, and nothing that was made of it was ever mounted.
TEST_F(StaticSnapshotsTest, ADeviceWhoseFilesystemIsAnotherByNowWasCut) {
  const std::string id = Take();
  node_.ChangeDevice(kListedDisk, [](FakeDevice& disk) { disk.identity.uuid = "another"; });
  EXPECT_EQ(CutCode("one", id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("is to have the ext4 with UUID uuid-of-the-disk"));
  node_.ChangeDevice(kListedDisk, [](FakeDevice& disk) {
    disk.identity.uuid.clear();
    disk.fs_type.clear();
    disk.usage.clear();
  });
  EXPECT_EQ(CutCode("one", id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("and has none"));
  EXPECT_THAT(volumes_->Cuts(), IsEmpty());
}

// What is made of what is blank is formatted when it is mounted first, and data is no blank.
TEST_F(StaticSnapshotsTest, ADeviceWithDataAndNoFilesystemIsNotCutAndABlankOneIs) {
  node_.ChangeDevice(kListedDisk, [](FakeDevice& disk) {
    disk.identity.uuid.clear();
    disk.fs_type.clear();
    disk.usage.clear();
    disk.data = "byte 0x53 at offset 1080";
  });
  const std::string id = Take();
  EXPECT_EQ(CutCode("one", id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("it can be cut once it was mounted"));
  node_.ChangeDevice(kListedDisk, [](FakeDevice& disk) { disk.data.clear(); });
  EXPECT_EQ(CutCode("one", id), StatusCode::OK) << message_;
}

TEST_F(StaticSnapshotsTest, OfAnotherBackendNothingIsMadeOfADevice) {
  const std::string id = Take();
  ::csi::v1::CreateVolumeRequest request = CloneRequest("clone", id, kDiskBytes);
  (*request.mutable_parameters())["backend"] = "lvm";
  EXPECT_EQ(CreateCode(request), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(message_, HasSubstr("gives volumes of backend image"));
}

TEST_F(StaticSnapshotsTest, ADeviceThatIsNotListedAnyMoreIsNotCutAndNotCopiedOn) {
  const std::string id = Take();
  LoseNextCopy();
  const std::string made = Cut("one", id).snapshot_id();
  RestartSnapshots();
  RunLong();
  EXPECT_EQ(CutCode("two", id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("not listed in the configuration any more"));
  EXPECT_EQ(CutCode("one", id), StatusCode::FAILED_PRECONDITION) << "told once";
}

TEST_F(StaticSnapshotsTest, ADeviceAndAnImageAreOneGroup) {
  const std::string id = Take();
  const std::string image = CreateNamed("image");
  const ::csi::v1::VolumeGroupSnapshot group = CutGroup("group", {id, image});
  EXPECT_EQ(group.snapshots_size(), 2);
}

}  // namespace
}  // namespace volumed
