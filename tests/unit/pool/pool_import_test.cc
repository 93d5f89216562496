// What can become a PersistentVolume without being copied, what the first look leaves as it was,
// and what is refused.
#include "pool/pool_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "unit/pool/pool_import_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// ---- images -------------------------------------------------------------------------------------

TEST_F(PoolImportTest, TheFirstLookAtAnImageChangesNothingAndSaysWhatWouldBeDone) {
  world_.AddImage(kOldImage, "ext4");
  const std::string before = world_.kernel.DumpTree("/srv");
  const ImportPlan plan = Must(Look(kOldImage));
  EXPECT_EQ(world_.kernel.DumpTree("/srv"), before);
  EXPECT_THAT(world_.LoopsOf(kOldImage), IsEmpty());
  EXPECT_THAT(world_.Rows(), IsEmpty());
  EXPECT_EQ(plan.kind, ImportKind::kImage);
  ASSERT_TRUE(plan.wish.has_value());
  EXPECT_EQ(plan.wish->pool, "fast");
  EXPECT_EQ(plan.size_bytes, 16 * kMiB);
  EXPECT_EQ(plan.filesystem, (PoolFilesystem{"ext4", "uuid-of-old", ""}));
  EXPECT_THAT(plan.deed, HasSubstr("nothing is copied"));
  EXPECT_FALSE(ParsePoolId(HandleOf(plan)).has_value()) << "no volume is named by it yet";
}

TEST_F(PoolImportTest, AnImageBecomesAVolumeWithItsFilesystemAndTheFileStays) {
  world_.AddImage(kOldImage, "ext4");
  const ImportPlan done = Must(DoImport(Parts(), Must(Look(kOldImage)), {}));
  EXPECT_EQ(HandleOf(done), done.volume);
  EXPECT_EQ(done.object.spec.reclaim_policy, ReclaimPolicy::kRetain);
  const PoolVolumeRecord made = Must(volumes().Find(done.volume));
  EXPECT_EQ(made.state, PoolVolumeState::kReady);
  EXPECT_TRUE(made.used) << "its content is somebody's";
  EXPECT_EQ(made.filesystem, (PoolFilesystem{"ext4", "uuid-of-old", ""}));
  const std::string image = PoolWorld::ImageOf(made.id);
  EXPECT_EQ(world_.Look(image).size_bytes, 16 * kMiB);
  EXPECT_EQ(world_.kernel.Image(image).identity.uuid, "uuid-of-old");
  EXPECT_EQ(world_.kernel.Image(kOldImage).identity.uuid, "uuid-of-old");
  EXPECT_EQ(world_.kernel.Image(image).formats, world_.kernel.Image(kOldImage).formats);
  Must(volumes().Open(made.id, false, {}));
  EXPECT_TRUE(volumes().NoteFilesystem(made.id, {"ext4", "uuid-of-old"}).ok());
}

TEST_F(PoolImportTest, AnImageThatIsImportedAgainIsTheSameVolume) {
  world_.AddImage(kOldImage, "xfs");
  const PoolVolumeRecord made = Imported(kOldImage);
  Must(volumes().Open(made.id, false, {}));
  StartAgent();
  const ImportPlan again = Must(Look(kOldImage));
  EXPECT_FALSE(again.wish.has_value());
  EXPECT_EQ(again.volume, made.id);
  EXPECT_EQ(HandleOf(again), made.id);
  EXPECT_THAT(again.deed, HasSubstr("imported before"));
  EXPECT_THAT(world_.Rows(), SizeIs(1));
}

// An xfs that was made with sectors of 512 bytes does not mount from larger ones.
TEST_F(PoolImportTest, TheSectorsOfAnImportedImageAreTheSmallestAlsoOfWhatIsMadeOfIt) {
  world_.AddImage(kOldImage, "");
  const PoolVolumeRecord made = Imported(kOldImage);
  EXPECT_TRUE(made.is_block);
  Must(volumes().Open(made.id, false, {}));
  ASSERT_THAT(world_.Loops(), SizeIs(1));
  EXPECT_EQ(world_.Loops().front().block_size, 512u);
  ASSERT_TRUE(volumes().Close(made.id, {}).ok());
  const std::string cut = volumes().NewCutId(made.id);
  Must(volumes().Cut({{made.id, cut, std::nullopt}}, {}, {}));
  EXPECT_EQ(Must(volumes().FindCut(cut)).block_bytes, 512);
  PoolVolumeWish wish = Wish("copy");
  wish.is_block = true;
  wish.content.emplace();
  wish.content->is_snapshot = true;
  wish.content->handle = cut;
  EXPECT_EQ(Must(volumes().ShapeOf(wish)).block_bytes, 512);
}

