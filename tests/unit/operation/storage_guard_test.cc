// What one storage is, and what keeps its content from being deleted.
#include "operation/storage_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operation/recorded_volume.h"
#include "unit/operation/storage_guard_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;

TEST_F(StorageGuardTest, AVolumeInsideAnotherOnesDirectoryKeepsThatFromBeingEmptied) {
  kernel_.AddDirectory("/x/sub");
  const PersistentVolume outer = HostPathVolume("outer", "/x");
  const PersistentVolume inner = HostPathVolume("inner", "/x/sub");
  const std::string refused = Reclaim(outer, "claim-1", {inner});
  EXPECT_TRUE(Has(refused, "persistent volume outer")) << refused;
  EXPECT_TRUE(Has(refused, "persistent volume inner")) << refused;
  EXPECT_NE(Reclaim(inner, "claim-2", {outer}), "") << "nor the other way round";
  EXPECT_EQ(Reclaim(outer, "claim-1"), "");
}

TEST_F(StorageGuardTest, LinksAndBindsDoNotHideThatTwoDirectoriesAreOne) {
  kernel_.AddDirectory("/x/sub");
  kernel_.AddDirectory("/bound");
  kernel_.AddSymlink("/link", "/x/sub");
  ASSERT_TRUE(kernel_.Call(BindMount{{"/x/sub", ""}, {"/bound", ""}}, {}).ok());
  const PersistentVolume outer = HostPathVolume("outer", "/x");
  EXPECT_NE(Reclaim(outer, "claim-1", {HostPathVolume("inner", "/link")}), "");
  EXPECT_NE(Reclaim(outer, "claim-1", {HostPathVolume("inner", "/bound")}), "");
  EXPECT_EQ(Reclaim(HostPathVolume("beside", "/xy"), "claim-1", {outer}), "");
}

TEST_F(StorageGuardTest, APartThatIsMountedElsewhereKeepsItFromBeingEmptied) {
  kernel_.AddDirectory("/x/sub");
  kernel_.AddDirectory("/elsewhere");
  const PersistentVolume outer = HostPathVolume("outer", "/x");
  ASSERT_TRUE(kernel_.Call(BindMount{{"/x/sub", ""}, {"/elsewhere", ""}}, {}).ok());
  EXPECT_TRUE(Has(Reclaim(outer, "claim-1"), "is mounted at /elsewhere"));
  kernel_.UnmountBelow("/elsewhere");
  EXPECT_EQ(Reclaim(outer, "claim-1"), "");
}

TEST_F(StorageGuardTest, TheAgentsOwnDirectoriesAreNeverEmptiedNorTakenForANewVolume) {
  kernel_.AddDirectory("/var/lib/volumed/pods");
  EXPECT_TRUE(Has(Reclaim(HostPathVolume("v", "/var/lib"), "c"), "the agent's root"));
  kernel_.AddSymlink("/srv", "/var/lib/volumed");
  EXPECT_TRUE(Has(Reclaim(HostPathVolume("v", "/srv/pods"), "c"), "the agent's root"));
  EXPECT_FALSE(guard_->CheckNotOwn({"/srv/new"}, {}).ok());
  EXPECT_TRUE(guard_->CheckNotOwn({"/data/new"}, {}).ok());
}

TEST_F(StorageGuardTest, APodThatLooksAtTheWholeTreeKeepsNothingFromBeingEmptied) {
  kernel_.AddDirectory("/x/sub");
  EXPECT_EQ(Take(Pod("looker"), "/"), "");
  const PersistentVolume volume = HostPathVolume("v", "/x");
  EXPECT_EQ(Reclaim(volume, "claim-1"), "");
  ASSERT_TRUE(guard_->Release("reclaim/v").ok());
  EXPECT_EQ(Take(Pod("inside"), "/x/sub"), "");
  EXPECT_TRUE(Has(Reclaim(volume, "claim-1"), "volume inside"));
}

