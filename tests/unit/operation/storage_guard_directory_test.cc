// Which directory is a persistent volume's, and whose mark it bears.
#include "operation/storage_guard.h"

#include <gtest/gtest.h>

#include "os/storage_identity.h"
#include "unit/operation/storage_guard_fixture.h"

namespace volumed {
namespace {

TEST_F(StorageGuardTest, APodIsNotGivenTheMountPointBelowADiskThatIsNotMounted) {
  const PersistentVolume volume = HostPathVolume("v", "/mnt/d1");
  MakeDisk("/dev/sdb", "uuid-1", "/mnt/d1");
  ASSERT_EQ(SetUpLocal(volume, "claim-1"), "");
  ASSERT_TRUE(kernel_.Call(Unmount{{"/mnt/d1", ""}}, {}).ok());
  for (const char* boot : {"boot-a", "boot-a", "boot-b"}) {
    Restart(boot);
    const std::string refused = SetUpLocal(volume, "claim-1");
    EXPECT_TRUE(Has(refused, "/mnt/d1 is another directory")) << refused;
    EXPECT_TRUE(Has(refused, "uuid-1")) << refused;
    EXPECT_TRUE(Has(refused, "volumectl accept pv v")) << refused;
  }
  EXPECT_EQ(RecordOf(volume, "claim-1", true), "") << "a hostPath's is its administrator's";
  EXPECT_TRUE(Has(SetUpLocal(volume, "claim-1"), "another directory")) << "nor does it count then";
  MountDisk("/dev/sdb", "/mnt/d1");
  EXPECT_EQ(SetUpLocal(volume, "claim-1"), "");
}

TEST_F(StorageGuardTest, AnotherDirectoryIsAVolumesOnceItIsAccepted) {
  const PersistentVolume volume = HostPathVolume("v", "/mnt/d1");
  EXPECT_TRUE(Has(Accept(volume), "on record: there is nothing to accept"));
  MakeDisk("/dev/sdb", "uuid-1", "/mnt/d1");
  ASSERT_EQ(SetUpLocal(volume, "claim-1"), "");
  EXPECT_EQ(guard_->AcceptDirectory("v", {})->now, guard_->AcceptDirectory("v", {})->before);
  ASSERT_TRUE(kernel_.Call(Unmount{{"/mnt/d1", ""}}, {}).ok());
  ASSERT_NE(SetUpLocal(volume, "claim-1"), "");
  const auto accepted = guard_->AcceptDirectory("v", {});
  ASSERT_TRUE(accepted.ok()) << accepted.error().message();
  EXPECT_TRUE(Has(accepted->before, "uuid-1")) << accepted->before;
  EXPECT_NE(accepted->now, accepted->before);
  Restart();
  EXPECT_EQ(SetUpLocal(volume, "claim-1"), "");
  MountDisk("/dev/sdb", "/mnt/d1");
  EXPECT_NE(SetUpLocal(volume, "claim-1"), "") << "now it is the disk that is another one";
}

TEST_F(StorageGuardTest, ADirectoryOfAnotherClaimIsNotAccepted) {
  const PersistentVolume one = HostPathVolume("one", "/mnt/d1");
  const PersistentVolume two = HostPathVolume("two", "/mnt/d2");
  MakeDisk("/dev/sdb", "uuid-1", "/mnt/d1");
  MakeDisk("/dev/sdc", "uuid-2", "/mnt/d2");
  ASSERT_EQ(SetUpLocal(one, "claim-1"), "");
  ASSERT_EQ(SetUpLocal(two, "claim-2"), "");
  ASSERT_TRUE(kernel_.Call(Unmount{{"/mnt/d1", ""}}, {}).ok());
  ASSERT_TRUE(kernel_.Call(Unmount{{"/mnt/d2", ""}}, {}).ok());
  MountDisk("/dev/sdc", "/mnt/d1");
  EXPECT_TRUE(Has(Accept(one), "on record as that of PersistentVolume two"));
}

TEST_F(StorageGuardTest, AVolumeThatWasGivenAnewMayHaveAnotherDirectory) {
  const PersistentVolume volume = HostPathVolume("v", "/mnt/d1");
  MakeDisk("/dev/sdb", "uuid-1", "/mnt/d1");
  ASSERT_EQ(SetUpLocal(volume, "claim-1"), "");
  ASSERT_TRUE(kernel_.Call(Unmount{{"/mnt/d1", ""}}, {}).ok());
  ASSERT_NE(SetUpLocal(volume, "claim-1"), "");
  EXPECT_EQ(SetUpLocal(volume, "claim-2"), "") << "the claim is another one";
  MountDisk("/dev/sdb", "/mnt/d1");
  ASSERT_NE(SetUpLocal(volume, "claim-2"), "");
  ASSERT_TRUE(guard_->Forget("v").ok());
  EXPECT_EQ(SetUpLocal(volume, "claim-2"), "") << "the volume is another one";
}

TEST_F(StorageGuardTest, AClaimThatHadADiskIsNotGivenADirectory) {
  const PersistentVolume volume = HostPathVolume("v", "/srv/disk");
  AddDisk({"/srv/disk"}, "wwid:1");
  ASSERT_EQ(SetUpLocal(volume, "claim-1"), "");
  kernel_.Remove("/srv/disk");
  kernel_.AddDirectory("/srv/disk");
  Restart();
  const std::string refused = SetUpLocal(volume, "claim-1");
  EXPECT_TRUE(Has(refused, "it is no block device (it was a block device")) << refused;
  EXPECT_TRUE(Has(refused, "volumectl accept pv v")) << refused;
  ASSERT_EQ(Accept(volume), "");
  EXPECT_EQ(SetUpLocal(volume, "claim-1"), "");
  kernel_.Remove("/srv/disk");
  AddDisk({"/srv/disk"}, "wwid:1");
  EXPECT_TRUE(Has(SetUpLocal(volume, "claim-1"), "it is no directory"));
  ASSERT_EQ(Accept(volume), "");
  EXPECT_EQ(SetUpLocal(volume, "claim-1"), "");
  EXPECT_TRUE(Has(Accept(volume), "a disk is known by the UUID of its filesystem"));
}

TEST_F(StorageGuardTest, TheRetainedDataOfAVolumeThatIsNoMoreIsNotEmptiedWithTheOneAroundIt) {
  const PersistentVolume outer = HostPathVolume("outer", "/x");
  const PersistentVolume inner = HostPathVolume("inner", "/x/sub");
  kernel_.AddDirectory("/x");
  kernel_.AddDirectory("/x/sub");
  Use(outer, "claim-1");
  ASSERT_EQ(RecordOf(inner, "claim-2", true), "");
  ASSERT_TRUE(guard_->Forget("inner").ok());
  const std::string refused = Reclaim(outer, "claim-1");
  EXPECT_TRUE(Has(refused, "the retained data of PersistentVolume inner, which is no more"))
      << refused;
  Restart();
  ASSERT_TRUE(guard_->ForgetBut({"outer"}).ok());
  EXPECT_NE(Reclaim(outer, "claim-1"), "") << "nor after a restart";
  kernel_.Remove("/x/sub");
  EXPECT_EQ(Reclaim(outer, "claim-1"), "") << "it is gone";
}

TEST_F(StorageGuardTest, ADamagedRecordOfAnotherVolumesStorageCountedAsNone) {
  const PersistentVolume outer = HostPathVolume("outer", "/x");
  const PersistentVolume inner = HostPathVolume("inner", "/x/sub");
  kernel_.AddDirectory("/x");
  kernel_.AddDirectory("/x/sub");
  Use(outer, "claim-1");
  ASSERT_EQ(RecordOf(inner, "claim-2", true), "");
  ASSERT_TRUE(guard_->Forget("inner").ok());
  store_.Corrupt(kStorageOwnerRecordKind, "retained/inner/1", "its checksum is wrong");
  Restart();
  const std::string refused = Reclaim(outer, "claim-1");
  EXPECT_TRUE(Has(refused, "cannot be read for retained/inner/1 (its checksum is wrong)"))
      << refused;
  EXPECT_TRUE(Has(refused, "volumectl records accept")) << refused;
}

// The row of a newer program was overwritten: a pod got the directory that somebody had put in the
// place of its own, and a Recycle emptied that one.
TEST_F(StorageGuardTest, ARowOfANewerProgramOrOfWhichAPartIsGoneCountedAsNoOwner) {
  for (const std::string name : {"newer", "cut"}) {
    const PersistentVolume volume = HostPathVolume(name, "/" + name);
    kernel_.AddDirectory("/" + name);
    ASSERT_EQ(SetUpLocal(volume, "claim-1"), "");
    Record row = store_.Find(kStorageOwnerRecordKind, name).value();
    if (name == "newer") row.version = kStorageRecordVersion + 8;
    if (name == "cut") row.bytes.pop_back();
    ASSERT_TRUE(store_.Put(row, kStorageRecordDurability).ok());
    Restart();
    const std::string untold = "whose the storage of persistent volume " + name + " is cannot";
    const std::string refused = SetUpLocal(volume, "claim-1");
    EXPECT_TRUE(Has(refused, untold)) << refused;
    EXPECT_TRUE(Has(refused, row.kind + " \"" + name + "\"")) << refused;
    EXPECT_TRUE(Has(Accept(volume), untold));
    EXPECT_TRUE(Has(Reclaim(volume, "claim-1"), untold));
    EXPECT_TRUE(guard_->Forget(name).ok());
    EXPECT_EQ(store_.Find(row.kind, name), row) << "a newer program finds it again";
  }
  kernel_.AddDirectory("/other");
  EXPECT_EQ(SetUpLocal(HostPathVolume("other", "/other"), "claim-2"), "");
}

// One bit turned in the key of a row: its volume had none, and its claim's pod was given the
// directory that stood in the place of its own.
TEST_F(StorageGuardTest, ADamagedRowOfAVolumeThatNoClaimHasMayBeAnyClaims) {
  for (const std::string name : {"data", "other", "third"}) {
    kernel_.AddDirectory("/" + name);
    ClaimBindingRecord bound;
    bound.binding.volume_name = name;
    ASSERT_TRUE(store_.Put(EncodeRecord(bound), kStorageRecordDurability).ok());
    if (name == "third") continue;  // it was never used
    ASSERT_EQ(SetUpLocal(HostPathVolume(name, "/" + name), "claim-" + name), "");
  }
  ASSERT_TRUE(store_.Remove(kStorageOwnerRecordKind, "data", kStorageRecordDurability).ok());
  store_.Corrupt(kStorageOwnerRecordKind, "dat`", "its checksum is wrong");
  Restart();
  const PersistentVolume data = HostPathVolume("data", "/data");
  const std::string refused = SetUpLocal(data, "claim-data");
  EXPECT_TRUE(Has(refused, "storage of persistent volume data is cannot be told")) << refused;
  EXPECT_TRUE(Has(refused, "storage-owner \"dat`\" may be its own")) << refused;
  EXPECT_EQ(store_.Find(kStorageOwnerRecordKind, "data"), std::nullopt);
  EXPECT_TRUE(Has(Reclaim(data, "claim-data"), "cannot be told"));
  EXPECT_EQ(SetUpLocal(HostPathVolume("other", "/other"), "claim-other"), "") << "it has its row";
  kernel_.AddDirectory("/new");
  EXPECT_EQ(SetUpLocal(HostPathVolume("new", "/new"), "claim-new"), "") << "no claim had it";
}

TEST_F(StorageGuardTest, ADamagedRowOfAClaimsVolumeIsThatOnesAlone) {
  for (const std::string name : {"data", "other"}) {
    kernel_.AddDirectory("/" + name);
    ClaimBindingRecord bound;
    bound.binding.volume_name = name;
    ASSERT_TRUE(store_.Put(EncodeRecord(bound), kStorageRecordDurability).ok());
  }
  store_.Corrupt(kStorageOwnerRecordKind, "data", "its checksum is wrong");
  Restart();
  EXPECT_TRUE(Has(SetUpLocal(HostPathVolume("data", "/data"), "claim-1"), "cannot be told"));
  EXPECT_EQ(SetUpLocal(HostPathVolume("other", "/other"), "claim-2"), "");
}

TEST_F(StorageGuardTest, ADiskWhoseRowIsOfANewerProgramIsNotHandedOutOrFormatted) {
  AddDisk({"/dev/sda"}, "wwn:1");
  AddDisk({"/dev/sdb"}, "wwn:2");
  ASSERT_EQ(UseDevice("v", StorageUse::kRaw, "/dev/sda"), "");
  Record row = store_.Find(kStorageOwnerRecordKind, "v").value();
  row.version = kDriverStorageRecordVersion + 1;
  ASSERT_TRUE(store_.Put(row, kStorageRecordDurability).ok());
  Restart();
  for (const StorageUse use : {StorageUse::kRaw, StorageUse::kFormat, StorageUse::kMounted}) {
    EXPECT_TRUE(Has(Take(Device("v", use), "/dev/sdb"), "cannot be told"));
  }
  EXPECT_FALSE(guard_->Has("device/p/v", StorageUse::kRaw));
  EXPECT_EQ(store_.Find(kStorageOwnerRecordKind, "v"), row);
  EXPECT_EQ(UseDevice("w", StorageUse::kRaw, "/dev/sdb"), "") << "of another volume";
}

TEST_F(StorageGuardTest, RetainedDataThatAnotherVolumeIsGivenIsThatOnes) {
  const PersistentVolume one = HostPathVolume("one", "/x");
  const PersistentVolume two = HostPathVolume("two", "/x");
  MakeDisk("/dev/sdb", "uuid-1", "/x");
  ASSERT_EQ(RecordOf(one, "claim-1", true), "");
  ASSERT_TRUE(guard_->Forget("one").ok());
  EXPECT_NE(Reclaim(two, "claim-2"), "") << "it was never used";
  Use(two, "claim-2");
  EXPECT_EQ(Reclaim(two, "claim-2"), "");
}

TEST_F(StorageGuardTest, RetainedDataStaysOnRecordWhenAVolumeOfItsNameLiesElsewhere) {
  const PersistentVolume outer = HostPathVolume("outer", "/x");
  kernel_.AddDirectory("/x");
  for (const char* path : {"/x/one", "/x/two", "/y"}) {
    kernel_.AddDirectory(path);
    ASSERT_EQ(RecordOf(HostPathVolume("v", path), "claim-2", true), "");
    ASSERT_TRUE(guard_->Forget("v").ok());
  }
  Use(outer, "claim-1");
  Restart();
  EXPECT_TRUE(Has(Reclaim(outer, "claim-1"), "(/x/one)"));
  kernel_.Remove("/x/one");
  EXPECT_TRUE(Has(Reclaim(outer, "claim-1"), "(/x/two)"));
  kernel_.Remove("/x/two");
  EXPECT_EQ(Reclaim(outer, "claim-1"), "");
}

TEST_F(StorageGuardTest, ADirectoryOnFuseIsKnownByTypeAndUuidAlone) {
  const StorageObject before{"fuse.sshfs", "", 2, "1:aa"};
  const StorageObject now{"fuse.sshfs", "", 3, "1:bb"};
  EXPECT_EQ(StorageDifference(before, now), "");
  EXPECT_EQ(LastingDifference(before, now), "");
  EXPECT_FALSE(IsSameObject(before, before));
  EXPECT_NE(StorageDifference(before, {"ext4", "", 2, "1:aa"}), "");
}

TEST_F(StorageGuardTest, ADirectoryInMemoryIsNotComparedOverAReboot) {
  StorageObject memory{"tmpfs", "uuid-1", 2, "1:aa"};
  StorageObject again{"tmpfs", "uuid-2", 3, "1:bb"};
  EXPECT_NE(StorageDifference(memory, again), "");
  EXPECT_EQ(LastingDifference(memory, again), "");
  EXPECT_NE(LastingDifference(memory, {"ext4", "uuid-1", 2, "1:aa"}), "");
  const StorageObject disk{"ext4", "uuid-1", 2, "1:aa"};
  EXPECT_NE(LastingDifference(disk, {"ext4", "uuid-1", 3, "1:bb"}), "");
  EXPECT_NE(LastingDifference(disk, {"ext4", "uuid-2", 2, "1:aa"}), "");
}

TEST_F(StorageGuardTest, StorageIsMarkedBeforeItsFirstUseAndNotEmptiedForAnother) {
  kernel_.AddDirectory("/x");
  const PersistentVolume volume = HostPathVolume("v", "/x");
  Use(volume, "claim-1");
  EXPECT_EQ(OwnerOf("/x"), "claim-1");
  // The records are older than the world: there another claim has had it since.
  ASSERT_TRUE(kernel_
                  .Call(MarkStorage{HostPath("/x"), "claim-2", "claim-1",
                                    guard_->Identify({"/x"}, FindUsers::kNo, {})->object},
                        {})
                  .ok());
  const std::string refused = Reclaim(volume, "claim-1");
  EXPECT_TRUE(Has(refused, "claim-2")) << refused;
  EXPECT_TRUE(Has(refused, "claim-1")) << refused;
  Use(volume, "claim-1");
  EXPECT_EQ(OwnerOf("/x"), "claim-2") << "another's mark is never written over";
}

TEST_F(StorageGuardTest, AnEmptiedVolumeLosesItsMarkAndTheNextClaimGetsItsOwn) {
  kernel_.AddDirectory("/x");
  const PersistentVolume volume = HostPathVolume("v", "/x");
  Use(volume, "claim-1");
  ASSERT_EQ(Reclaim(volume, "claim-1"), "");
  const auto approved = guard_->Identify(NameOf(volume), FindUsers::kNo, {});
  ASSERT_TRUE(guard_->Reclaimed("v", NameOf(volume), *approved, false, {}).ok());
  ASSERT_TRUE(guard_->Release("reclaim/v").ok());
  EXPECT_EQ(OwnerOf("/x"), "");
  Restart();
  Use(volume, "claim-2");
  EXPECT_EQ(OwnerOf("/x"), "claim-2");
}

TEST_F(StorageGuardTest, ARetainedVolumeThatIsGivenAnewGetsTheMarkOfItsNewClaim) {
  kernel_.AddDirectory("/x");
  const PersistentVolume volume = HostPathVolume("v", "/x");
  Use(volume, "claim-1");
  Restart();
  Use(volume, "claim-2");
  EXPECT_EQ(OwnerOf("/x"), "claim-2");
  EXPECT_EQ(Reclaim(volume, "claim-2"), "");
}

// What the worker had deleted counted as a disk that was not mounted, and the volume stayed Failed.
TEST_F(StorageGuardTest, ADeleteThatWasInterruptedWithoutAUuidWasNeverDone) {
  MakeDisk("/dev/sdb", "", "/data");
  kernel_.AddDirectory("/data/v");
  const PersistentVolume volume = HostPathVolume("v", "/data/v");
  Use(volume, "claim-1");
  ASSERT_EQ(Reclaim(volume, "claim-1"), "");
  Restart();
  kernel_.Remove("/data/v");
  EXPECT_EQ(Reclaim(volume, "claim-1"), "");
  Restart();
  EXPECT_EQ(Reclaim(volume, "claim-1"), "") << "nor does the second try forget what was taken";
}

TEST_F(StorageGuardTest, ADeleteThatWasInterruptedIsNotDoneOnceItsDiskHasLeft) {
  MakeDisk("/dev/sdb", "", "/data");
  kernel_.AddDirectory("/data/v");
  const PersistentVolume volume = HostPathVolume("v", "/data/v");
  Use(volume, "claim-1");
  ASSERT_EQ(Reclaim(volume, "claim-1"), "");
  Restart();
  kernel_.UnmountBelow("/data");
  EXPECT_NE(Reclaim(volume, "claim-1"), "") << "nothing is there";
  MakeDisk("/dev/sdc", "", "/data");
  EXPECT_TRUE(Has(Reclaim(volume, "claim-1"), "whether its disk is mounted"));
  kernel_.UnmountBelow("/data");
  MountDisk("/dev/sdb", "/data");
  EXPECT_EQ(Reclaim(volume, "claim-1"), "") << "it is there again";
  kernel_.Remove("/data/v");
  Restart("boot-b");
  EXPECT_TRUE(Has(Reclaim(volume, "claim-1"), "whether its disk is mounted"))
      << "a disk has another number after a reboot";
}

// No pod had used it, so that nothing else told of its directory.
TEST_F(StorageGuardTest, WhatCameToThePlaceOfAnInterruptedDeleteWasDeletedToo) {
  kernel_.AddDirectory("/data/v");
  const PersistentVolume volume = HostPathVolume("v", "/data/v");
  ASSERT_EQ(Reclaim(volume, "claim-1"), "");
  Restart();
  EXPECT_EQ(Reclaim(volume, "claim-1"), "") << "it is the one that was taken";
  kernel_.Remove("/data/v");
  kernel_.AddDirectory("/data/v");
  EXPECT_TRUE(Has(Reclaim(volume, "claim-1"), "than the one whose deletion was begun"));
}

}  // namespace
}  // namespace volumed