TEST_F(PoolImportTest, AnImageWithoutAFilesystemBecomesABlockVolume) {
  world_.AddImage(kOldImage, "");
  const ImportPlan plan = Must(Look(kOldImage));
  EXPECT_TRUE(plan.is_block);
  EXPECT_EQ(plan.object.spec.volume_mode, VolumeMode::kBlock);
  EXPECT_THAT(NotesOf(plan), HasSubstr("mode Block"));
}

// One line said that it has no filesystem, and the next one which UUID that has.
TEST_F(PoolImportTest, OfABlankImageTheNotesContradictedEachOther) {
  world_.AddImage(kOldImage, "");
  const std::string notes = NotesOf(Must(Look(kOldImage)));
  EXPECT_THAT(notes, HasSubstr("the file stays"));
  EXPECT_THAT(notes, ::testing::Not(HasSubstr("UUID")));
}

TEST_F(PoolImportTest, AnImageThatIsInUseElsewhereIsRefused) {
  world_.AddImage(kOldImage, "ext4");
  const AttachedLoop loop = world_.Attach(kOldImage);
  EXPECT_THAT(Refused(kOldImage), HasSubstr("takes writes"));
  world_.kernel.AddDirectory("/mnt/old");
  world_.Aside(Mount{"ext4", loop.device.path, {"/mnt/old", ""}, {}});
  EXPECT_THAT(Refused(kOldImage), HasSubstr("which somebody uses"));
  world_.Aside(Unmount{.target = {"/mnt/old", ""}});
  world_.Detach(kOldImage);
  world_.kernel.AddFile("/mnt/file", "");
  world_.Aside(BindMount{.source = {kOldImage, ""}, .target = {"/mnt/file", ""}});
  EXPECT_THAT(Refused(kOldImage), HasSubstr("is mounted at /mnt/file"));
  EXPECT_THAT(world_.Rows(), IsEmpty());
}

TEST_F(PoolImportTest, ALoopDeviceThatAnEarlierLookHasLeftIsUsedAgainAndTold) {
  world_.AddImage(kOldImage, "ext4");
  world_.Attach(kOldImage, /*read_only=*/true);
  const ImportPlan plan = Must(Look(kOldImage));
  EXPECT_THAT(NotesOf(plan), HasSubstr("losetup -d"));
  EXPECT_THAT(world_.LoopsOf(kOldImage), SizeIs(1)) << "it may be somebody's";
}

TEST_F(PoolImportTest, TheLoopDeviceOfALookThatFailedIsDetached) {
  world_.AddImage(kOldImage, "ext4");
  world_.kernel.FailNext("ProbeDevice", EIO, Outcome::kNotApplied);
  EXPECT_NE(Refused(kOldImage), "");
  EXPECT_THAT(world_.LoopsOf(kOldImage), IsEmpty());
}

TEST_F(PoolImportTest, AFilesystemThatIsNotCleanIsToldAndNotMended) {
  world_.AddImage(kOldImage, "ext4");
  const AttachedLoop loop = world_.Attach(kOldImage);
  world_.kernel.ChangeDevice(loop.device.path,
                             [](FakeDevice& device) { device.damage = CheckResult::kFixed; });
  world_.Detach(kOldImage);
  EXPECT_THAT(NotesOf(Must(Look(kOldImage))), HasSubstr("is not clean, and is left as it is"));
  const PoolVolumeRecord made = Imported(kOldImage);
  EXPECT_EQ(world_.kernel.Image(kOldImage).damage, CheckResult::kFixed);
  EXPECT_EQ(world_.kernel.Image(PoolWorld::ImageOf(made.id)).damage, CheckResult::kFixed);
}

TEST_F(PoolImportTest, ALinkOnTheWayIsRefused) {
  world_.AddImage(kOldImage, "ext4");
  world_.kernel.AddSymlink("/srv/link", kOldDirectory);
  world_.kernel.AddSymlink("/srv/file", kOldImage);
  EXPECT_THAT(Refused("/srv/link/disk.img"), HasSubstr("which leads to " + kOldImage));
  EXPECT_THAT(Refused("/srv/file"), HasSubstr("which leads to " + kOldImage));
}