TEST_F(StorageGuardTest, AVolumeThatIsCertainlyNotSetUpHasNoStorage) {
  PodVolumeRecord record;
  record.key = Key("uid-1", "data");
  record.volume_json = EncodeRecordedVolume(
      VolumeSpec::FromVolume({"data", HostPathVolumeSource{"/x", HostPathType::kUnset}}));
  EXPECT_FALSE(MayHaveStorage(record));
  EXPECT_FALSE(StorageOf(record).has_value());
  record.uncertain = true;
  EXPECT_TRUE(MayHaveStorage(record));
  EXPECT_TRUE(StorageOf(record).has_value());
  record.uncertain = false;
  record.state = VolumeState::kSetUp;
  EXPECT_TRUE(MayHaveStorage(record));
  record.is_block = true;
  EXPECT_FALSE(MayHaveStorage(record)) << "it is its device's";
}

TEST_F(StorageGuardTest, WhatIsBeingEmptiedIsGivenToNobodyNotEvenAfterARestart) {
  kernel_.AddDirectory("/x/sub");
  const PersistentVolume volume = HostPathVolume("v", "/x");
  ASSERT_EQ(Reclaim(volume, "claim-1"), "");
  EXPECT_TRUE(Has(Take(Pod("late"), "/x/sub"), "whose content is being deleted"));
  Restart();
  EXPECT_TRUE(Has(Take(Pod("late"), "/x/sub"), "whose content is being deleted"));
  EXPECT_EQ(Reclaim(volume, "claim-1"), "") << "it takes over what it began";
  ASSERT_TRUE(guard_->Release("reclaim/v").ok());
  EXPECT_EQ(Take(Pod("late"), "/x/sub"), "");
  ASSERT_TRUE(guard_->Release("pod/late").ok());

  ASSERT_EQ(Reclaim(volume, "claim-1"), "");
  Restart("boot-b");
  EXPECT_EQ(Take(Pod("late"), "/x/sub"), "") << "no work outlives a reboot";
}

TEST_F(StorageGuardTest, AnotherDirectoryAtTheSamePathIsNotEmptied) {
  kernel_.AddDirectory("/x");
  const PersistentVolume volume = HostPathVolume("v", "/x");
  Use(volume, "claim-1");
  kernel_.Remove("/x");
  kernel_.AddDirectory("/x");
  Restart();
  EXPECT_TRUE(Has(Reclaim(volume, "claim-1"), "another directory"));
}

TEST_F(StorageGuardTest, AVolumeWhoseDiskIsNotMountedIsNotTakenForADeletedOne) {
  FakeDevice disk;
  kernel_.AddDevice("/dev/sdb", disk);
  kernel_.AddDirectory("/mnt");
  FormatDevice format;
  format.device = "/dev/sdb";
  format.expected = kernel_.Device("/dev/sdb").identity;
  format.expected.uuid.clear();
  format.fs_type = "ext4";
  format.fs_uuid = "uuid-1";
  ASSERT_TRUE(kernel_.Call(format, {}).ok());
  ASSERT_TRUE(kernel_.Call(Mount{"ext4", "/dev/sdb", {"/mnt", ""}, {}}, {}).ok());
  kernel_.AddDirectory("/mnt/v");
  const PersistentVolume volume = HostPathVolume("v", "/mnt/v");
  Use(volume, "claim-1");
  kernel_.UnmountBelow("/mnt");
  const std::string refused = Reclaim(volume, "claim-1");
  EXPECT_TRUE(Has(refused, "another directory")) << refused;
}

TEST_F(StorageGuardTest, ADiskWithoutAKnownUuidThatIsNotMountedIsNotTakenForADeletedOneEither) {
  FakeDevice disk;
  disk.fs_type = "ext4";
  disk.usage = "filesystem";
  kernel_.AddDevice("/dev/sdb", disk);
  kernel_.ChangeDevice("/dev/sdb", [](FakeDevice& device) { device.identity.uuid.clear(); });
  kernel_.AddDirectory("/mnt");
  ASSERT_TRUE(kernel_.Call(Mount{"ext4", "/dev/sdb", {"/mnt", ""}, {}}, {}).ok());
  kernel_.AddDirectory("/mnt/v");
  const PersistentVolume volume = HostPathVolume("v", "/mnt/v");
  Use(volume, "claim-1");
  kernel_.UnmountBelow("/mnt");
  const std::string refused = Reclaim(volume, "claim-1");
  EXPECT_TRUE(Has(refused, "another directory")) << refused;
  EXPECT_TRUE(Has(refused, "UUID")) << refused;
}

