// Snapshots and clones of devices that an administrator has listed: copies, which are images of the
// pool from then on, while the daemon is killed, somebody wants to write, and the device goes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "integration/csi/own_static_fixture.h"

namespace volumed::own_static_snapshots_test {
namespace {

using ::csi::v1::Controller;
using ::csi::v1::GroupController;
using ::csi::v1::VolumeContentSource;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kPrecondition[] = "9: ";
constexpr char kInvalid[] = "3: ";
constexpr char kExhausted[] = "8: ";

class OwnStaticSnapshotsTest : public OwnStaticFixture {
 protected:
  OwnStaticSnapshotsTest() : OwnStaticFixture(1024 * kMiB) {}

  // So much each second: a copy is under way as long as a test needs it, or until the worker of a
  // killed agent has ended it.
  static constexpr int64_t kSlow = 1 * kMiB;
  static constexpr int64_t kSlowForAWhile = 8 * kMiB;

  struct Asked {
    std::string error;
    ::csi::v1::Snapshot snapshot;
  };
  Asked Ask(const std::string& name) const {
    ::csi::v1::CreateSnapshotRequest request;
    request.set_name(name);
    request.set_source_volume_id(id_);
    ::csi::v1::CreateSnapshotResponse response;
    Asked asked;
    asked.error = Call<Controller>(&Controller::Stub::CreateSnapshot, request, &response);
    asked.snapshot = response.snapshot();
    return asked;
  }
  // The id of one that is ready; "" if it was refused.
  std::string Cut(const std::string& name) const {
    Asked asked;
    EXPECT_TRUE(Eventually(kPatience, [&] {
      asked = Ask(name);
      return !asked.error.empty() || asked.snapshot.ready_to_use();
    }));
    EXPECT_EQ(asked.error, "");
    return asked.snapshot.snapshot_id();
  }
  std::string DeleteCut(const std::string& id) const {
    ::csi::v1::DeleteSnapshotRequest request;
    request.set_snapshot_id(id);
    ::csi::v1::DeleteSnapshotResponse response;
    return Call<Controller>(&Controller::Stub::DeleteSnapshot, request, &response);
  }
  static VolumeContentSource OfSnapshot(const std::string& id) {
    VolumeContentSource source;
    source.mutable_snapshot()->set_snapshot_id(id);
    return source;
  }
  static VolumeContentSource OfVolume(const std::string& id) {
    VolumeContentSource source;
    source.mutable_volume()->set_volume_id(id);
    return source;
  }
  std::string CreateFrom(const std::string& name, const VolumeContentSource& source, bool is_block,
                         ::csi::v1::Volume* volume, const std::string& backend = "") const {
    ::csi::v1::CreateVolumeRequest request;
    request.set_name(name);
    request.mutable_capacity_range()->set_required_bytes(device_bytes_);
    *request.add_volume_capabilities() = CapabilityOf(is_block);
    *request.mutable_volume_content_source() = source;
    if (!backend.empty()) (*request.mutable_parameters())["backend"] = backend;
    ::csi::v1::CreateVolumeResponse response;
    std::string error = Call<Controller>(&Controller::Stub::CreateVolume, request, &response);
    *volume = response.volume();
    return error;
  }
  void Write(bool is_block, const std::string& text) {
    ASSERT_NO_FATAL_FAILURE(Have(is_block));
    ASSERT_EQ(WriteVolume(is_block, text), text);
    ASSERT_NO_FATAL_FAILURE(Leave());
  }
  // The device has this byte in all of its first bytes, past every cache.
  void FillDevice(char byte, int64_t bytes) const {
    const Descriptor open(::open(device().c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_TRUE(open.valid());
    const std::string block(static_cast<size_t>(kMiB), byte);
    for (int64_t at = 0; at < bytes; at += kMiB) {
      ASSERT_EQ(::pwrite(open.get(), block.data(), block.size(), at), kMiB);
    }
    ASSERT_EQ(::fsync(open.get()), 0);
  }
  std::string Image(const std::string& cut) const { return pool() + "/cuts/" + cut + "/image"; }
  static int64_t Allocated(const std::string& file) {
    struct stat info = {};
    return ::stat(file.c_str(), &info) == 0 ? int64_t{512} * info.st_blocks : -1;
  }
  bool IsSameAsDevice(const std::string& file) const {
    return RunCommand({"cmp", "-n", std::to_string(device_bytes_), device(), file}).exit_status ==
           0;
  }
  // The answer that is told at once, while its bytes are being copied slowly.
  ::csi::v1::Snapshot CutSlowly(const std::string& name) {
    const Asked asked = Ask(name);
    EXPECT_EQ(asked.error, "");
    EXPECT_FALSE(asked.snapshot.ready_to_use());
    return asked.snapshot;
  }
  // What a slow copy is made of, and until some of it is certainly on the disk.
  void StartSlowCopy(::csi::v1::Snapshot* snapshot, int64_t bytes_per_second = kSlow) {
    settings["copy-bandwidth"] = std::to_string(bytes_per_second);
    ASSERT_NO_FATAL_FAILURE(StartWithDevice(/*is_block=*/true));
    ASSERT_NO_FATAL_FAILURE(FillDevice('a', device_bytes_));
    *snapshot = CutSlowly("slow");
    ASSERT_TRUE(
        Eventually(kPatience, [&] { return Allocated(Image(snapshot->snapshot_id())) > kMiB; }));
  }
  // That is told once, and nothing of the copy is left.
  void ExpectFailed(const std::string& name, const std::string& words) {
    std::string why;
    EXPECT_TRUE(Eventually(kPatience, [&] { return !(why = Ask(name).error).empty(); }));
    EXPECT_THAT(why, StartsWith(kPrecondition));
    EXPECT_THAT(why, HasSubstr(words));
    EXPECT_EQ(LeftInPool(), "");
  }
  // A device with files that readers have, while it is being copied.
  void StartSlowCopyBesideReaders() {
    settings["copy-bandwidth"] = std::to_string(kSlowForAWhile);
    ASSERT_NO_FATAL_FAILURE(StartWithDevice(/*is_block=*/false, "ext4"));
    ASSERT_EQ(MountElsewhere(MS_RDONLY), 0);
    const ::csi::v1::Snapshot slow = CutSlowly("slow");
    ASSERT_TRUE(Eventually(kPatience, [&] { return Exists(Image(slow.snapshot_id())); }));
  }
  int MountElsewhere(unsigned long flags) const {
    return ::mount(device().c_str(), elsewhere().c_str(), "ext4", flags, nullptr);
  }
  void RestartFast() {
    KillAgent();
    settings.erase("copy-bandwidth");
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  }
  std::string LeftInPool() const {
    const auto is_empty = [this] { return VolumesInPool() == 0 && CutsInPool() == 0; };
    if (Eventually(kPatience, is_empty)) return "";
    return std::to_string(VolumesInPool()) + " volumes, " + std::to_string(CutsInPool()) + " cuts";
  }

  void CutAndRestore(bool is_block) {
    ASSERT_NO_FATAL_FAILURE(StartWithDevice(is_block));
    ASSERT_NO_FATAL_FAILURE(Have(is_block));
    ASSERT_EQ(WriteVolume(is_block, "before"), "before");
    const std::string refused = Ask("one").error;
    EXPECT_THAT(refused, StartsWith(kPrecondition));
    EXPECT_THAT(refused, HasSubstr("it is staged for writing at " + staging()));
    ASSERT_NO_FATAL_FAILURE(Leave());

    const std::string snapshot = Cut("one");
    ASSERT_NE(snapshot, "");
    EXPECT_LT(Allocated(Image(snapshot)), kBytes) << "blocks of zeros take no room";
    ASSERT_NO_FATAL_FAILURE(Restart());
    EXPECT_EQ(Cut("one"), snapshot);
    ASSERT_NO_FATAL_FAILURE(Write(is_block, "after"));

    ::csi::v1::Volume restored;
    EXPECT_THAT(CreateFrom("other", OfSnapshot(snapshot), is_block, &restored, "lvm"),
                StartsWith(kInvalid));
    ASSERT_EQ(CreateFrom("restored", OfSnapshot(snapshot), is_block, &restored, "image"), "");
    EXPECT_EQ(restored.capacity_bytes(), kBytes);
    ASSERT_NO_FATAL_FAILURE(Have(is_block));
    ASSERT_EQ(Stage(restored.volume_id(), is_block, 1), "") << "beside the device that it is of";
    ASSERT_EQ(Publish(restored.volume_id(), is_block, 1), "");
    EXPECT_EQ(ReadVolume(is_block, 0), "after");
    EXPECT_EQ(ReadVolume(is_block, 1), "before");
    ASSERT_EQ(Unpublish(restored.volume_id(), 1), "");
    ASSERT_EQ(Unstage(restored.volume_id(), 1), "");
    ASSERT_NO_FATAL_FAILURE(Leave());
    EXPECT_EQ(DeleteCut(snapshot), "");
    EXPECT_EQ(Delete(restored.volume_id()), "");
    EXPECT_EQ(LeftInPool(), "");
  }
  void Clone(bool is_block) {
    ASSERT_NO_FATAL_FAILURE(StartWithDevice(is_block));
    ASSERT_NO_FATAL_FAILURE(Have(is_block));
    ASSERT_EQ(WriteVolume(is_block, "cloned"), "cloned");
    ::csi::v1::Volume clone;
    const std::string refused = CreateFrom("clone", OfVolume(id_), is_block, &clone);
    EXPECT_THAT(refused, StartsWith(kPrecondition));
    EXPECT_THAT(refused, HasSubstr("it is staged for writing at " + staging()));
    ASSERT_NO_FATAL_FAILURE(Leave());
    ASSERT_EQ(CreateFrom("clone", OfVolume(id_), is_block, &clone), "");
    EXPECT_EQ(clone.content_source().volume().volume_id(), id_);
    ASSERT_EQ(Stage(clone.volume_id(), is_block, 1), "");
    ASSERT_EQ(Publish(clone.volume_id(), is_block, 1), "");
    EXPECT_EQ(ReadVolume(is_block, 1), "cloned");
    ASSERT_EQ(Unpublish(clone.volume_id(), 1), "");
    ASSERT_EQ(Unstage(clone.volume_id(), 1), "");
    EXPECT_EQ(Delete(clone.volume_id()), "");
    EXPECT_EQ(LeftInPool(), "") << "nor the cut by way of which it was cloned";
  }
};

TEST_F(OwnStaticSnapshotsTest, FilesOfADeviceAreCutWhileNobodyWritesAndRestoredAsAnImage) {
  ASSERT_NO_FATAL_FAILURE(CutAndRestore(/*is_block=*/false));
}

TEST_F(OwnStaticSnapshotsTest, ARawDeviceIsCutWhileNobodyWritesAndRestoredAsAnImage) {
  ASSERT_NO_FATAL_FAILURE(CutAndRestore(/*is_block=*/true));
}

TEST_F(OwnStaticSnapshotsTest, ACloneOfADeviceWithFilesIsAnImage) {
  ASSERT_NO_FATAL_FAILURE(Clone(/*is_block=*/false));
}

TEST_F(OwnStaticSnapshotsTest, ACloneOfARawDeviceIsAnImage) {
  ASSERT_NO_FATAL_FAILURE(Clone(/*is_block=*/true));
}

// The sectors of the image are those of the device, with which its filesystem was made.
TEST_F(OwnStaticSnapshotsTest, AnXfsOfSmallSectorsIsMountedFromItsClone) {
  device_bytes_ = 384 * kMiB;
  ASSERT_NO_FATAL_FAILURE(StartWithDevice(/*is_block=*/false, "xfs"));
  ::csi::v1::CreateVolumeRequest request;
  request.set_name("clone");
  request.mutable_capacity_range()->set_required_bytes(device_bytes_);
  request.add_volume_capabilities()->mutable_mount();
  request.mutable_volume_capabilities(0)->mutable_access_mode()->set_mode(
      ::csi::v1::VolumeCapability::AccessMode::SINGLE_NODE_WRITER);
  *request.mutable_volume_content_source() = OfVolume(id_);
  ::csi::v1::CreateVolumeResponse response;
  ASSERT_EQ(Call<Controller>(&Controller::Stub::CreateVolume, request, &response), "");
  const std::string clone = response.volume().volume_id();
  ::csi::v1::NodeStageVolumeRequest stage = StageRequest(clone, /*is_block=*/false, 1);
  stage.mutable_volume_capability()->mutable_mount()->clear_fs_type();
  ::csi::v1::NodeStageVolumeResponse staged;
  EXPECT_EQ(Call<::csi::v1::Node>(&::csi::v1::Node::Stub::NodeStageVolume, stage, &staged), "");
  EXPECT_EQ(Unstage(clone, 1), "");
  EXPECT_EQ(Delete(clone), "");
}

TEST_F(OwnStaticSnapshotsTest, WhoeverHasTheDeviceElsewhereIsNamedAndAReaderHoldsUpNothing) {
  ASSERT_NO_FATAL_FAILURE(StartWithDevice(/*is_block=*/false, "ext4"));
  ASSERT_EQ(::mount(device().c_str(), elsewhere().c_str(), "ext4", 0, nullptr), 0);
  const std::string refused = Ask("one").error;
  EXPECT_THAT(refused, StartsWith(kPrecondition));
  EXPECT_THAT(refused, HasSubstr("mounted for writing at " + elsewhere()));
  ASSERT_EQ(::umount2(elsewhere().c_str(), 0), 0);
  ASSERT_EQ(::mount(device().c_str(), elsewhere().c_str(), "ext4", MS_RDONLY, nullptr), 0);
  const std::string snapshot = Cut("one");
  // Until then a reader's kernel has blocks in its cache that are otherwise on the disk.
  ASSERT_EQ(::umount2(elsewhere().c_str(), 0), 0);
  EXPECT_TRUE(IsSameAsDevice(Image(snapshot)));
}

// Nobody looked until the copy ended, when all was as before: it was a mixture, and told as ready.
TEST_F(OwnStaticSnapshotsTest, ReadersThatMadeWayForAWriterWereNotSeen) {
  ASSERT_NO_FATAL_FAILURE(StartSlowCopyBesideReaders());
  ASSERT_EQ(::umount2(elsewhere().c_str(), 0), 0);
  ASSERT_EQ(MountElsewhere(0), 0);
  WriteText(elsewhere() + "/note", "meanwhile");
  ASSERT_EQ(::umount2(elsewhere().c_str(), 0), 0);
  ASSERT_EQ(MountElsewhere(MS_RDONLY), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectFailed("slow", "something was written to it"));
}

TEST_F(OwnStaticSnapshotsTest, AReaderThatBecameAWriterForAWhileWasNotSeen) {
  ASSERT_NO_FATAL_FAILURE(StartSlowCopyBesideReaders());
  ASSERT_EQ(MountElsewhere(MS_REMOUNT), 0);
  WriteText(elsewhere() + "/note", "meanwhile");
  ASSERT_EQ(MountElsewhere(MS_REMOUNT | MS_RDONLY), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectFailed("slow", "something was written to it"));
}

TEST_F(OwnStaticSnapshotsTest, WhatIsWrittenPastEveryClaimFailsTheCopy) {
  ::csi::v1::Snapshot slow;
  ASSERT_NO_FATAL_FAILURE(StartSlowCopy(&slow, kSlowForAWhile));
  ASSERT_NO_FATAL_FAILURE(FillDevice('b', kMiB));
  ASSERT_NO_FATAL_FAILURE(ExpectFailed("slow", "something was written to it"));
}

TEST_F(OwnStaticSnapshotsTest, WhatIsWrittenWhileNoAgentRunsFailsTheCopy) {
  ::csi::v1::Snapshot slow;
  ASSERT_NO_FATAL_FAILURE(StartSlowCopy(&slow, kSlowForAWhile));
  KillAgent();
  ASSERT_NO_FATAL_FAILURE(FillDevice('b', kMiB));
  settings.erase("copy-bandwidth");
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ExpectFailed("slow", "something was written to it"));
}

TEST_F(OwnStaticSnapshotsTest, TheLastSectorsOfADeviceWereMissingInItsSnapshot) {
  device_bytes_ = kBytes + 1536;
  ASSERT_NO_FATAL_FAILURE(StartWithDevice(/*is_block=*/true));
  EXPECT_EQ(Listed().capacity_bytes(), device_bytes_);
  ASSERT_NO_FATAL_FAILURE(FillDevice('a', kBytes));
  const Descriptor open(::open(device().c_str(), O_WRONLY | O_CLOEXEC));
  const std::string end(1536, 'z');
  ASSERT_EQ(::pwrite(open.get(), end.data(), end.size(), kBytes), 1536);
  ASSERT_EQ(::fsync(open.get()), 0);
  const std::string snapshot = Cut("one");
  EXPECT_EQ(Ask("one").snapshot.size_bytes(), kBytes + 4096);
  EXPECT_TRUE(IsSameAsDevice(Image(snapshot)));
  ::csi::v1::Volume restored;
  ASSERT_EQ(CreateFrom("whole", OfSnapshot(snapshot), /*is_block=*/true, &restored), "");
  EXPECT_EQ(restored.capacity_bytes(), kBytes + 4096);
}

// What stages a device for readers is told to do led to a filesystem that takes writes.
TEST_F(OwnStaticSnapshotsTest, ADeviceThatIsStagedForReadersIsCut) {
  ASSERT_NO_FATAL_FAILURE(StartWithDevice(/*is_block=*/false, "ext4"));
  ::csi::v1::NodeStageVolumeRequest stage = StageRequest(id_, /*is_block=*/false);
  stage.mutable_volume_capability()->mutable_access_mode()->set_mode(
      ::csi::v1::VolumeCapability::AccessMode::SINGLE_NODE_READER_ONLY);
  ::csi::v1::NodeStageVolumeResponse staged;
  ASSERT_EQ(Call<::csi::v1::Node>(&::csi::v1::Node::Stub::NodeStageVolume, stage, &staged), "");
  EXPECT_NE(Cut("one"), "");
  EXPECT_EQ(Unstage(id_), "");
}

TEST_F(OwnStaticSnapshotsTest, AKillAmidTheCopyLosesNothing) {
  ::csi::v1::Snapshot slow;
  ASSERT_NO_FATAL_FAILURE(StartSlowCopy(&slow, kSlowForAWhile));
  ASSERT_NO_FATAL_FAILURE(RestartFast());
  EXPECT_EQ(Cut("slow"), slow.snapshot_id());
  EXPECT_TRUE(IsSameAsDevice(Image(slow.snapshot_id())));
  EXPECT_EQ(DeleteCut(slow.snapshot_id()), "");
  EXPECT_EQ(LeftInPool(), "");
}

TEST_F(OwnStaticSnapshotsTest, NobodyGetsTheDeviceForWritingAmidTheCopyAndADeletionEndsIt) {
  ::csi::v1::Snapshot slow;
  ASSERT_NO_FATAL_FAILURE(StartSlowCopy(&slow));
  const std::string why = Stage(id_, /*is_block=*/true);
  EXPECT_THAT(why, StartsWith(kPrecondition));
  EXPECT_THAT(why, HasSubstr("is being copied for snapshot " + slow.snapshot_id()));
  const Descriptor claim(::open(device().c_str(), O_RDONLY | O_EXCL | O_CLOEXEC));
  EXPECT_FALSE(claim.valid()) << "nor does anybody else mount it";
  EXPECT_EQ(DeleteCut(slow.snapshot_id()), "");
  ASSERT_NO_FATAL_FAILURE(Have(/*is_block=*/true));
  ASSERT_NO_FATAL_FAILURE(Leave());
  EXPECT_EQ(LeftInPool(), "");
}

TEST_F(OwnStaticSnapshotsTest, ADeviceThatShrinksAmidTheCopyFailsIt) {
  ::csi::v1::Snapshot slow;
  ASSERT_NO_FATAL_FAILURE(StartSlowCopy(&slow));
  ASSERT_NO_FATAL_FAILURE(ResizeDevice(kMiB));
  ASSERT_NO_FATAL_FAILURE(ExpectFailed("slow", ""));
}

TEST_F(OwnStaticSnapshotsTest, ADeviceThatIsAwayAfterAKillAmidTheCopyFailsIt) {
  link_ = "/dev/" + std::filesystem::path(scratch()).filename().string();
  ::csi::v1::Snapshot slow;
  ASSERT_NO_FATAL_FAILURE(StartSlowCopy(&slow, kSlowForAWhile));
  ASSERT_EQ(::unlink(link_.c_str()), 0);
  ASSERT_NO_FATAL_FAILURE(RestartFast());
  ASSERT_NO_FATAL_FAILURE(ExpectFailed("slow", ""));
}

TEST_F(OwnStaticSnapshotsTest, ADeviceThatIsLargerThanTheRoomOfThePoolIsNotCut) {
  device_bytes_ = 2048 * kMiB;
  ASSERT_NO_FATAL_FAILURE(StartWithDevice(/*is_block=*/true));
  EXPECT_THAT(Ask("one").error, StartsWith(kExhausted));
  EXPECT_EQ(LeftInPool(), "");
}

TEST_F(OwnStaticSnapshotsTest, SnapshotsOfOneDeviceAreCopiedOneAfterTheOther) {
  ASSERT_NO_FATAL_FAILURE(StartWithDevice(/*is_block=*/true));
  ASSERT_NO_FATAL_FAILURE(FillDevice('a', device_bytes_ / 4));
  std::vector<std::string> cuts;
  for (const char* name : {"one", "two", "three"}) {
    const Asked asked = Ask(name);
    ASSERT_EQ(asked.error, "");
    cuts.push_back(asked.snapshot.snapshot_id());
  }
  for (const char* name : {"one", "two", "three"}) EXPECT_NE(Cut(name), "");
  for (const std::string& cut : cuts) {
    EXPECT_TRUE(IsSameAsDevice(Image(cut)));
    EXPECT_EQ(DeleteCut(cut), "");
  }
  EXPECT_EQ(LeftInPool(), "");
}

TEST_F(OwnStaticSnapshotsTest, ADeviceIsAMemberOfAGroup) {
  ASSERT_NO_FATAL_FAILURE(StartWithDevice(/*is_block=*/true));
  ASSERT_NO_FATAL_FAILURE(FillDevice('a', kMiB));
  const std::string made = Create("made", /*is_block=*/true);
  ::csi::v1::CreateVolumeGroupSnapshotRequest request;
  request.set_name("group");
  for (const std::string& volume : {id_, made}) request.add_source_volume_ids(volume);
  ::csi::v1::CreateVolumeGroupSnapshotResponse response;
  EXPECT_TRUE(Eventually(kPatience, [&] {
    EXPECT_EQ(Call<GroupController>(&GroupController::Stub::CreateVolumeGroupSnapshot, request,
                                    &response),
              "");
    return response.group_snapshot().ready_to_use();
  }));
  ASSERT_EQ(response.group_snapshot().snapshots_size(), 2);
  for (const auto& member : response.group_snapshot().snapshots()) {
    if (member.source_volume_id() != id_) continue;
    EXPECT_TRUE(IsSameAsDevice(Image(member.snapshot_id())));
  }
}

TEST_F(OwnStaticSnapshotsTest, TheReadAheadOfADeviceIsSetAndReadBack) {
  ASSERT_NO_FATAL_FAILURE(StartWithDevice(/*is_block=*/true));
  ::csi::v1::ControllerModifyVolumeRequest request;
  request.set_volume_id(id_);
  (*request.mutable_mutable_parameters())["readAheadKiB"] = "512";
  ::csi::v1::ControllerModifyVolumeResponse response;
  EXPECT_EQ(Call<Controller>(&Controller::Stub::ControllerModifyVolume, request, &response), "");
  const std::string queue = "/sys/block/" + device().substr(5) + "/queue/read_ahead_kb";
  EXPECT_EQ(ReadText(queue), "512\n");
  (*request.mutable_mutable_parameters())["directIO"] = "false";
  EXPECT_THAT(Call<Controller>(&Controller::Stub::ControllerModifyVolume, request, &response),
              StartsWith(kInvalid));
  // Whatever it is elsewhere, it is so again where the volume is had.
  ASSERT_EQ(RunCommand({"blockdev", "--setra", "256", device()}).exit_status, 0);
  ASSERT_NO_FATAL_FAILURE(Have(/*is_block=*/true));
  EXPECT_EQ(ReadText(queue), "512\n");
  ASSERT_NO_FATAL_FAILURE(Leave());
}

}  // namespace
}  // namespace volumed::own_static_snapshots_test