TEST_F(PoolImportTest, OtherHardLinksOfTheFileDoNotReachTheVolume) {
  world_.AddImage(kOldImage, "ext4");
  world_.kernel.AddHardLink(kOldDirectory + "/other", kOldImage);
  const PoolVolumeRecord made = Imported(kOldImage);
  EXPECT_NE(world_.Look(PoolWorld::ImageOf(made.id)).inode, world_.Look(kOldImage).inode);
  EXPECT_EQ(Must(Look(kOldDirectory + "/other")).volume, made.id) << "it is the same file";
}

TEST_F(PoolImportTest, WhatIsInAPoolOrTheAgentsOwnIsRefused) {
  world_.AddImage(kOldImage, "ext4");
  const PoolVolumeRecord made = Imported(kOldImage);
  EXPECT_THAT(Refused(PoolWorld::ImageOf(made.id)), HasSubstr("is in pool fast already"));
  EXPECT_THAT(Refused(kPoolPath + "/volumes/" + made.id), HasSubstr("is in pool fast already"));
  EXPECT_THAT(Refused("/srv"), HasSubstr("pool fast is in /srv"));
  world_.kernel.AddDirectory("/var/lib/volumed/x");
  EXPECT_THAT(Refused("/var/lib/volumed/x"), HasSubstr("the agent's own directory"));
  EXPECT_THAT(Refused(kOldDirectory), HasSubstr("lies in the directory of pool fast"));
}

// It became a second volume with the same filesystem.
TEST_F(PoolImportTest, AHardLinkToAVolumesFileWasImportedAsAnotherVolume) {
  world_.AddImage(kOldImage, "ext4");
  const PoolVolumeRecord made = Imported(kOldImage);
  world_.kernel.AddHardLink(kOldDirectory + "/link", PoolWorld::ImageOf(made.id));
  EXPECT_THAT(Refused(kOldDirectory + "/link"), HasSubstr("the file of volume " + made.id));
  EXPECT_THAT(volumes().All(), SizeIs(1));
}

TEST_F(PoolImportTest, AFileOfAnotherFilesystemIsNotCopied) {
  world_.kernel.AddDirectory("/home");
  world_.AddImage("/home/disk.img", "ext4");
  EXPECT_THAT(Refused("/home/disk.img"), HasSubstr("nothing is copied"));
  EXPECT_THAT(Refused("/home/disk.img", "slow"), HasSubstr("no pool \"slow\""));
}

TEST_F(PoolImportTest, AnImageOfASizeOrTypeThatNoVolumeHasIsRefused) {
  world_.AddImage(kOldImage, "ext4", 16 * kMiB + 512);
  EXPECT_THAT(Refused(kOldImage), HasSubstr("multiples of 4096"));
  world_.AddImage(kOldDirectory + "/ext3", "ext3");
  EXPECT_THAT(Refused(kOldDirectory + "/ext3"), HasSubstr("have ext4, xfs or btrfs"));
  EXPECT_THAT(Refused(kOldDirectory + "/ext3", "", kMiB), HasSubstr("no other one can be said"));
}

TEST_F(PoolImportTest, AnImageThatWasReplacedSinceTheLookIsNotImported) {
  world_.AddImage(kOldImage, "ext4");
  const ImportPlan plan = Must(Look(kOldImage));
  world_.kernel.Remove(kOldImage);
  const Error gone = FailureOfImport(DoImport(Parts(), plan, {}));
  EXPECT_EQ(gone.code(), Code::kNotFound) << gone.ToString();
  world_.AddImage(kOldImage, "ext4");
  const Error other = FailureOfImport(DoImport(Parts(), plan, {}));
  EXPECT_THAT(other.message(), HasSubstr("something else is at"));
  EXPECT_THAT(world_.Rows(), IsEmpty());
  EXPECT_THAT(world_.Directories(), IsEmpty());
}

TEST_F(PoolImportTest, AFullPoolImportsNothingAndNothingIsLeft) {
  world_.AddImage(kOldImage, "ext4");
  const ImportPlan plan = Must(Look(kOldImage));
  world_.kernel.LimitFilesystem(kPoolPath, 8 * kMiB);
  EXPECT_EQ(FailureOfImport(DoImport(Parts(), plan, {})).code(), Code::kResourceExhausted);
  EXPECT_THAT(world_.Rows(), IsEmpty());
  EXPECT_THAT(world_.Directories(), IsEmpty());
}