TEST_F(StorageGuardTest, NorWhereWhatIsBelowItTellsNoUuid) {
  kernel_.AddDirectory("/x");
  const PersistentVolume volume = HostPathVolume("v", "/x/v");
  kernel_.AddDirectory("/x/v");
  Use(volume, "claim-1");
  FakeDevice disk;
  disk.fs_type = "ext4";
  disk.usage = "filesystem";
  kernel_.AddDevice("/dev/sdb", disk);
  kernel_.ChangeDevice("/dev/sdb", [](FakeDevice& device) { device.identity.uuid.clear(); });
  ASSERT_TRUE(kernel_.Call(Mount{"ext4", "/dev/sdb", {"/x", ""}, {}}, {}).ok());
  EXPECT_TRUE(Has(Reclaim(volume, "claim-1"), "UUID"));
}

TEST_F(StorageGuardTest, ADirectoryThatWasRemovedFromItsFilesystemIsADeletedOne) {
  kernel_.AddDirectory("/x");
  const PersistentVolume volume = HostPathVolume("v", "/x");
  Use(volume, "claim-1");
  kernel_.Remove("/x");
  EXPECT_EQ(Reclaim(volume, "claim-1"), "");
}

// Had it asked before it reserved, what came and went in between was emptied with it.
TEST_F(StorageGuardTest, WhoeverComesIntoAVolumeWhileItsDeletionAsksIsRefusedOrKeepsIt) {
  kernel_.AddDirectory("/x/sub");
  std::string inner = "not asked";
  kernel_.SetCallHook([&](const AnyRequest& request) {
    if (inner != "not asked" || !std::holds_alternative<ListMounts>(request)) return;
    inner = "";
    inner = Take(Pod("inner", true), "/x/sub");
    if (!inner.empty()) return;
    inner = RecordOf(HostPathVolume("inner", "/x/sub"), "claim-2", true);
    EXPECT_TRUE(guard_->Release("pod/inner").ok());
  });
  const std::string emptied = Reclaim(HostPathVolume("outer", "/x"), "claim-1");
  ASSERT_NE(inner, "not asked");
  EXPECT_TRUE(inner.empty() != emptied.empty()) << "inner: " << inner << "; emptied: " << emptied;
}

// The file of a PersistentVolume whose data is to stay was deleted with the volume around it.
TEST_F(StorageGuardTest, ARetainedFileKeepsTheDirectoryAroundItFromBeingEmptied) {
  kernel_.AddDirectory("/x");
  kernel_.AddFile("/x/file", "data");
  const PersistentVolume outer = HostPathVolume("outer", "/x");
  const PersistentVolume file = HostPathVolume("file", "/x/file");
  ASSERT_EQ(RecordOf(file, "claim-2", true), "");
  EXPECT_THAT(Reclaim(outer, "claim-1"), HasSubstr("PersistentVolume file"));
  ASSERT_TRUE(guard_->Forget("file").ok());
  EXPECT_THAT(Reclaim(outer, "claim-1"), HasSubstr("the retained data of PersistentVolume file"));
  kernel_.Remove("/x/file");
  EXPECT_EQ(Reclaim(outer, "claim-1"), "");
}

TEST_F(StorageGuardTest, AnExportInsideAnotherIsTheSameStorage) {
  PersistentVolume outer;
  outer.metadata.name = "outer";
  outer.spec.source = NfsVolumeSource{"NAS.", "/srv/", false};
  PersistentVolume inner = outer;
  inner.metadata.name = "inner";
  inner.spec.source = NfsVolumeSource{"nas", "/srv//sub/", false};
  EXPECT_NE(Reclaim(outer, "c", {inner}), "");
  inner.spec.source = NfsVolumeSource{"nas", "/srv2", false};
  EXPECT_EQ(Reclaim(outer, "c", {inner}), "");
  kernel_.AddMount("nfs4", "nas:/srv", "/mnt/nas");
  kernel_.AddDirectory("/mnt/nas/pv");
  ASSERT_TRUE(guard_->Release("reclaim/outer").ok());
  EXPECT_NE(Reclaim(HostPathVolume("host", "/mnt/nas/pv"), "c", {outer}), "");
}

