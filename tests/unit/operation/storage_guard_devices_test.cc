// Who has a device: raw, mounted, or to be formatted; and what is on record of it.
#include "operation/storage_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/printable_text.h"
#include "unit/operation/storage_guard_fixture.h"

namespace volumed {
namespace {

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

// The number of a loop device is free before the volume that had it has told the guard.
TEST_F(StorageGuardTest, AStageWasRefusedForAVolumeWhoseDeviceWasJustDetached) {
  AddDisk({"/dev/loop0"}, "7:0");
  ASSERT_EQ(Take(Device("old", StorageUse::kMounted), "/dev/loop0"), "");
  const auto code_of_next = [this] {
    const auto taken = guard_->Take(Device("new", StorageUse::kFormat), {"/dev/loop0"}, {});
    if (taken.ok()) return Code{};
    EXPECT_FALSE(taken.error().maybe_applied());
    EXPECT_TRUE(Has(taken.error().message(), "persistent volume old")) << taken.error().ToString();
    return taken.error().code();
  };
  EXPECT_EQ(code_of_next(), Code::kFailedPrecondition);
  {
    const StorageGuard::Leaving leaving(*guard_, "device/p/old");
    EXPECT_EQ(code_of_next(), Code::kAborted) << "it is to come again";
  }
  EXPECT_EQ(code_of_next(), Code::kFailedPrecondition) << "it could not leave";
  ASSERT_TRUE(guard_->Release("device/p/old").ok());
  EXPECT_EQ(code_of_next(), Code{});
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

// A pod with a hostPath of "/" kept every image on the node's disk from being formatted, and a
// block volume kept such a pod from its start.
TEST_F(StorageGuardTest, ADirectoryThatOnlyHasTheFileOfALoopDeviceIsNotInItsWay) {
  const std::string loop = AttachImage();
  ASSERT_EQ(Take(Pod("watcher"), "/srv"), "");
  ASSERT_EQ(Take(Pod("beside", true), "/srv/pool"), "");
  EXPECT_EQ(Format("one", loop), "");
  EXPECT_EQ(Take(Device("raw", StorageUse::kRaw), loop), "");
  EXPECT_EQ(Take(Pod("late"), "/srv/pool"), "");
  // The file is the device's whole content.
  EXPECT_TRUE(Has(Take(Pod("thief"), "/srv/pool/image"), "persistent volume raw"));
}

TEST_F(StorageGuardTest, WhatLiesInALoopDeviceIsInTheWayOfItsFormat) {
  const std::string loop = AttachImage();
  kernel_.ChangeDevice(loop, [](FakeDevice& device) {
    device.fs_type = "ext4";
    device.usage = "filesystem";
  });
  kernel_.AddDirectory("/mnt/old");
  MountDisk(loop, "/mnt/old");
  ASSERT_EQ(Take(Pod("watcher"), "/mnt/old"), "");
  EXPECT_TRUE(Has(Format("one", loop), "volume watcher"));
  EXPECT_TRUE(Has(Take(Device("raw", StorageUse::kRaw), loop), "volume watcher"));
}

TEST_F(StorageGuardTest, TheDiskOfAPartitionStaysInTheWayOfItsFormat) {
  AddDisk({"/dev/sdb"}, "wwid:1");
  FakeDevice part;
  part.storage_own = {"wwid:1:1"};
  part.storage_within = {"wwid:1"};
  kernel_.AddDevice("/dev/sdb1", part);
  ASSERT_EQ(Take(Device("all", StorageUse::kMounted), "/dev/sdb"), "");
  EXPECT_NE(Format("one", "/dev/sdb1"), "");
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

// Had it asked the records before it reserved, a use that began and ended in between was
// overlooked.
TEST_F(StorageGuardTest, WhoeverHasADiskWhileAnotherAsksTheRecordsIsNotOverlooked) {
  AddDisk({"/dev/sdb", "/dev/twin"}, "wwid:1");
  kernel_.AddDevice("/dev/sdc");
  // Its record does not tell its identity: who asks the records looks at its path.
  ASSERT_EQ(UseDevice("plain", StorageUse::kMounted, "/dev/sdc"), "");
  std::string mounted = "not asked";
  kernel_.SetCallHook([&](const AnyRequest& request) {
    const auto* look = std::get_if<IdentifyStorage>(&request);
    const bool asks = look != nullptr && look->path == HostPath("/dev/sdc");
    if (!asks || mounted != "not asked") return;
    mounted = "";
    mounted = UseDevice("mounted", StorageUse::kMounted, "/dev/twin");
  });
  const std::string raw = Take(Device("raw", StorageUse::kRaw), "/dev/sdb");
  ASSERT_NE(mounted, "not asked");
  EXPECT_TRUE(raw.empty() != mounted.empty()) << "raw: " << raw << "; mounted: " << mounted;
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
      // Also if it does not ask for the filesystem first.
      EXPECT_TRUE(Has(Take(Device("three", StorageUse::kFormat), path),
                      "on record as that of PersistentVolume " + volume));
      ASSERT_TRUE(guard_->Release("device/p/three").ok());
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

// Two block volumes on loop devices that came up with each other's file: each pod got the other's
// data.
TEST_F(StorageGuardTest, ABlockVolumeIsNotHandedOutFromAnotherDeviceThanItHad) {
  AddDisk({"/dev/loop1"}, "file:c");
  AddDisk({"/dev/loop2"}, "file:d");
  ASSERT_EQ(UseDevice("vc", StorageUse::kRaw, "/dev/loop1"), "");
  ASSERT_EQ(UseDevice("vd", StorageUse::kRaw, "/dev/loop2"), "");
  for (const char* node : {"/dev/loop1", "/dev/loop2"}) kernel_.Remove(node);
  AddDisk({"/dev/loop1"}, "file:d");
  AddDisk({"/dev/loop2"}, "file:new");
  Restart("boot-b");
  const std::string refused = Take(Device("vc", StorageUse::kRaw), "/dev/loop1");
  EXPECT_TRUE(Has(refused, "is another block device than the one that persistent volume vc has") &&
              Has(refused, "it was a block device (file:c), and is a block device (file:d)") &&
              Has(refused, "`volumectl accept pv vc`"))
      << refused;
  EXPECT_FALSE(guard_->Has("device/p/vc", StorageUse::kRaw));
  const auto others = guard_->AcceptDirectory("vc", {});
  ASSERT_FALSE(others.ok());
  EXPECT_TRUE(Has(others.error().message(), "on record as that of PersistentVolume vd"));

  EXPECT_NE(Take(Device("vd", StorageUse::kRaw), "/dev/loop2"), "");
  const auto accepted = guard_->AcceptDirectory("vd", {});
  ASSERT_TRUE(accepted.ok()) << accepted.error().ToString();
  EXPECT_TRUE(accepted->was_other);
  EXPECT_EQ(accepted->now, "a block device (file:new)");
  EXPECT_EQ(UseDevice("vd", StorageUse::kRaw, "/dev/loop2"), "");
  EXPECT_FALSE(guard_->AcceptDirectory("vd", {})->was_other) << "there is nothing to accept";
}

// The answer of `volumectl accept pv` could not be sent, though the device was accepted; the
// refusal had the line break of the file's name.
TEST_F(StorageGuardTest, ALoopFileWhoseNameIsNoUtf8WasShownAsItIs) {
  AddDisk({"/dev/loop1"}, "file:a\xff\n.img");
  ASSERT_EQ(UseDevice("v", StorageUse::kRaw, "/dev/loop1"), "");
  kernel_.Remove("/dev/loop1");
  AddDisk({"/dev/loop1"}, "file:b\xc3(\x1b[31m.img");
  const std::string refused = Take(Device("v", StorageUse::kRaw), "/dev/loop1");
  EXPECT_TRUE(Has(refused, "it was a block device (file:a\\xff\\x0a.img)")) << refused;
  EXPECT_EQ(PrintableText(refused), refused);
  const auto accepted = guard_->AcceptDirectory("v", {});
  ASSERT_TRUE(accepted.ok()) << accepted.error().ToString();
  EXPECT_TRUE(accepted->was_other);
  EXPECT_EQ(accepted->before, "a block device (file:a\\xff\\x0a.img)");
  EXPECT_EQ(accepted->now, "a block device (file:b\\xc3(\\x1b[31m.img)");
  EXPECT_EQ(UseDevice("v", StorageUse::kRaw, "/dev/loop1"), "") << "it is compared as it is";
}

// The agent ended, and the devices came to have each other's file before the next one looked.
TEST_F(StorageGuardTest, SwappedDevicesWereTakenAsTheOnesThatTheAgentBeforeHadHandedOut) {
  AddDisk({"/dev/loop1"}, "file:c");
  AddDisk({"/dev/loop2"}, "file:d");
  ASSERT_EQ(UseDevice("vc", StorageUse::kRaw, "/dev/loop1"), "");
  ASSERT_EQ(UseDevice("vd", StorageUse::kRaw, "/dev/loop2"), "");
  const auto attach = [&](const char* first, const char* second) {
    for (const char* node : {"/dev/loop1", "/dev/loop2"}) kernel_.Remove(node);
    AddDisk({"/dev/loop1"}, first);
    AddDisk({"/dev/loop2"}, second);
  };
  attach("file:d", "file:c");
  Restart();
  Expect(Device("vc", StorageUse::kRaw), "/dev/loop1");
  Expect(Device("vd", StorageUse::kRaw), "/dev/loop2");
  for (int tries = 0; tries < 2; ++tries) {
    EXPECT_TRUE(Has(Take(Device("vc", StorageUse::kRaw), "/dev/loop1"), "is another block device"));
    EXPECT_TRUE(Has(Take(Device("vd", StorageUse::kRaw), "/dev/loop2"), "is another block device"));
  }
  EXPECT_TRUE(guard_->Has("device/p/vc", StorageUse::kRaw)) << "a pod may have it still";
  // Their pods have left.
  for (const char* id : {"device/p/vc", "device/p/vd"}) ASSERT_TRUE(guard_->Release(id).ok());
  EXPECT_TRUE(Has(Take(Device("vc", StorageUse::kRaw), "/dev/loop1"), "is another block device"));
  EXPECT_TRUE(Has(Take(Device("vd", StorageUse::kRaw), "/dev/loop2"), "is another block device"));
  attach("file:c", "file:d");
  EXPECT_EQ(UseDevice("vc", StorageUse::kRaw, "/dev/loop1"), "");
  EXPECT_EQ(UseDevice("vd", StorageUse::kRaw, "/dev/loop2"), "");
}

// A volume that was never used got a filesystem with another claim's data.
TEST_F(StorageGuardTest, ADiskThatComesUpAtTheFreePathOfAnotherVolumeIsNotGivenToThat) {
  for (const StorageUse use : {StorageUse::kShared, StorageUse::kRaw}) {
    AddDisk({"/dev/loop1"}, "file:c");
    ASSERT_EQ(UseDevice("vc", use, "/dev/loop1"), "");
    kernel_.Remove("/dev/loop1");
    AddDisk({"/dev/loop2"}, "file:c");
    Restart("boot-b");
    const StorageUse again = use == StorageUse::kRaw ? use : StorageUse::kMounted;
    EXPECT_TRUE(Has(Take(Device("unused", again), "/dev/loop2"),
                    "on record as that of PersistentVolume vc"));
    // Both name it.
    AddDisk({"/dev/loop1"}, "file:c");
    EXPECT_EQ(Take(Device("unused", again), "/dev/loop2"), "");
    ASSERT_TRUE(guard_->Release("device/p/unused").ok());
    ASSERT_TRUE(guard_->Forget("vc").ok());
    ASSERT_TRUE(guard_->Forget("unused").ok());
    kernel_.Remove("/dev/loop1");
    kernel_.Remove("/dev/loop2");
  }
}

// A disk is found again by what it calls itself, whatever its node is, and as a map of its paths.
TEST_F(StorageGuardTest, ABlockVolumeKeepsItsDiskUnderAnotherNode) {
  AddDisk({"/dev/sdb", "/dev/sdz"}, "wwid:1");
  FakeDevice map;
  map.storage_own = {"dev:253:0"};
  map.storage_within = {"wwid:1"};
  kernel_.AddDevice("/dev/dm-0", map);
  ASSERT_EQ(UseDevice("raw", StorageUse::kRaw, "/dev/sdb"), "");
  for (const char* node : {"/dev/sdz", "/dev/dm-0"}) {
    Restart("boot-b");
    EXPECT_EQ(UseDevice("raw", StorageUse::kRaw, node), "") << node;
  }
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

// ---- what a driver has --------------------------------------------------------------------------

PersistentVolume DriverVolume(const std::string& name, const std::string& handle,
                              const std::string& driver = "disks.test.io") {
  PersistentVolume volume;
  volume.metadata.name = name;
  CsiPersistentVolumeSource source;
  source.driver = driver;
  source.volume_handle = handle;
  volume.spec.source = source;
  return volume;
}

TEST_F(StorageGuardTest, AHandleIsOneStorageAndNoPath) {
  kernel_.AddDirectory("/x");
  const PersistentVolume volume = DriverVolume("disk", "/x");
  StorageHolder holder = Pod("disk", /*persistent=*/true);
  EXPECT_EQ(Text(guard_->Take(holder, NameOf(volume), {})), "");
  EXPECT_TRUE(Has(Reclaim(DriverVolume("same", "/x"), "c"), "has its storage at disks.test.io^/x"));
  EXPECT_TRUE(Has(Reclaim(volume, "c"), "it is in use still: volume disk"));
  EXPECT_EQ(Reclaim(DriverVolume("other driver", "/x", "other.test.io"), "c"), "");
  EXPECT_EQ(Reclaim(DriverVolume("other volume", "/x/sub"), "c"), "") << "handles have no parts";
  EXPECT_EQ(Reclaim(HostPathVolume("path", "/x"), "c"), "");
  ASSERT_TRUE(guard_->Release(holder.id).ok());
  EXPECT_EQ(Reclaim(volume, "c"), "");
}

// A server that is dead has nothing of any driver's.
TEST_F(StorageGuardTest, ADriversVolumeIsDeletedWithoutALookAtTheNode) {
  kernel_.AddDirectory("/hung");
  Expect(Pod("looker"), "/hung");
  kernel_.Hang("/hung");
  EXPECT_EQ(Reclaim(DriverVolume("disk", "vol-1"), "c", {HostPathVolume("path", "/hung")}), "");
  kernel_.AddDirectory("/y");
  EXPECT_NE(Reclaim(HostPathVolume("other", "/y"), "c"), "") << "which has to look";
}

TEST_F(StorageGuardTest, ADeleteThatMayGoOnKeepsTheHandleOverRestartsAndReboots) {
  const PersistentVolume volume = DriverVolume("disk", "vol-1");
  ASSERT_EQ(Reclaim(volume, "c"), "");
  for (const char* boot : {"boot-a", "boot-b"}) {
    Restart(boot);
    EXPECT_TRUE(Has(Text(guard_->Take(Pod("disk", true), NameOf(volume), {})),
                    "whose content is being deleted"));
    const Result<bool> goes_on = guard_->IsBeingReclaimed("reclaim/disk", NameOf(volume));
    ASSERT_TRUE(goes_on.ok());
    EXPECT_TRUE(*goes_on);
  }
}

TEST_F(StorageGuardTest, AnUnknownVolumeIsInTheWayOfADriversVolumeOnlyIfItMayBeIt) {
  const PersistentVolume volume = DriverVolume("disk", "vol-1");
  guard_->SetUnknown({{"unknown", "u.yaml", "it is no yaml", StorageName{"/x"}}});
  EXPECT_EQ(Reclaim(volume, "c"), "");
  guard_->SetUnknown({{"unknown", "u.yaml", "it is no yaml", NameOf(DriverVolume("u", "vol-2"))}});
  EXPECT_EQ(Reclaim(volume, "c"), "");
  guard_->SetUnknown({{"unknown", "u.yaml", "it is no yaml", NameOf(DriverVolume("u", "vol-1"))}});
  EXPECT_NE(Reclaim(volume, "c"), "");
  guard_->SetUnknown({{"unknown", "u.yaml", "it is no yaml", std::nullopt}});
  EXPECT_NE(Reclaim(volume, "c"), "") << "it may be any";
}

// A driver that shows another volume's disk would give a pod that one's data.
TEST_F(StorageGuardTest, ADriversBlockVolumeKeepsItsDiskUntilAnotherIsAccepted) {
  AddDisk({"/dev/vdb"}, "wwid:a");
  AddDisk({"/dev/vdc"}, "wwid:b");
  const PersistentVolume volume = DriverVolume("disk", "vol-1");
  const auto show = [&](const std::string& device) {
    const std::string refused = Take(Device("disk", StorageUse::kRaw), device);
    if (!refused.empty()) return refused;
    EXPECT_TRUE(guard_->RecordDevice("device/p/disk", NameOf(volume), {}).ok());
    EXPECT_TRUE(guard_->Release("device/p/disk").ok());
    return refused;
  };
  ASSERT_EQ(show("/dev/vdb"), "");
  Restart("boot-b");
  EXPECT_TRUE(Has(show("/dev/vdc"),
                  "is another block device than the one that persistent volume "
                  "disk has its data on"));
  EXPECT_EQ(show("/dev/vdb"), "");
  const auto accepted = guard_->AcceptDirectory("disk", {});
  ASSERT_TRUE(accepted.ok()) << accepted.error().ToString();
  EXPECT_TRUE(accepted->was_other);
  EXPECT_EQ(show("/dev/vdc"), "");
  EXPECT_NE(show("/dev/vdb"), "");
}

}  // namespace
}  // namespace volumed