TEST_F(PoolImportTest, NothingIsImportedWhileThatIsHeldBack) {
  world_.AddImage(kOldImage, "ext4");
  const ImportPlan plan = Must(Look(kOldImage));
  agent_->irreversible.hold = true;
  EXPECT_FALSE(DoImport(Parts(), plan, {}).ok());
  EXPECT_THAT(world_.Rows(), IsEmpty());
  EXPECT_THAT(world_.Directories(), IsEmpty());
}

class PoolImportExtTest : public PoolImportTest {
 protected:
  PoolImportExtTest() : PoolImportTest("ext4") {}
};

TEST_F(PoolImportExtTest, WhereNoBlocksAreSharedAnImageIsNotCopied) {
  world_.AddImage(kOldImage, "ext4");
  const Result<ImportPlan> plan = Look(kOldImage);
  EXPECT_EQ(FailureOfImport(plan).code(), Code::kUnimplemented);
  EXPECT_THAT(FailureOfImport(plan).message(), HasSubstr("without being copied"));
}

// It was refused, and what else there is to do was for the reader to find.
TEST_F(PoolImportExtTest, TheRefusalOfAnImageThatSharesNoBlocksDidNotSayWhatToDo) {
  world_.AddImage(kOldImage, "ext4");
  EXPECT_THAT(Refused(kOldImage), HasSubstr("copy it to the filesystem of a pool on xfs or btrfs"));
}

// ---- directories --------------------------------------------------------------------------------

TEST_F(PoolImportTest, ADirectoryStaysWhereItIsAndGetsALocalPersistentVolume) {
  world_.kernel.AddFile("/opt/local-path/pvc-1/data", std::string(1000, 'x'));
  const ImportPlan plan = Must(Look("/opt/local-path/pvc-1"));
  EXPECT_EQ(plan.kind, ImportKind::kDirectory);
  EXPECT_FALSE(plan.wish.has_value());
  EXPECT_EQ(std::get<LocalVolumeSource>(plan.object.spec.source).path, "/opt/local-path/pvc-1");
  ASSERT_TRUE(plan.object.spec.node_affinity.has_value());
  const NodeRequirement& node =
      plan.object.spec.node_affinity->required.terms.at(0).match_expressions.at(0);
  EXPECT_EQ(node.key, "kubernetes.io/hostname");
  EXPECT_THAT(node.values, ::testing::ElementsAre("n1"));
  EXPECT_EQ(plan.object.spec.capacity.Value(), kMiB) << "what is used, rounded up";
  EXPECT_EQ(Must(Look("/opt/local-path/pvc-1", "", 64 * kMiB)).size_bytes, 64 * kMiB);
  EXPECT_THAT(Refused("/opt/local-path/pvc-1", "", 10), HasSubstr("more than the size"));
}

TEST_F(PoolImportTest, ADirectoryHadTheSizeOfWhatItHoldsAndNobodySaidSo) {
  world_.kernel.AddFile("/opt/local-path/pvc-1/data", "x");
  const auto notes = [this](int64_t bytes) {
    return NotesOf(Must(Look("/opt/local-path/pvc-1", "", bytes)));
  };
  EXPECT_THAT(notes(0), HasSubstr("--size says a larger one"));
  EXPECT_THAT(notes(64 * kMiB), ::testing::Not(HasSubstr("--size")));
}

TEST_F(PoolImportTest, ADirectoryThatIsMountedElsewhereOrHasAMountOrAMarkIsRefused) {
  world_.kernel.AddDirectory("/opt/a/inside");
  world_.kernel.AddDirectory("/opt/b");
  world_.kernel.SetOwner("/opt/a", "pv-7");
  EXPECT_THAT(Refused("/opt/a"), HasSubstr("the mark of pv-7"));
  world_.kernel.SetOwner("/opt/a", "");
  world_.Aside(BindMount{.source = {"/opt/a", ""}, .target = {"/opt/b", ""}});
  EXPECT_THAT(Refused("/opt/a"), HasSubstr("is mounted at /opt/b"));
  world_.kernel.UnmountBelow("/opt/b");
  EXPECT_EQ(Refused("/opt/a"), "");
  world_.kernel.AddMount("tmpfs", "tmpfs", "/opt/a/inside");
  EXPECT_THAT(Refused("/opt/a"), HasSubstr("at /opt/a/inside"));
}