// A Recycle has emptied the directory of a volume whose file in objects/ was damaged.
TEST_F(StorageGuardTest, AVolumeOfWhichNobodyKnowsTheStorageKeepsAllOthersFromBeingEmptied) {
  kernel_.AddDirectory("/x/sub");
  kernel_.AddDevice("/dev/sdb");
  const PersistentVolume outer = HostPathVolume("outer", "/x");
  guard_->SetUnknown({{"inner", "/objects/inner.json", "it is cut off"}});
  const std::string refused = Reclaim(outer, "claim-1");
  EXPECT_TRUE(Has(refused,
                  "nobody knows what storage PersistentVolume inner has: "
                  "/objects/inner.json: it is cut off"))
      << refused;
  EXPECT_TRUE(Has(refused, "persistent volume outer")) << refused;
  // Nothing is formatted, and all the rest goes on.
  EXPECT_EQ(Take(Device("two", StorageUse::kMounted), "/dev/sdb"), "");
  EXPECT_FALSE(guard_->Change("device/p/two", StorageUse::kFormat).ok());
  EXPECT_TRUE(guard_->Has("device/p/two", StorageUse::kMounted));
  ASSERT_TRUE(guard_->Release("device/p/two").ok());
  EXPECT_EQ(Take(Device("raw", StorageUse::kRaw), "/dev/sdb"), "");
  const PersistentVolume inner = HostPathVolume("inner", "/x/sub");
  EXPECT_EQ(Reclaim(inner, "claim-2"), "") << "it is no other volume";
  ASSERT_TRUE(guard_->Release("reclaim/inner").ok());
  const std::set<std::string> held = {"outer", "two"};
  EXPECT_EQ(guard_->SetUnknown({}), held) << "these may be tried again";
  EXPECT_TRUE(guard_->SetUnknown({}).empty());
  EXPECT_EQ(Reclaim(outer, "claim-1"), "");
}

TEST_F(StorageGuardTest, AnUnknownVolumeWhoseStorageIsOnRecordIsComparedWith) {
  kernel_.AddDirectory("/x/sub");
  kernel_.AddDirectory("/beside");
  const PersistentVolume outer = HostPathVolume("outer", "/x");
  Use(HostPathVolume("inner", "/x/sub"), "claim-1");
  Restart();
  guard_->SetUnknown({{"inner", "/objects/inner.json", "it is cut off"}});
  EXPECT_EQ(Reclaim(HostPathVolume("beside", "/beside"), "claim-2"), "");
  EXPECT_TRUE(Has(Reclaim(outer, "claim-3"), "inner"));
  // Another directory is there: who knows where the other one is now.
  kernel_.Remove("/x/sub");
  kernel_.AddDirectory("/x/sub");
  ASSERT_TRUE(guard_->Release("reclaim/beside").ok());
  EXPECT_TRUE(Has(Reclaim(HostPathVolume("beside", "/beside"), "claim-2"), "nobody knows where"));
  // A binding may tell it as well.
  Restart();
  ASSERT_TRUE(guard_->Forget("inner").ok());
  guard_->SetUnknown({{"inner", "", "it is lost", StorageName{"/x/sub"}}});
  EXPECT_EQ(Reclaim(HostPathVolume("beside", "/beside"), "claim-2"), "");
  EXPECT_TRUE(Has(Reclaim(outer, "claim-3"), "inner"));
}

TEST_F(StorageGuardTest, AVolumeThatCannotBeLookedAtKeepsOthersFromBeingEmptied) {
  kernel_.AddDirectory("/x");
  kernel_.AddMount("nfs4", "nas:/srv", "/dead");
  kernel_.Hang("/dead");
  const std::string refused =
      Reclaim(HostPathVolume("v", "/x"), "c", {HostPathVolume("other", "/dead/pv")});
  EXPECT_TRUE(Has(refused, "persistent volume other")) << refused;
}

TEST_F(StorageGuardTest, ALookAtAnotherVolumeTakesAsLongAsIsSet) {
  kernel_.AddDirectory("/x");
  kernel_.AddMount("nfs4", "nas:/srv", "/dead");
  kernel_.Hang("/dead");
  kernel_.SetClock(&clock_);
  Duration given{};
  kernel_.SetHangHook(
      [&](const AnyRequest&, Deadline deadline) { given = deadline.Remaining(clock_); });
  guard_ = std::make_unique<StorageGuard>(
      kernel_, store_, clock_, logger_, BootId("boot-a"),
      StorageGuardSettings{.look = std::chrono::seconds(7), .short_look = std::chrono::seconds(2)});
  EXPECT_NE(Reclaim(HostPathVolume("v", "/x"), "c", {HostPathVolume("other", "/dead/pv")}), "");
  EXPECT_EQ(given, Duration(std::chrono::seconds(7)));
}

