// What one storage is, who has it, and whose it is, before anything of it is deleted.
#include "operation/storage_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_kernel.h"
#include "fakes/memory_record_store.h"
#include "mounter/host_directory.h"
#include "operation/storage_steps.h"
#include "unit/operation/recording_parts.h"

namespace volumed {
namespace {

PersistentVolume HostPathVolume(const std::string& name, const std::string& path) {
  PersistentVolume volume;
  volume.metadata.name = name;
  volume.spec.source = HostPathVolumeSource{path, HostPathType::kUnset};
  return volume;
}

class StorageGuardTest : public ::testing::Test {
 protected:
  StorageGuardTest() { Restart(); }
  void Restart(const std::string& boot = "boot-a") {
    guard_ = std::make_unique<StorageGuard>(kernel_, store_, clock_, logger_, BootId(boot));
    guard_->AddOwnDirectory("the agent's root", "/var/lib/volumed");
  }
  static StorageHolder Pod(const std::string& name, bool persistent = false) {
    StorageHolder holder;
    holder.id = "pod/" + name;
    holder.volume = persistent ? name : holder.id;
    holder.use = StorageUse::kShared;
    holder.persistent = persistent;
    holder.text = "volume " + name;
    return holder;
  }
  static StorageHolder Device(const std::string& volume, StorageUse use) {
    return DeviceStorageHolder(UniqueVolumeName("p/" + volume), SpecName(volume), use);
  }
  // One storage that has a device at each of these paths.
  void AddDisk(const std::vector<std::string>& paths, const std::string& key) {
    FakeDevice disk;
    disk.storage_own = {key};
    for (const std::string& path : paths) kernel_.AddDevice(path, disk);
  }
  std::string Take(const StorageHolder& holder, const std::string& path) {
    return Text(guard_->Take(holder, {path}, {}));
  }
  // "" when nothing is in the way.
  std::string Reclaim(const PersistentVolume& volume, const std::string& claim,
                      const std::vector<PersistentVolume>& others = {}) {
    std::vector<std::shared_ptr<const PersistentVolume>> known;
    for (const PersistentVolume& other : others) {
      known.push_back(std::make_shared<const PersistentVolume>(other));
    }
    const Status taken = guard_->TakeForReclaim(ReclaimStorageHolder(volume), NameOf(volume), claim,
                                                StorageOf(known), {});
    return taken.ok() ? "" : taken.error().message();
  }
  static StorageName NameOf(const PersistentVolume& volume) {
    return *StorageNameOf(VolumeSpec::FromPersistentVolume(volume, false));
  }
  void Use(const PersistentVolume& volume, const std::string& claim) {
    const StorageName name = NameOf(volume);
    const auto identity = guard_->Identify(name, FindUsers::kNo, {});
    ASSERT_TRUE(identity.ok());
    ASSERT_TRUE(guard_->RecordOwner({volume.metadata.name, name, claim, true}, *identity, {}).ok());
  }
  std::string OwnerOf(const std::string& path) {
    return guard_->Identify({path}, FindUsers::kNo, {}).value().owner;
  }
  template <typename T>
  static std::string Text(const Result<T>& result) {
    return result.ok() ? "" : result.error().message();
  }
  // What can be reclaimed is marked; what is retained has its record alone.
  std::string RecordOf(const PersistentVolume& volume, const std::string& claim,
                       bool retained = false) {
    const StorageName name = NameOf(volume);
    const auto identity = guard_->Identify(name, {}, {});
    if (!identity.ok()) return identity.error().message();
    const Status recorded =
        guard_->RecordOwner({volume.metadata.name, name, claim, !retained}, *identity, {});
    return recorded.ok() ? "" : recorded.error().message();
  }
  void MakeDisk(const std::string& node, const std::string& uuid, const std::string& mounted_at) {
    FakeDevice disk;
    disk.fs_type = "ext4";
    disk.usage = "filesystem";
    kernel_.AddDevice(node, disk);
    kernel_.ChangeDevice(node, [&](FakeDevice& device) { device.identity.uuid = uuid; });
    kernel_.AddDirectory(mounted_at);
    MountDisk(node, mounted_at);
  }
  void MountDisk(const std::string& node, const std::string& at) {
    ASSERT_TRUE(kernel_.Call(Mount{"ext4", node, {at, ""}, {}}, {}).ok());
  }
  // The agent before this one had it.
  void Expect(const StorageHolder& holder, const std::string& path) {
    guard_->Expect(BootId("boot-a"), {holder, {path}});
  }
  // As a pod with a local volume is set up: "" if it may have what is at the path.
  std::string SetUpLocal(const PersistentVolume& volume, const std::string& claim) {
    const StorageName name = NameOf(volume);
    const auto identity = guard_->Identify(name, {}, {});
    if (!identity.ok()) return identity.error().message();
    StorageOwner owner{volume.metadata.name, name, claim, false, true};
    const Status recorded = guard_->RecordOwner(owner, *identity, {});
    return recorded.ok() ? "" : recorded.error().message();
  }
  std::string Accept(const PersistentVolume& volume) {
    return Text(guard_->AcceptDirectory(volume.metadata.name, {}));
  }
  // A pod has had the device, and has left.
  std::string UseDevice(const std::string& volume, StorageUse use, const std::string& path) {
    const std::string refused = Take(Device(volume, use), path);
    if (!refused.empty()) return refused;
    EXPECT_TRUE(guard_->RecordDevice("device/p/" + volume, {path}, CallOptions{}).ok());
    EXPECT_TRUE(guard_->Release("device/p/" + volume).ok());
    return "";
  }
  std::string Format(const std::string& volume, const std::string& path) {
    const std::string refused = Take(Device(volume, StorageUse::kShared), path);
    if (!refused.empty()) return refused;
    const Status formats = guard_->Change("device/p/" + volume, StorageUse::kFormat);
    EXPECT_FALSE(!formats.ok() && guard_->Has("device/p/" + volume, StorageUse::kFormat));
    EXPECT_TRUE(guard_->Release("device/p/" + volume).ok());
    return formats.ok() ? "" : formats.error().message();
  }
  static bool Has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  ManualClock clock_;
  LogLines log_;
  Logger logger_{log_.Options(), clock_};
  FakeKernel kernel_;
  MemoryRecordStore store_;
  std::unique_ptr<StorageGuard> guard_;
};

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
  EXPECT_EQ(accepted->before.fs_uuid, "uuid-1");
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
  ASSERT_TRUE(guard_->Reclaimed("v", NameOf(volume), false, {}).ok());
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

TEST_F(StorageGuardTest, ADiskThatAPodHasRawIsNobodyElses) {
  FakeDevice disk;
  disk.storage_own = {"wwid:1"};
  kernel_.AddDevice("/dev/sdb", disk);
  kernel_.AddDevice("/dev/sdc", disk);  // another path to it
  FakeDevice part;
  part.storage_within = {"wwid:1"};
  kernel_.AddDevice("/dev/sdb1", part);
  EXPECT_EQ(Take(Device("raw", StorageUse::kRaw), "/dev/sdb"), "");
  EXPECT_EQ(Take(Device("raw", StorageUse::kRaw), "/dev/sdb"), "") << "the same volume's next pod";
  const std::string refused = Take(Device("two", StorageUse::kMounted), "/dev/sdc");
  EXPECT_TRUE(Has(refused, "persistent volume two") && Has(refused, "persistent volume raw"))
      << refused;
  EXPECT_NE(Take(Device("two", StorageUse::kMounted), "/dev/sdb1"), "");
  EXPECT_NE(Take(Device("two", StorageUse::kRaw), "/dev/sdb"), "");
  EXPECT_NE(Take(Device("two", StorageUse::kFormat), "/dev/sdc"), "");
  ASSERT_TRUE(guard_->Release("device/p/raw").ok());
  EXPECT_EQ(Take(Device("two", StorageUse::kMounted), "/dev/sdc"), "");
}

TEST_F(StorageGuardTest, TwoVolumesOfOneDiskShareItsFilesystemAndNoneIsFormattedMeanwhile) {
  AddDisk({"/dev/sdb"}, "wwid:1");
  EXPECT_EQ(Take(Device("one", StorageUse::kMounted), "/dev/sdb"), "");
  EXPECT_EQ(Take(Device("two", StorageUse::kMounted), "/dev/sdb"), "");
  EXPECT_FALSE(guard_->Change("device/p/two", StorageUse::kFormat).ok());
  EXPECT_NE(Take(Device("raw", StorageUse::kRaw), "/dev/sdb"), "");
  ASSERT_TRUE(guard_->Release("device/p/one").ok());
  EXPECT_TRUE(guard_->Change("device/p/two", StorageUse::kFormat).ok());
  EXPECT_NE(Take(Device("one", StorageUse::kMounted), "/dev/sdb"), "");
  EXPECT_TRUE(guard_->Change("device/p/two", StorageUse::kMounted).ok());
  EXPECT_EQ(Take(Device("one", StorageUse::kMounted), "/dev/sdb"), "");
}

// Two superblocks over one storage have ruined the filesystem.
TEST_F(StorageGuardTest, TwoDevicesOfOneStorageAreNotMountedAtTheSameTime) {
  AddDisk({"/dev/sdb", "/dev/sdc"}, "wwid:1");
  EXPECT_EQ(Take(Device("one", StorageUse::kMounted), "/dev/sdb"), "");
  const std::string refused = Take(Device("two", StorageUse::kMounted), "/dev/sdc");
  EXPECT_TRUE(Has(refused, "persistent volume one") && Has(refused, "persistent volume two"))
      << refused;
  EXPECT_EQ(Take(Device("one", StorageUse::kMounted), "/dev/sdb"), "") << "its own next pod";
  ASSERT_TRUE(guard_->Release("device/p/one").ok());
  EXPECT_EQ(Take(Device("two", StorageUse::kMounted), "/dev/sdc"), "");
  EXPECT_NE(Take(Device("one", StorageUse::kMounted), "/dev/sdb"), "");
}

TEST_F(StorageGuardTest, PartitionsOfADiskAreMountedBesideEachOtherAndNotBesideTheDisk) {
  AddDisk({"/dev/sdb"}, "wwid:1");
  for (const char* start : {"1", "2"}) {
    FakeDevice part;
    part.storage_own = {std::string("wwid:1:") + start};
    part.storage_within = {"wwid:1"};
    kernel_.AddDevice(std::string("/dev/sdb") + start, part);
  }
  FakeDevice holder;
  holder.storage_within = {"wwid:1:1", "wwid:1"};
  kernel_.AddDevice("/dev/dm-0", holder);
  EXPECT_EQ(Take(Device("one", StorageUse::kMounted), "/dev/sdb1"), "");
  EXPECT_EQ(Take(Device("two", StorageUse::kMounted), "/dev/sdb2"), "");
  EXPECT_NE(Take(Device("all", StorageUse::kMounted), "/dev/sdb"), "");
  EXPECT_NE(Take(Device("dm", StorageUse::kMounted), "/dev/dm-0"), "");
  ASSERT_TRUE(guard_->Release("device/p/one").ok());
  ASSERT_TRUE(guard_->Release("device/p/two").ok());
  EXPECT_EQ(Take(Device("all", StorageUse::kMounted), "/dev/sdb"), "");
  EXPECT_NE(Take(Device("two", StorageUse::kMounted), "/dev/sdb2"), "");
}

TEST_F(StorageGuardTest, ADiskWhoseTwinSomebodyOutsideHasIsNotMounted) {
  FakeDevice disk;
  disk.storage_own = {"ino:1:2"};
  disk.claimed = true;  // mounted by its administrator
  kernel_.AddDevice("/dev/loop0", disk);
  EXPECT_EQ(Take(Device("own", StorageUse::kMounted), "/dev/loop0"), "")
      << "one device has one superblock, wherever it is mounted";
  ASSERT_TRUE(guard_->Release("device/p/own").ok());
  disk.claimed = false;
  kernel_.AddDevice("/dev/loop1", disk);
  const std::string refused = Take(Device("twin", StorageUse::kMounted), "/dev/loop1");
  EXPECT_TRUE(Has(refused, "persistent volume twin") && Has(refused, "/dev/loop0")) << refused;
  kernel_.ChangeDevice("/dev/loop0", [](FakeDevice& device) { device.claimed = false; });
  EXPECT_EQ(Take(Device("twin", StorageUse::kMounted), "/dev/loop1"), "");
  // What is mounted stays so, whatever others do.
  kernel_.ChangeDevice("/dev/loop0", [](FakeDevice& device) { device.claimed = true; });
  EXPECT_EQ(Take(Device("twin", StorageUse::kMounted), "/dev/loop1"), "");
}

TEST_F(StorageGuardTest, WhatTheAgentBeforeHadMountedIsNamedToItsTwinAfterARestart) {
  AddDisk({"/dev/loop0", "/dev/loop1"}, "ino:1:2");
  guard_->Expect(BootId("boot-a"), {Device("one", StorageUse::kMounted), {"/dev/loop0"}});
  const std::string refused = Take(Device("two", StorageUse::kMounted), "/dev/loop1");
  EXPECT_TRUE(Has(refused, "persistent volume one")) << refused;
  EXPECT_EQ(Take(Device("three", StorageUse::kMounted), "/dev/loop0"), "");
}

TEST_F(StorageGuardTest, ADiskThatSomebodyOutsideHasIsNotHandedOutRaw) {
  FakeDevice disk;
  disk.storage_own = {"ino:1:2"};
  kernel_.AddDevice("/dev/loop0", disk);
  disk.claimed = true;
  kernel_.AddDevice("/dev/loop1", disk);  // on the same file, and mounted somewhere
  EXPECT_TRUE(Has(Take(Device("raw", StorageUse::kRaw), "/dev/loop0"), "/dev/loop1"));
  kernel_.ChangeDevice("/dev/loop1", [](FakeDevice& device) { device.claimed = false; });
  EXPECT_EQ(Take(Device("raw", StorageUse::kRaw), "/dev/loop0"), "");
  // What the pod does with its device is its own affair.
  kernel_.ChangeDevice("/dev/loop0", [](FakeDevice& device) { device.claimed = true; });
  EXPECT_EQ(Take(Device("raw", StorageUse::kRaw), "/dev/loop0"), "");
}

TEST_F(StorageGuardTest, WhatTheAgentBeforeHadHandedOutIsKnownAfterARestart) {
  kernel_.AddDevice("/dev/sdb");
  guard_->Expect(BootId("boot-a"), {Device("raw", StorageUse::kRaw), {"/dev/sdb"}});
  EXPECT_NE(Take(Device("two", StorageUse::kMounted), "/dev/sdb"), "");
  Restart();
  guard_->Expect(BootId("another boot"), {Device("raw", StorageUse::kRaw), {"/dev/sdb"}});
  EXPECT_EQ(Take(Device("two", StorageUse::kMounted), "/dev/sdb"), "");
}

TEST_F(StorageGuardTest, WhoeverTakesItWhileAnotherStillLooksIsSeenByThatOne) {
  kernel_.AddDevice("/dev/sdb");
  std::string second = "not asked";
  bool looking = false;
  kernel_.SetCallHook([&](const AnyRequest& request) {
    if (looking || !std::holds_alternative<IdentifyStorage>(request)) return;
    looking = true;
    second = Take(Device("two", StorageUse::kRaw), "/dev/sdb");
  });
  const std::string first = Take(Device("one", StorageUse::kRaw), "/dev/sdb");
  EXPECT_EQ(second, "");
  EXPECT_TRUE(Has(first, "persistent volume two")) << first;
}

// After a reboot nothing of a pod is set up, and a power loss may have taken its volume's record.
TEST_F(StorageGuardTest, WhatAPodHasOfItsOwnIsNotEmptiedBeforeItIsSetUpAgain) {
  kernel_.AddDirectory("/x/sub");
  const PersistentVolume outer = HostPathVolume("outer", "/x");
  PodVolume own;
  own.name = "data";
  own.source = HostPathVolumeSource{"/x/sub", HostPathType::kUnset};
  volumed::Pod object;
  object.metadata.uid = PodUid("u-1").str();
  object.spec.volumes = {own};
  const auto pod = std::make_shared<const volumed::Pod>(object);
  const auto reclaim = [&](const std::vector<std::shared_ptr<const volumed::Pod>>& pods) {
    return guard_->TakeForReclaim(ReclaimStorageHolder(outer), NameOf(outer), "claim-1",
                                  StorageOf(*guard_, pods), {});
  };
  EXPECT_EQ(reclaim({pod}).error().code(), Code::kFailedPrecondition);
  const StorageHolder holder =
      PodStorageHolder({PodUid("u-1"), SpecName("data")}, VolumeSpec::FromVolume(own));
  ASSERT_EQ(Take(holder, "/x/sub"), "");
  EXPECT_FALSE(reclaim({pod}).ok()) << "it is set up";
  ASSERT_TRUE(guard_->Release(holder.id).ok());
  EXPECT_FALSE(reclaim({pod}).ok()) << "it is not gone";
  EXPECT_TRUE(reclaim({}).ok());
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
  // Without the other volume it is its administrator's again.
  ASSERT_TRUE(guard_->Forget("a").ok());
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

// The walk of an attachable flexVolume, ended between its mount and the mount's record.
TEST_F(StorageGuardTest, ADeviceThatWasMountedAtTheStartIsOnRecordToo) {
  AddDisk({"/dev/sdb", "/dev/twin"}, "wwid:1");
  AddDisk({"/dev/sdc"}, "wwid:2");
  Expect(Device("disk", StorageUse::kMounted), "/dev/sdb");
  // A plugin mounted this one by itself.
  Expect(Device("by plugin", StorageUse::kShared), "/dev/sdc");
  for (const std::string volume : {"disk", "by plugin"}) {
    const std::string id = "device/p/" + volume;
    ASSERT_TRUE(guard_->RecordDevice(id, {}, CallOptions{}).ok());
    ASSERT_TRUE(guard_->Release(id).ok());
  }
  EXPECT_THAT(Take(Device("raw", StorageUse::kRaw), "/dev/twin"),
              ::testing::HasSubstr("on record as that of PersistentVolume disk"));
  EXPECT_EQ(Take(Device("raw", StorageUse::kRaw), "/dev/sdc"), "");
}

// The disk of a block volume was formatted for another one while its pod was away.
TEST_F(StorageGuardTest, ADiskThatIsOnRecordAsABlockVolumesIsNotFormattedWhileItsPodIsAway) {
  for (const bool tells : {true, false}) {
    const std::string volume = tells ? "raw" : "plain";
    const std::string node = tells ? "/dev/sdb" : "/dev/sdd";
    FakeDevice disk;
    if (tells) disk.storage_own = {"wwid:1"};
    kernel_.AddDevice(node, disk);
    kernel_.AddSymlink("/link-" + volume, node);
    ASSERT_EQ(UseDevice(volume, StorageUse::kRaw, node), "");
    Restart("boot-b");
    for (const std::string& path : {node, "/link-" + volume}) {
      const std::string refused = Format("two", path);
      EXPECT_TRUE(Has(refused, "persistent volume two") &&
                  Has(refused, "on record as that of PersistentVolume " + volume))
          << refused;
    }
    EXPECT_EQ(UseDevice("same mode", StorageUse::kRaw, node), "");
    ASSERT_TRUE(guard_->Forget("same mode").ok());
    EXPECT_EQ(UseDevice(volume, StorageUse::kRaw, node), "") << "its own next pod";
    ASSERT_TRUE(guard_->Forget(volume).ok());
    EXPECT_EQ(Format("two", node), "");
  }
}

TEST_F(StorageGuardTest, ADiskThatIsOnRecordAsAFilesystemIsNotHandedOutRawWhileItsPodIsAway) {
  FakeDevice disk;
  disk.storage_own = {"wwid:1"};
  kernel_.AddDevice("/dev/sdb", disk);
  FakeDevice part;
  part.storage_own = {"wwid:1:2048"};
  part.storage_within = {"wwid:1"};
  kernel_.AddDevice("/dev/sdb1", part);
  ASSERT_EQ(UseDevice("mounted", StorageUse::kShared, "/dev/sdb1"), "");
  kernel_.Remove("/dev/sdb");
  kernel_.AddDevice("/dev/sdz", disk);
  Restart("boot-b");
  for (const char* node : {"/dev/sdz", "/dev/sdb1"}) {
    const std::string refused = Take(Device("raw", StorageUse::kRaw), node);
    EXPECT_TRUE(Has(refused, "persistent volume raw") &&
                Has(refused, "on record as that of PersistentVolume mounted"))
        << refused;
    EXPECT_FALSE(guard_->Has("device/p/raw", StorageUse::kRaw));
    EXPECT_NE(Format("formatted", node), "");
  }
  EXPECT_EQ(UseDevice("same mode", StorageUse::kShared, "/dev/sdb1"), "");
}

TEST_F(StorageGuardTest, TheRecordOfAnOlderAgentIsThatOfAVolumeThatWasMounted) {
  kernel_.AddDevice("/dev/sdb");
  kernel_.AddDevice("/dev/sdc");
  const StorageOwnerRecord old{"old", {"/dev/sdb"}, {}, "claim-1", false};
  ASSERT_TRUE(store_.Put(EncodeRecord(old), Durability::kPowerLoss).ok());
  Restart();
  EXPECT_TRUE(Has(Take(Device("raw", StorageUse::kRaw), "/dev/sdb"), "PersistentVolume old"));
  EXPECT_TRUE(Has(Format("two", "/dev/sdb"), "PersistentVolume old"));
  EXPECT_EQ(Take(Device("two", StorageUse::kShared), "/dev/sdb"), "");
  EXPECT_EQ(Take(Device("raw", StorageUse::kRaw), "/dev/sdc"), "");
}

TEST_F(StorageGuardTest, WhatIsOnRecordOfAStorageKeepsEveryField) {
  StorageOwnerRecord record{"v", {"/dev/sdb"}, {"ext4", "uuid", 3, "1:ab"}, "claim", true};
  record.mode = StorageMode::kRaw;
  record.own_keys = {"file:x", "wwid:1"};
  record.within_keys = {"wwid:2"};
  record.files = {{"/image", {"xfs", "uuid-2", 4, "2:cd"}}};
  record.boot_id = BootId("boot");
  const auto read = DecodeStorageOwnerRecord(EncodeRecord(record));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, record);
}

}  // namespace
}  // namespace volumed