TEST_F(PoolImportTest, APlainDirectoryOfAnotherFilesystemBecomesNoVolumeOfAPool) {
  world_.Aside(MakeDirectory{.path = {"/srv", "old"}});
  EXPECT_THAT(Refused("/srv/old", "fast", kMiB), HasSubstr("nothing is copied"));
}

class PoolImportBtrfsTest : public PoolImportTest {
 protected:
  PoolImportBtrfsTest() : PoolImportTest("btrfs") {}
};

TEST_F(PoolImportBtrfsTest, ASubvolumeBecomesAVolumeAsASnapshot) {
  const std::string subvolume = kOldDirectory + "/sub";
  world_.Aside(MakeSubvolume{.path = {kOldDirectory, "sub"}});
  world_.kernel.AddFile(subvolume + "/f", "then");
  EXPECT_THAT(Refused(subvolume, "fast"), HasSubstr("--size says how large"));
  EXPECT_THAT(Refused(subvolume), HasSubstr("lies in the directory of pool fast"));
  const PoolVolumeRecord made = Imported(subvolume, "fast", 2 * kMiB);
  EXPECT_EQ(made.backend, PoolBackendKind::kSubvolume);
  EXPECT_EQ(made.state, PoolVolumeState::kReady);
  const std::string data = kPoolPath + "/volumes/" + made.id + "/data";
  EXPECT_EQ(world_.kernel.Find(data + "/f").content, "then");
  world_.kernel.AddFile(subvolume + "/f", "later");
  EXPECT_EQ(world_.kernel.Find(data + "/f").content, "then");
  EXPECT_EQ(Must(Look(subvolume, "fast", 2 * kMiB)).volume, made.id);
}

// ---- logical volumes and CSI volumes ------------------------------------------------------------

class PoolImportDeviceTest : public PoolImportTest {
 protected:
  PoolImportDeviceTest() {
    FakeDevice volume;
    volume.fs_type = "xfs";
    volume.usage = "filesystem";
    volume.identity.stable_id = "dm:LVM-abc";
    volume.identity.uuid = "uuid-of-lv";
    volume.identity.size_bytes = 64 * kMiB;
    world_.kernel.AddDevice("/dev/dm-3", volume);
    world_.kernel.AddSymlink("/dev/vg/lv", "/dev/dm-3");
  }
};

TEST_F(PoolImportDeviceTest, ALogicalVolumeStaysWhatItIsAndIsNamedByItsLastingPath) {
  const ImportPlan plan = Must(Look("/dev/vg/lv"));
  EXPECT_EQ(plan.kind, ImportKind::kLogicalVolume);
  EXPECT_FALSE(plan.wish.has_value());
  const auto& local = std::get<LocalVolumeSource>(plan.object.spec.source);
  EXPECT_EQ(local.path, "/dev/vg/lv");
  EXPECT_EQ(local.fs_type, "xfs");
  EXPECT_EQ(plan.object.spec.capacity.Value(), 64 * kMiB);
  EXPECT_THAT(Refused("/dev/dm-3"), HasSubstr("name it as /dev/VG/LV"));
  EXPECT_THAT(Refused("/dev/vg/lv", "fast"), HasSubstr("becomes none of a pool"));
}

TEST_F(PoolImportDeviceTest, ALogicalVolumeOfAPoolWasTakenForOneOfSomebodyElse) {
  world_.kernel.AddSymlink("/dev/vg/v-3fa91c02-0123456789abcdef01234567", "/dev/dm-3");
  world_.kernel.AddSymlink("/dev/mapper/vg-s--3fa91c02--0123456789abcdef01234567", "/dev/dm-3");
  EXPECT_THAT(Refused("/dev/vg/v-3fa91c02-0123456789abcdef01234567"), HasSubstr("is of a pool"));
  EXPECT_THAT(Refused("/dev/mapper/vg-s--3fa91c02--0123456789abcdef01234567"),
              HasSubstr("is of a pool"));
}