// Two disks came up at each other's place: a Recycle emptied the one that was on record as A's.
TEST_F(StorageGuardTest, ADiskThatIsMountedAtAnotherVolumesPathIsNotEmptiedForThatOne) {
  MakeDisk("/dev/sda", "uuid-a", "/d1");
  MakeDisk("/dev/sdb", "uuid-b", "/d2");
  const PersistentVolume a = HostPathVolume("a", "/d1");
  const PersistentVolume b = HostPathVolume("b", "/d2");
  ASSERT_EQ(RecordOf(a, "claim-a", true), "");
  kernel_.UnmountBelow("/d1");
  kernel_.UnmountBelow("/d2");
  MountDisk("/dev/sda", "/d2");
  MountDisk("/dev/sdb", "/d1");
  Restart("boot-b");
  const std::string set_up = RecordOf(b, "claim-b");
  EXPECT_TRUE(Has(set_up, "persistent volume b") &&
              Has(set_up, "on record as that of PersistentVolume a"))
      << set_up;
  const std::string refused = Reclaim(b, "claim-b", {a});
  EXPECT_TRUE(Has(refused, "persistent volume b") &&
              Has(refused, "on record as that of PersistentVolume a"))
      << refused;
  // A volume of which nothing is on record may have the other disk.
  EXPECT_EQ(RecordOf(HostPathVolume("c", "/d1"), "claim-c"), "");
  // Its data outlives the other volume, until this one is given it.
  ASSERT_TRUE(guard_->Forget("a").ok());
  EXPECT_TRUE(Has(Reclaim(b, "claim-b"), "the retained data of PersistentVolume a"));
  ASSERT_EQ(RecordOf(b, "claim-b"), "");
  EXPECT_EQ(Reclaim(b, "claim-b"), "");
}

TEST_F(StorageGuardTest, ADirectoryThatWasMovedIntoAnotherVolumesIsNotEmptiedWithThat) {
  kernel_.AddDirectory("/d2");
  kernel_.AddDirectory("/d1");
  const PersistentVolume a = HostPathVolume("a", "/d1");
  const PersistentVolume b = HostPathVolume("b", "/d2");
  ASSERT_EQ(RecordOf(a, "claim-a", true), "");
  const StorageObject object = guard_->Identify({"/d1"}, {}, {})->object;
  kernel_.Remove("/d2");
  kernel_.Rename("/d1", "d2");
  ASSERT_EQ(guard_->Identify({"/d2"}, {}, {})->object, object);
  EXPECT_TRUE(Has(Reclaim(b, "claim-b", {a}), "on record as that of PersistentVolume a"));
  EXPECT_TRUE(Has(RecordOf(b, "claim-b"), "on record as that of PersistentVolume a"));
  kernel_.AddDirectory("/x");
  EXPECT_EQ(Reclaim(HostPathVolume("x", "/x"), "claim-x", {a}), "") << "it is known to be no part";
  EXPECT_NE(Reclaim(HostPathVolume("all", "/"), "claim-y"), "");
}

TEST_F(StorageGuardTest, ADirectoryThatWasRemovedKeepsNothingElseFromBeingEmptied) {
  kernel_.AddDirectory("/d1");
  kernel_.AddDirectory("/x");
  const PersistentVolume a = HostPathVolume("a", "/d1");
  ASSERT_EQ(RecordOf(a, "claim-a", true), "");
  kernel_.Remove("/d1");
  EXPECT_EQ(Reclaim(HostPathVolume("x", "/x"), "claim-x", {a}), "");
}

TEST_F(StorageGuardTest, TwoVolumesThatNameOneDirectoryMayShareItUnderTwoPaths) {
  kernel_.AddDirectory("/d1");
  kernel_.AddSymlink("/link", "/d1");
  const PersistentVolume a = HostPathVolume("a", "/d1");
  ASSERT_EQ(RecordOf(a, "claim-a", true), "");
  EXPECT_EQ(RecordOf(HostPathVolume("same", "/d1"), "claim-b"), "");
  EXPECT_EQ(RecordOf(HostPathVolume("linked", "/link"), "claim-c"), "");
  EXPECT_NE(Reclaim(HostPathVolume("linked", "/link"), "claim-c", {a}), "");
}

