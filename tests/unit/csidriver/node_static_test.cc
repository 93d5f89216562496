// Devices that an administrator has listed as volumes: taken, staged and published, and never
// formatted, deleted or taken for another device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "csidriver/volume_health.h"
#include "unit/csidriver/node_fixture.h"

namespace volumed {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string kDisk = "/dev/sdx";
const std::string kOtherDisk = "/dev/sdy";

class NodeStaticTest : public NodeFixture {
 protected:
  NodeStaticTest() {
    node_.AddDevice(kDisk, DiskOf("wwid:naa.1", "ext4"));
    node_.AddDevice(kOtherDisk, DiskOf("wwid:naa.2", "xfs"));
    volumes_->ListStatic({"db"});
  }
  static FakeDevice DiskOf(const std::string& identity, const std::string& fs_type = "") {
    FakeDevice disk;
    disk.identity.stable_id = identity;
    disk.identity.size_bytes = 512 * kMiB;
    if (fs_type.empty()) return disk;
    disk.fs_type = fs_type;
    disk.usage = "filesystem";
    disk.identity.uuid = "uuid-of-" + identity;
    disk.was_mounted = true;
    return disk;
  }
  // The disk at the path becomes this one, with the same numbers.
  void Become(const std::string& path, FakeDevice disk) {
    node_.ChangeDevice(path, [&disk](FakeDevice& there) {
      disk.identity.device_major = there.identity.device_major;
      disk.identity.device_minor = there.identity.device_minor;
      disk.identity.disk_sequence = there.identity.disk_sequence + 1;
      disk.inode = there.inode;
      there = disk;
    });
  }
  static StaticVolume Listed(bool is_block = false, const std::string& device = kDisk) {
    return {"db", "fast", device, is_block};
  }
  // The id of the volume.
  std::string Take(const StaticVolume& volume) { return Must(volumes_->TakeStatic(volume, {})).id; }
  // The error's text; "" if it was taken.
  std::string WhyNot(const StaticVolume& volume) {
    const Result<PoolVolumeRecord> taken = volumes_->TakeStatic(volume, {});
    return taken.ok() ? "" : taken.error().message();
  }
  template <typename Request, typename Response>
  StatusCode GrowBy(Request request, Response response, const std::string& id, int64_t bytes) {
    request.set_volume_id(id);
    request.mutable_capacity_range()->set_required_bytes(bytes);
    return CodeOf(request, &response);
  }
  StatusCode Grow(const std::string& id, int64_t bytes) {
    return GrowBy(::csi::v1::ControllerExpandVolumeRequest(),
                  ::csi::v1::ControllerExpandVolumeResponse(), id, bytes);
  }
  StatusCode NodeGrow(const std::string& id, int64_t bytes) {
    ::csi::v1::NodeExpandVolumeRequest request;
    request.set_volume_path(kTarget);
    return GrowBy(request, ::csi::v1::NodeExpandVolumeResponse(), id, bytes);
  }
  // The filesystem, not the mount alone.
  bool TakesNoWritesAt(const std::string& place) {
    for (const MountEntry& mount : node_.Mounts()) {
      if (mount.mount_point != place) continue;
      const auto& options = mount.super_options;
      return std::find(options.begin(), options.end(), "ro") != options.end();
    }
    ADD_FAILURE() << "nothing is mounted at " << place;
    return false;
  }
  void RestartWithList() {
    RestartNode();
    volumes_->ListStatic({"db"});
  }
};

TEST_F(NodeStaticTest, AListedDeviceIsStagedAndPublishedWithWhatIsOnIt) {
  const std::string id = Take(Listed());
  const FakeDevice before = node_.Device(kDisk);
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(ThereIs(kTarget), "files");
  RestartWithList();
  EXPECT_EQ(Take(Listed()), id);
  EXPECT_EQ(StageIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(PublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(ThereIs(kStaging), "");
  EXPECT_EQ(node_.Device(kDisk).identity.uuid, before.identity.uuid);
  EXPECT_EQ(node_.Device(kDisk).fs_type, "ext4");
}

// Both were staged: one filesystem, mounted twice from one device.
TEST_F(NodeStaticTest, TheLoopDeviceOfAPoolsVolumeWasListedAsAnother) {
  const std::string id = CreateNamed("files");
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  ASSERT_THAT(Loops(), SizeIs(1));
  for (const bool is_block : {false, true}) {
    const std::string why = WhyNot(Listed(is_block, Loops().front().path));
    EXPECT_THAT(why, HasSubstr("which is volume " + id + " of a pool of this node"));
  }
  EXPECT_THAT(volumes_->All(), SizeIs(1));
}

TEST_F(NodeStaticTest, AListedDeviceIsHadRaw) {
  const std::string id = Take(Listed(/*is_block=*/true));
  ASSERT_EQ(StageIt(id, Block()), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(id, Block()), StatusCode::OK) << message_;
  EXPECT_EQ(ThereIs(kTarget), "device");
  EXPECT_EQ(PublishIt(id, Block()), StatusCode::OK) << message_;
  EXPECT_THAT(Loops(), IsEmpty());
  EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(StageIt(id, In(Modes::SINGLE_NODE_READER_ONLY, Block())),
            StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("takes writes"));
}

// ---- which device it is -------------------------------------------------------------------------

// The letters of disks change from boot to boot.
TEST_F(NodeStaticTest, AnotherDiskAtThePathIsNeverTakenForTheVolume) {
  const std::string id = Take(Listed());
  Become(kDisk, DiskOf("wwid:naa.3", "ext4"));
  EXPECT_EQ(StageIt(id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("another device"));
  EXPECT_EQ(ThereIs(kStaging), "");
  EXPECT_THAT(WhyNot(Listed()), HasSubstr("naa.3"));
}

TEST_F(NodeStaticTest, TheSameDiskByAnotherPathIsTheSameVolume) {
  const std::string id = Take(Listed());
  node_.AddDevice("/dev/sdz", DiskOf("wwid:naa.1", "ext4"));
  EXPECT_EQ(Take(Listed(false, "/dev/sdz")), id);
  EXPECT_EQ(Must(volumes_->Find(id)).source, "/dev/sdz");
}

TEST_F(NodeStaticTest, ADeviceThatCannotBeKnownAgainIsRefused) {
  node_.AddDevice("/dev/vda", DiskOf("", "ext4"));
  EXPECT_THAT(WhyNot(Listed(false, "/dev/vda")), HasSubstr("known again"));
}

TEST_F(NodeStaticTest, OneDeviceIsNotTwoVolumes) {
  Take(Listed());
  StaticVolume second = Listed();
  second.name = "other";
  EXPECT_THAT(WhyNot(second), HasSubstr("already"));
}

// The one was published raw while the other was copied, also if it was not listed any more.
TEST_F(NodeStaticTest, ADiskAndItsPartitionWereTwoVolumes) {
  volumes_->ListStatic({"db", "part"});
  node_.AddDevice("/dev/sdx2", DiskOf("wwid:naa.1-part2", "ext4"));
  node_.AddDevice("/dev/sdx10", DiskOf("wwid:naa.10", "ext4"));
  const std::string id = Take(Listed(/*is_block=*/true));
  StaticVolume part = Listed(/*is_block=*/false, "/dev/sdx2");
  part.name = "part";
  const std::string why = "is a part of /dev/sdx, which is static:db";
  EXPECT_THAT(WhyNot(part), HasSubstr(why));
  volumes_->ListStatic({"part"});
  EXPECT_THAT(WhyNot(part), HasSubstr(why));
  ASSERT_EQ(Delete(id), StatusCode::OK) << message_;
  Take(part);
  volumes_->ListStatic({"db", "part"});
  EXPECT_THAT(WhyNot(Listed(/*is_block=*/true)), HasSubstr("has a part, /dev/sdx2"));
  StaticVolume other = Listed(false, "/dev/sdx10");
  other.name = "other";
  EXPECT_EQ(WhyNot(other), "");
}

// Each looked for the other before either was on record.
TEST_F(NodeStaticTest, ADiskAndItsPartitionThatWereListedAtOnceWereBothTaken) {
  volumes_->ListStatic({"db", "part"});
  node_.AddDevice("/dev/sdx2", DiskOf("wwid:naa.1-part2", "ext4"));
  StaticVolume part = Listed(/*is_block=*/false, "/dev/sdx2");
  part.name = "part";
  std::string why;
  bool asked = false;
  node_.SetCallHook([&](const AnyRequest& request) {
    if (!std::holds_alternative<ProbeDevice>(request) || std::exchange(asked, true)) return;
    why = WhyNot(part);
  });
  Take(Listed(/*is_block=*/true));
  node_.SetCallHook({});
  EXPECT_TRUE(asked);
  EXPECT_THAT(why, HasSubstr("just being listed"));
  EXPECT_THAT(volumes_->All(), SizeIs(1));
}

TEST_F(NodeStaticTest, ADeviceHasAllOfItsBytes) {
  node_.ChangeDevice(kDisk, [](FakeDevice& d) { d.identity.size_bytes = 512 * kMiB + 1536; });
  const std::string id = Take(Listed());
  EXPECT_EQ(Must(volumes_->Find(id)).capacity_bytes, 512 * kMiB + 1536);
}

// "Stage it for readers" led to a filesystem that took writes, of which no snapshot was made.
TEST_F(NodeStaticTest, ADeviceThatWasStagedForReadersWasMountedForWriting) {
  const std::string id = Take(Listed());
  const auto for_readers = In(Modes::SINGLE_NODE_READER_ONLY);
  ASSERT_EQ(StageIt(id, for_readers), StatusCode::OK) << message_;
  EXPECT_TRUE(TakesNoWritesAt(kStaging));
  ASSERT_EQ(StageIt(id, for_readers), StatusCode::OK) << message_;
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  EXPECT_FALSE(TakesNoWritesAt(kStaging));
}

TEST_F(NodeStaticTest, ADeviceOfWhichNothingCanBeMountedIsRefusedUnlessItIsRaw) {
  FakeDevice parted = DiskOf("wwid:naa.1");
  parted.partition_table = "gpt";
  Become(kDisk, parted);
  EXPECT_THAT(WhyNot(Listed()), HasSubstr("partition table"));
  Become(kDisk, DiskOf("wwid:naa.1", "LVM2_member"));
  EXPECT_THAT(WhyNot(Listed()), HasSubstr("LVM2_member"));
  EXPECT_THAT(volumes_->List("", 10).volumes, IsEmpty());
  EXPECT_EQ(WhyNot(Listed(/*is_block=*/true)), "");
  EXPECT_NE(WhyNot(Listed()), "") << "it is a block volume by now";
}

// A restore of its snapshot wrote to the other device, which nobody had named.
TEST_F(NodeStaticTest, AFilesystemWithAPartOnAnotherDeviceWasListed) {
  FakeDevice one_of_two = DiskOf("wwid:naa.1", "btrfs");
  one_of_two.spans_devices = true;
  Become(kDisk, one_of_two);
  EXPECT_THAT(WhyNot(Listed()), HasSubstr("a part is on another device"));
}

// ---- what is never done -------------------------------------------------------------------------

TEST_F(NodeStaticTest, WhatHasDataAndNoFilesystemIsNotFormatted) {
  FakeDevice raw = DiskOf("wwid:naa.1");
  raw.data = "byte 0x53 at offset 1080";
  Become(kDisk, raw);
  const std::string id = Take(Listed());
  EXPECT_NE(StageIt(id), StatusCode::OK);
  EXPECT_EQ(node_.Device(kDisk).fs_type, "");
  EXPECT_EQ(node_.Device(kDisk).data, "byte 0x53 at offset 1080");
}

TEST_F(NodeStaticTest, AFilesystemThatWasThereIsNotMadeAgainWhenItIsGone) {
  const std::string id = Take(Listed());
  Become(kDisk, DiskOf("wwid:naa.1"));
  EXPECT_NE(StageIt(id), StatusCode::OK) << "the disk reads as blank, and has somebody's data";
  EXPECT_EQ(node_.Device(kDisk).fs_type, "");
}

TEST_F(NodeStaticTest, AListedVolumeIsNotDeletedAndOneThatIsNotLosesItsIdAlone) {
  const std::string id = Take(Listed());
  EXPECT_EQ(Delete(id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("listed in the configuration"));
  volumes_->ListStatic({});
  EXPECT_EQ(StageIt(id), StatusCode::FAILED_PRECONDITION) << "nobody lists it";
  EXPECT_EQ(Delete(id), StatusCode::OK) << message_;
  EXPECT_EQ(node_.Device(kDisk).fs_type, "ext4");
  EXPECT_THAT(volumes_->List("", 10).volumes, IsEmpty());
}

TEST_F(NodeStaticTest, NothingIsPromisedForAListedDeviceAndItIsListedAsAVolume) {
  const int64_t before = Must(volumes_->Capacity({}, {})).free_bytes;
  const std::string id = Take(Listed());
  EXPECT_EQ(Must(volumes_->Capacity({}, {})).free_bytes, before);
  ASSERT_THAT(volumes_->List("", 10).volumes, SizeIs(1));
  EXPECT_EQ(volumes_->List("", 10).volumes.front().capacity_bytes, 512 * kMiB);
  EXPECT_FALSE(volumes_->Expand(id, 1024 * kMiB, {}).ok());
  EXPECT_FALSE(volumes_->Modify(id, {{"directIO", "true"}}, {}).ok());
}

TEST_F(NodeStaticTest, TheHealthOfADeviceThatIsAwayIsTold) {
  const std::string id = Take(Listed());
  EXPECT_THAT(volumes_->Look("fast", {}).lost, IsEmpty());
  node_.ChangeDevice(kDisk, [](FakeDevice& disk) { disk.offline = true; });
  EXPECT_TRUE(volumes_->Look("fast", {}).lost.contains(id));
}

// It was told as DATA_LOSS: whoever believes that takes up a backup, and the disk was unplugged.
TEST_F(NodeStaticTest, ADeviceThatIsAwayIsInaccessibleAndItsDataIsNotLost) {
  const std::string id = Take(Listed());
  node_.ChangeDevice(kDisk, [](FakeDevice& disk) { disk.offline = true; });
  ::csi::v1::VolumeHealth health;
  TellVolumeHealth(Must(volumes_->Find(id)), volumes_->Look("fast", {}), health);
  ASSERT_EQ(health.health_statuses_size(), 1);
  EXPECT_EQ(health.health_statuses(0).status(), ::csi::v1::INACCESSIBLE);
  EXPECT_EQ(health.health_statuses(0).reason(), "DeviceAway");
}

// ---- what is asked of it, and only what is made here has ----------------------------------------

// FAILED_PRECONDITION says that it would do once nobody has the volume, and the node said that the
// controller had to make it larger.
TEST_F(NodeStaticTest, ASizeThatItsDeviceHasNotIsOutOfRangeWhoeverIsAsked) {
  const std::string id = Take(Listed());
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(id), StatusCode::OK) << message_;
  for (const int64_t fits : {1 * kMiB, 512 * kMiB}) {
    EXPECT_EQ(Grow(id, fits), StatusCode::OK) << message_;
    EXPECT_EQ(NodeGrow(id, fits), StatusCode::OK) << message_;
  }
  const std::string why =
      "is the device /dev/sdx, which has 512Mi (536870912 bytes): make that larger";
  EXPECT_EQ(Grow(id, 513 * kMiB), StatusCode::OUT_OF_RANGE);
  EXPECT_THAT(message_, HasSubstr(why));
  EXPECT_EQ(NodeGrow(id, 513 * kMiB), StatusCode::OUT_OF_RANGE);
  EXPECT_THAT(message_, HasSubstr(why));
}

// It was told that nobody had said which pod has the volume, as if it could have one then.
TEST_F(NodeStaticTest, AThrottleOfADeviceInUseIsRefusedAsItHasNone) {
  const std::string id = Take(Listed());
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(Modify(id, {{"readIOPS", "100"}}), StatusCode::INVALID_ARGUMENT) << message_;
  EXPECT_THAT(message_, HasSubstr("backend static"));
  EXPECT_EQ(RecordedOf(id), StringMap());
}

TEST_F(NodeStaticTest, TheReadAheadOfADeviceIsSetAndSetAgainWhereverItIsHad) {
  const std::string id = Take(Listed());
  EXPECT_EQ(Modify(id, {{"readAheadKiB", "512"}}), StatusCode::OK) << message_;
  EXPECT_EQ(node_.Device(kDisk).read_ahead_kib, 512);
  node_.ChangeDevice(kDisk, [](FakeDevice& disk) { disk.read_ahead_kib = 128; });
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(node_.Device(kDisk).read_ahead_kib, 512);
  EXPECT_EQ(Modify(id, {{"directIO", "true"}}), StatusCode::INVALID_ARGUMENT) << message_;
  EXPECT_EQ(RecordedOf(id), (StringMap{{"readAheadKiB", "512"}}));
}

TEST_F(NodeStaticTest, ADeviceThatHasGrownIsALargerVolume) {
  const std::string id = Take(Listed());
  node_.ChangeDevice(kDisk, [](FakeDevice& d) { d.identity.size_bytes = 1024 * kMiB; });
  EXPECT_EQ(Take(Listed()), id);
  EXPECT_EQ(Must(volumes_->Find(id)).capacity_bytes, 1024 * kMiB);
  node_.ChangeDevice(kDisk, [](FakeDevice& d) { d.identity.size_bytes = 256 * kMiB; });
  EXPECT_THAT(WhyNot(Listed()), HasSubstr("smaller"));
}

}  // namespace
}  // namespace volumed