TEST_F(PoolImportDeviceTest, ALogicalVolumeThatSomebodyHasIsRefused) {
  world_.kernel.AddDirectory("/mnt/lv");
  world_.Aside(Mount{"xfs", "/dev/dm-3", {"/mnt/lv", ""}, {}});
  EXPECT_THAT(Refused("/dev/vg/lv"), HasSubstr("is mounted, or somebody else has it"));
  world_.Aside(Unmount{.target = {"/mnt/lv", ""}});
  EXPECT_EQ(Refused("/dev/vg/lv"), "");
  world_.kernel.ChangeDevice("/dev/dm-3", [](FakeDevice& device) { device.claimed = true; });
  EXPECT_THAT(Refused("/dev/vg/lv"), HasSubstr("somebody else has it"));
}

TEST_F(PoolImportDeviceTest, WhatWasNeverFinishedOrIsNoLogicalVolumeIsRefused) {
  world_.kernel.ChangeDevice("/dev/dm-3", [](FakeDevice& device) { device.unfinished = true; });
  EXPECT_THAT(Refused("/dev/vg/lv"), HasSubstr("was never finished"));
  world_.kernel.ChangeDevice("/dev/dm-3", [](FakeDevice& device) {
    device.unfinished = false;
    device.identity.stable_id = "dm:CRYPT-abc";
  });
  EXPECT_THAT(Refused("/dev/vg/lv"), HasSubstr("no logical volume"));
}

// It was only said to be no logical volume.
TEST_F(PoolImportDeviceTest, OfAnotherDeviceItWasNotSaidThatItCanBeListedOrThatItIs) {
  FakeDevice disk;
  disk.identity.stable_id = "wwid:disk-1";
  disk.identity.size_bytes = 64 * kMiB;
  world_.kernel.AddDevice("/dev/sdx", disk);
  EXPECT_THAT(Refused("/dev/sdx"), HasSubstr("static-volumes"));
  StaticVolume listed;
  listed.name = "scratch";
  listed.device = "/dev/sdx";
  volumes().ListStatic({listed.name});
  const PoolVolumeRecord volume = Must(volumes().TakeStatic(listed, {}));
  EXPECT_EQ(Refused("/dev/sdx"),
            "/dev/sdx is a volume already, as one of static-volumes: " + volume.id + "; import " +
                kImportDriver + "^" + volume.id + " for its PersistentVolume");
}

TEST_F(PoolImportTest, AVolumeOfACsiDriverIsNamedByItsHandleAndNeedsASize) {
  EXPECT_THAT(Refused("disk.csi.io^vol-1"), HasSubstr("say its size"));
  const ImportPlan plan = Must(Look("disk.csi.io^vol-1", "", 64 * kMiB));
  const auto& source = std::get<CsiPersistentVolumeSource>(plan.object.spec.source);
  EXPECT_EQ(source.driver, "disk.csi.io");
  EXPECT_EQ(source.volume_handle, "vol-1");
  EXPECT_THAT(NotesOf(plan), HasSubstr("another node"));
  EXPECT_FALSE(plan.object.spec.node_affinity.has_value());
}

TEST_F(PoolImportTest, AVolumeOfAPoolThatLostItsPersistentVolumeGetsAnotherOne) {
  const PoolVolumeRecord made = Must(volumes().Create(Wish("pvc-1"), {}));
  const ImportPlan plan = Must(Look(kImportDriver + "^" + made.id));
  EXPECT_EQ(HandleOf(plan), made.id);
  EXPECT_EQ(plan.size_bytes, 16 * kMiB);
  EXPECT_THAT(Refused(kImportDriver + "^v-0"), HasSubstr("there is no"));
}

TEST_F(PoolImportTest, ASourceThatIsNoneIsRefused) {
  for (const char* source : {"", "relative/path", "^handle", "driver^", "bad_driver^h",
                             "/opt/../etc", "/opt//x", "/opt/x/", "/", "/opt/\n"}) {
    const Result<ImportPlan> plan = Look(source, "", kMiB);
    EXPECT_EQ(FailureOfImport(plan).code(), Code::kInvalidArgument) << source;
  }
  EXPECT_EQ(FailureOfImport(Look("/opt/nothing")).code(), Code::kNotFound);
}

TEST_F(PoolImportTest, APathBelowTheRootThatIsNotThereWasShownWithTwoSlashes) {
  EXPECT_THAT(Refused("/nothere"), HasSubstr("look for /nothere"));
}

}  // namespace
}  // namespace volumed