// After a reboot no loop device is attached: a Recycle deleted the file of one, with the volume.
TEST_F(StorageGuardTest, TheFileOfADetachedLoopDeviceKeepsItsDirectoryFromBeingEmptied) {
  kernel_.AddDirectory("/out");
  kernel_.AddDirectory("/beside");
  kernel_.AddFile("/out/image", "");
  FakeDevice loop;
  loop.storage_file = "/out/image";
  kernel_.AddDevice("/dev/loop0", loop);
  ASSERT_EQ(UseDevice("disk", StorageUse::kShared, "/dev/loop0"), "");
  kernel_.Remove("/dev/loop0");
  Restart("boot-b");
  const PersistentVolume outer = HostPathVolume("outer", "/out");
  const std::string refused = Reclaim(outer, "claim-1");
  EXPECT_TRUE(Has(refused, "persistent volume outer") &&
              Has(refused, "on record as that of PersistentVolume disk"))
      << refused;
  EXPECT_EQ(Reclaim(HostPathVolume("beside", "/beside"), "claim-2", {outer}), "");
  // It is told wherever it is.
  kernel_.Rename("/out/image", "renamed");
  EXPECT_NE(Reclaim(outer, "claim-1"), "");
  ASSERT_TRUE(guard_->Release("reclaim/beside").ok());
  EXPECT_EQ(Reclaim(HostPathVolume("beside", "/beside"), "claim-2"), "");
  kernel_.Remove("/out/renamed");
  EXPECT_EQ(Reclaim(outer, "claim-1"), "");
}

TEST_F(StorageGuardTest, ADeviceThatIsNotThereAndHasNoFileKeepsNoDirectoryFromBeingEmptied) {
  kernel_.AddDirectory("/out");
  FakeDevice disk;
  disk.storage_own = {"wwid:1"};
  kernel_.AddDevice("/dev/sdb", disk);
  ASSERT_EQ(UseDevice("disk", StorageUse::kShared, "/dev/sdb"), "");
  kernel_.Remove("/dev/sdb");
  Restart("boot-b");
  EXPECT_EQ(Reclaim(HostPathVolume("outer", "/out"), "claim-1"), "");
}

// The agent ended amid a Recycle, the next try was refused, and the volume was retained and
// deleted.
TEST_F(StorageGuardTest, TheReservationOfAReclaimOutlivedItsVolumeUntilAReboot) {
  const PersistentVolume volume = HostPathVolume("v", "/data/v");
  const auto rows = [this] { return store_.Load(kStorageReservationRecordKind)->records.size(); };
  kernel_.AddDirectory("/data/v");
  Use(volume, "claim-1");
  ASSERT_EQ(Reclaim(volume, "claim-1"), "");
  Restart();
  EXPECT_TRUE(Has(Take(Pod("a"), "/data/v"), "whose content is being deleted"));
  // The worker of the agent before this one is at it still.
  kernel_.FailNext("Stat", Error::NotApplied(Code::kAborted, "it holds the key"), 2);
  ASSERT_TRUE(guard_->Forget("v").ok());
  EXPECT_TRUE(Has(Take(Pod("a"), "/data/v"), "whose content is being deleted"));
  EXPECT_EQ(rows(), 1u);
  EXPECT_EQ(Take(Pod("a"), "/data/v"), "");
  EXPECT_EQ(rows(), 0u);
  ASSERT_TRUE(guard_->Release("pod/a").ok());

  // An agent that ended between the two leaves the row to the next start.
  kernel_.AddDirectory("/data/w");
  ASSERT_EQ(Reclaim(HostPathVolume("w", "/data/w"), ""), "");
  Restart();
  ASSERT_TRUE(guard_->ForgetBut({"w"}).ok());
  EXPECT_NE(Take(Pod("a"), "/data/w"), "");
  ASSERT_TRUE(guard_->ForgetBut({}).ok());
  EXPECT_EQ(rows(), 0u);
  EXPECT_EQ(Take(Pod("a"), "/data/w"), "");
}

TEST_F(StorageGuardTest, AVolumeThatIsRetainedInsteadKeptWhatItsReclaimHadReserved) {
  const PersistentVolume volume = HostPathVolume("v", "/data/v");
  kernel_.AddDirectory("/data/v");
  Use(volume, "claim-1");
  ASSERT_EQ(Reclaim(volume, "claim-1"), "");
  Restart();
  EXPECT_TRUE(Has(Take(Pod("v", true), "/data/v"), "whose content is being deleted"));
  ASSERT_TRUE(guard_->EndReclaims("v").ok());
  EXPECT_EQ(Take(Pod("v", true), "/data/v"), "");
  EXPECT_TRUE(store_.Find(kStorageOwnerRecordKind, "v")) << "whose it is stays on record";
  EXPECT_FALSE(guard_->IsBeingReclaimed("reclaim/v", {"/data/v"}).value());
}

// No pod that was not set up yet was asked, and what it was to have was emptied.
TEST_F(StorageGuardTest, ALaterVolumeOfTheNameOfAnEndedReclaimCountedAsItsNextTry) {
  kernel_.AddDirectory("/data/v");
  ASSERT_EQ(Reclaim(HostPathVolume("v", "/data/v"), ""), "");
  Restart();
  EXPECT_TRUE(guard_->IsBeingReclaimed("reclaim/v", {"/data/v"}).value());
  kernel_.FailNext("Stat", Error::NotApplied(Code::kAborted, "it holds the key"));
  const Result<bool> other = guard_->IsBeingReclaimed("reclaim/v", {"/data/other"});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code(), Code::kAborted);
  EXPECT_TRUE(guard_->IsBeingReclaimed("reclaim/v", {"/data/v"}).value()) << "it keeps its row";
  EXPECT_FALSE(guard_->IsBeingReclaimed("reclaim/v", {"/data/other"}).value());
  EXPECT_EQ(Take(Pod("a"), "/data/v"), "") << "nobody is at that any more";
}

// The agent ended, its worker deleted on, and the row that kept others out could not be read.
TEST_F(StorageGuardTest, ADamagedReservationLetAPodIntoWhatAWorkerWasStillDeleting) {
  const PersistentVolume volume = HostPathVolume("v", "/data/v");
  kernel_.AddDirectory("/data/v");
  Use(volume, "claim-1");
  // With a bit of its key turned, and as it is, which no row is written over.
  for (const char* key : {"reclaim/w", "reclaim/v"}) {
    ASSERT_EQ(Reclaim(volume, "claim-1"), "");
    ASSERT_TRUE(guard_->Release("reclaim/v").ok());
    store_.Corrupt(kStorageReservationRecordKind, key, "its checksum is wrong");
    Restart();
    const auto at_work = [this](int times) {
      kernel_.FailNext("Stat", Error::NotApplied(Code::kAborted, "it holds the key"), times);
    };
    at_work(2);
    EXPECT_TRUE(Has(Take(Pod("a"), "/data/v"), "whose content is being deleted"));
    EXPECT_FALSE(guard_->IsBeingReclaimed("reclaim/v", {"/data/v"}).ok()) << "its next try waits";
    EXPECT_EQ(Take(Pod("a"), "/data/v"), "");
    EXPECT_FALSE(guard_->IsBeingReclaimed("reclaim/v", {"/data/v"}).value());
    ASSERT_TRUE(guard_->Release("pod/a").ok());
  }
}

// The count of the rows said that some are gone; the reservation may have been one.
TEST_F(StorageGuardTest, AReservationThatIsGoneLetAPodIntoWhatAWorkerWasStillDeleting) {
  const PersistentVolume volume = HostPathVolume("v", "/data/v");
  kernel_.AddDirectory("/data/v");
  kernel_.AddDirectory("/data/other");
  Use(volume, "claim-1");
  store_.Corrupt(kLostRowsRecordKind, kLostRowsKey, "some of the rows are gone");
  Restart();
  kernel_.FailNext("Stat", Error::NotApplied(Code::kAborted, "it holds the key"), 1);
  EXPECT_TRUE(Has(Take(Pod("a"), "/data/v"), "whose content is being deleted"));
  EXPECT_EQ(Take(Pod("b"), "/data/other"), "") << "it is no volume's";
  EXPECT_EQ(Take(Pod("a"), "/data/v"), "") << "no worker is at it";
}

}  // namespace
}  // namespace volumed
