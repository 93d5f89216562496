// fc: which disk is taken for the volume's, how it is mounted, and how its disks go.
#include "plugins/fc.h"
#include "fakes/target_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_device_finder.h"
#include "fakes/fake_kernel.h"
#include "fakes/fake_scsi_tree.h"
#include "fakes/memory_format_intents.h"
#include "mounter/mount_refs.h"
#include "pluginmgr/wrapper_volumes.h"
#include "unit/plugins/plugin_world.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kPort[] = "500a0982991b8dc5";
constexpr char kPlace[] = "/r/plugins/kubernetes.io/fc/500a0982991b8dc5-lun-1";
constexpr char kMapUuid[] = "mpath-36001405a1b2c3d4e";

class FcTest : public ::testing::Test {
 protected:
  FcTest() : world_(kernel_, "/r"), finder_(kernel_), tree_(kernel_) {
    FcSettings settings;
    settings.device.format_intents = &intents_;
    settings.devices = &finder_;
    settings.limits = &limits_;
    plugin_ = std::make_unique<FcPlugin>(settings);
    EXPECT_TRUE(plugin_->Init(PluginContext{world_.host, wrappers_}).ok());
    kernel_.AddDirectory("/r/plugins", 0750);
    tree_.AddHost(3);
    tree_.AddRemotePort("rport-3:0-0", "0x500a0982991b8dc5");
    tree_.AddRemotePort("rport-3:0-1", "0x500a0982891b8dc5");
    source_.target_wwns = {kPort};
    source_.lun = 1;
    call_.deadline = Deadline::After(world_.clock, std::chrono::seconds(30));
  }
  void AddMultipath() {
    tree_.AddDisk({.name = "sdb", .address = "3:0:0:1"});
    tree_.AddDisk({.name = "sdc", .address = "3:0:1:1", .rport = "rport-3:0-1"});
    tree_.AddMap("dm-0", "mpatha", kMapUuid, {"sdb", "sdc"});
    tree_.AddMultipathTools(tools_);
  }
  VolumeSpec Spec(bool read_only = false) const {
    PersistentVolume volume;
    volume.metadata.name = "disk";
    volume.spec.source = source_;
    return VolumeSpec::FromPersistentVolume(std::move(volume), read_only);
  }
  Result<std::string> Wait() {
    return plugin_->NewAttacher().value()->WaitForAttach(Spec(), "", MakePod(), call_);
  }
  Status MountDevice(bool read_only = false) {
    DeviceMounterArgs args;
    args.call = call_;
    const auto mounter = plugin_->NewDeviceMounter().value();
    return mounter->MountDevice(Spec(read_only), "/dev/stale",
                                mounter->GetDeviceMountPath(Spec()).value(), args);
  }
  Status UnmountDevice() {
    return plugin_->NewDeviceUnmounter().value()->UnmountDevice(PlaceOf(kPlace), call_);
  }
  // The first try to take a multipath device away fails, and its paths go before the next one.
  void FailToUnmountAndLosePaths() {
    AddMultipath();
    ASSERT_TRUE(MountDevice().ok());
    tools_->flush_status = 1;
    ASSERT_FALSE(UnmountDevice().ok());
    for (const std::string name : {"sdb", "sdc"}) {
      kernel_.Remove("/sys/devices/virtual/block/dm-0/slaves/" + name);
      kernel_.Remove("/sys/block/" + name);
    }
  }
  SafePath PlaceOf(const std::string& path) const { return world_.paths.BelowRoot(path).value(); }
  Status SetUp1(const std::string& pod, bool read_only = false, MounterArgs args = {}) {
    kernel_.AddDirectory("/r/pods/" + pod + "/volumes", 0750);
    args.call = call_;
    return plugin_
        ->NewMounter(Spec(read_only), TargetOf(world_.paths, *plugin_, Spec(), MakePod(pod)))
        .value()
        ->SetUp(args);
  }
  std::vector<bool> Attached() {
    const NodeName node = world_.host.node.GetNodeName();
    auto answers = plugin_->AsBulkVolumeVerifier()->BulkVerifyVolumes({{node, {Spec()}}}, call_);
    EXPECT_TRUE(answers.ok()) << answers.error().ToString();
    return answers.ok() ? answers->at(node) : std::vector<bool>();
  }
  std::string SourceAt(const std::string& path) {
    const auto mount = FindMountAt(kernel_, path, {});
    return mount.ok() && *mount ? (*mount)->source : "";
  }

  FakeKernel kernel_;
  PluginWorld world_;
  VolumePluginMgr mgr_;
  WrapperVolumes wrappers_{mgr_};
  MemoryFormatIntents intents_;
  FakeDeviceFinder finder_;
  AttachLimitSettings limits_;
  FakeScsiTree tree_;
  std::shared_ptr<FakeMultipathTools> tools_ = std::make_shared<FakeMultipathTools>();
  std::unique_ptr<FcPlugin> plugin_;
  FcVolumeSource source_;
  CallOptions call_;
};

// ---- which disk ---------------------------------------------------------------------------------

TEST_F(FcTest, ADiskIsTheVolumesByItsRemotePortAndLun) {
  tree_.AddDisk({.name = "sdb", .address = "3:0:0:2"});
  tree_.AddDisk({.name = "sdc", .address = "3:0:1:1", .rport = "rport-3:0-1"});
  tree_.AddDisk({.name = "sdd", .address = "3:0:0:1"});
  const auto device = Wait();
  ASSERT_TRUE(device.ok()) << device.error().ToString();
  EXPECT_EQ(*device, "/dev/sdd");
}

TEST_F(FcTest, ADiskIsTheVolumesByItsWwid) {
  source_ = {};
  source_.wwids = {"36001405a1b2c3d4e"};
  tree_.AddDisk({.name = "sdb", .address = "3:0:0:1", .wwid = "naa.6001405ffffffffe"});
  EXPECT_FALSE(Wait().ok());
  tree_.AddDisk({.name = "sdc", .address = "3:0:0:2"});
  EXPECT_EQ(Wait().value(), "/dev/sdc");
}

TEST(FcDiskTest, WwidsAndLunsAreComparedInEverySpelling) {
  ScsiDisk disk;
  disk.wwid = "t10.LIO-ORG disk   one";
  EXPECT_TRUE(IsFcDisk({{}, std::nullopt, {"1LIO-ORG_disk_one"}}, disk, ""));
  EXPECT_FALSE(IsFcDisk({{}, std::nullopt, {"1LIO-ORG_disk_two"}}, disk, ""));
  disk.wwid.clear();
  EXPECT_FALSE(IsFcDisk({{}, std::nullopt, {"3"}}, disk, ""));
  disk.lun = 0x4000 | 300;
  EXPECT_TRUE(IsFcDisk({{"0x500A0982991B8DC5"}, 300, {}}, disk, "0x500a0982991b8dc5"));
  EXPECT_TRUE(IsFcDisk({{"50:0a:09:82:99:1b:8d:c5"}, 300, {}}, disk, "0x500a0982991b8dc5"));
  EXPECT_FALSE(IsFcDisk({{"500a0982991b8dc5"}, 301, {}}, disk, "0x500a0982991b8dc5"));
  EXPECT_FALSE(IsFcDisk({{"500a0982991b8dc5"}, 300, {}}, disk, ""));
  EXPECT_EQ(FcLunText(255), "255");
  EXPECT_EQ(FcLunText(256), "0x0100000000000000");
}

TEST_F(FcTest, AStaleLinkLeadsToNoMount) {
  // The link still says so, but the disk at its end hangs on another port.
  tree_.AddDisk({.name = "sdb", .address = "3:0:1:1", .rport = "rport-3:0-1"});
  kernel_.AddSymlink("/dev/disk/by-path/fc-0x500a0982991b8dc5-lun-1", "../../sdb");
  const auto device = Wait();
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(device.error().message(), HasSubstr("sysfs does not show to be its disk"));
  EXPECT_FALSE(MountDevice().ok());
  EXPECT_EQ(SourceAt(kPlace), "");
}

TEST_F(FcTest, TheMultipathDeviceIsPreferred) {
  AddMultipath();
  const auto device = Wait();
  ASSERT_TRUE(device.ok()) << device.error().ToString();
  EXPECT_EQ(*device, "/dev/dm-0");
}

TEST_F(FcTest, AMultipathDeviceOfTwoUnitsIsRefused) {
  tree_.AddDisk({.name = "sdb", .address = "3:0:0:1"});
  tree_.AddDisk({.name = "sdc", .address = "3:0:1:1", .rport = "rport-3:0-1", .wwid = "naa.6f"});
  tree_.AddMap("dm-0", "mpatha", kMapUuid, {"sdb", "sdc"});
  EXPECT_THAT(Wait().error().message(), HasSubstr("a path to another unit: /dev/sdc"));
}

TEST_F(FcTest, AllHostsAreScannedOnceWhereNothingIsThere) {
  tree_.AddDiskOnScan({.name = "sdb", .address = "3:0:0:1"});
  const auto device = Wait();
  ASSERT_TRUE(device.ok()) << device.error().ToString();
  EXPECT_EQ(*device, "/dev/sdb");
  EXPECT_EQ(tree_.Attribute("class/scsi_host/host3/scan"), "- - -");
}

TEST_F(FcTest, WhatIsThereNeedsNoScan) {
  tree_.AddDisk({.name = "sdb", .address = "3:0:0:1"});
  ASSERT_TRUE(Wait().ok());
  EXPECT_EQ(tree_.Attribute("class/scsi_host/host3/scan"), "");
}

TEST_F(FcTest, TheErrorSaysWhatWasWaitedForAndThatThereIsNoHost) {
  const auto absent = Wait();
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code(), Code::kDeadlineExceeded);
  EXPECT_THAT(absent.error().message(), HasSubstr("fc volume [500a0982991b8dc5]:1"));
  EXPECT_THAT(absent.error().message(),
              HasSubstr("/dev/disk/by-path/pci-0000:00:03.0-fc-0x500a0982991b8dc5-lun-1"));
  FakeKernel bare;
  FakeDeviceFinder finder(bare);
  FcDisks disks(bare, &finder, world_.clock, {});
  EXPECT_THAT(disks.WaitFor({{kPort}, 1, {}}, call_).error().message(), HasSubstr("no SCSI hosts"));
}

// ---- the device's mount -------------------------------------------------------------------------

TEST_F(FcTest, TheProvenDeviceIsMountedWhateverPathWasRecorded) {
  AddMultipath();
  const Status mounted = MountDevice();
  ASSERT_TRUE(mounted.ok()) << mounted.error().ToString();
  EXPECT_EQ(SourceAt(kPlace), "/dev/dm-0");
  EXPECT_EQ(kernel_.Device("/dev/dm-0").formats, 1);
  ASSERT_TRUE(MountDevice().ok());
  EXPECT_EQ(kernel_.Device("/dev/dm-0").formats, 1);
}

TEST_F(FcTest, ADeviceThatChangesHandsBeforeItsProbeIsNotFormatted) {
  tree_.AddDisk({.name = "sdb", .address = "3:0:0:1"});
  kernel_.SetCallHook([&](const AnyRequest& request) {
    if (!std::holds_alternative<ProbeDevice>(request)) return;
    kernel_.ChangeDevice("/dev/sdb", [](FakeDevice& device) { ++device.identity.disk_sequence; });
  });
  const Status mounted = MountDevice();
  ASSERT_FALSE(mounted.ok());
  EXPECT_THAT(mounted.error().message(), HasSubstr("is not the one that was found"));
  EXPECT_FALSE(mounted.error().maybe_applied());
  EXPECT_EQ(kernel_.Device("/dev/sdb").formats, 0);
  EXPECT_FALSE(kernel_.Exists(kPlace));
}

TEST_F(FcTest, AReadersVolumeIsMountedReadOnlyAndNotFormatted) {
  tree_.AddDisk({.name = "sdb", .address = "3:0:0:1"});
  EXPECT_FALSE(MountDevice(true).ok());
  EXPECT_EQ(kernel_.Device("/dev/sdb").formats, 0);
  ASSERT_TRUE(MountDevice(false).ok());
  ASSERT_TRUE(SetUp1("reader", true).ok());
  const std::string pod = "/r/pods/reader/volumes/kubernetes.io~fc/disk";
  EXPECT_TRUE(FindMountAt(kernel_, pod, {}).value()->read_only());
}

TEST_F(FcTest, APodIsBoundOnlyToAMountedDevice) {
  tree_.AddDisk({.name = "sdb", .address = "3:0:0:1"});
  EXPECT_EQ(SetUp1("early").error().code(), Code::kFailedPrecondition);
  ASSERT_TRUE(MountDevice().ok());
  ASSERT_TRUE(SetUp1("one").ok());
  EXPECT_THAT(plugin_->GetDeviceMountRefs(PlaceOf(kPlace), {}).value(),
              ElementsAre("/r/pods/one/volumes/kubernetes.io~fc/disk"));
  const auto spec = plugin_->ConstructVolumeSpec(
      SpecName("disk"), PlaceOf("/r/pods/one/volumes/kubernetes.io~fc/disk"), call_);
  ASSERT_TRUE(spec.ok()) << spec.error().ToString();
  EXPECT_EQ(plugin_->GetVolumeName(spec->spec).value(), "[500a0982991b8dc5]:1");
}

// Of local volumes alone a pod was told that it shares one with a pod of another group.
TEST_F(FcTest, TheFilesOfOnePodsGroupWentToAnothersAndNobodyWasTold) {
  tree_.AddDisk({.name = "sdb", .address = "3:0:0:1"});
  ASSERT_TRUE(MountDevice().ok());
  ASSERT_TRUE(SetUp1("one", false, WithGroup(2000)).ok());
  ASSERT_TRUE(SetUp1("same", false, WithGroup(2000)).ok());
  EXPECT_TRUE(world_.events.Snapshot(PodUid("one")).empty());
  EXPECT_TRUE(world_.events.Snapshot(PodUid("same")).empty());
  ASSERT_TRUE(SetUp1("two", false, WithGroup(3000)).ok());
  const std::vector<KeptEvent> events = world_.events.Snapshot(PodUid("two"));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].reason, "AlreadyMountedVolume");
  EXPECT_EQ(events[0].message,
            "The requested fsGroup is 3000, but the volume disk has GID 2000. The volume may not "
            "be shareable.");
}

// ---- the end ------------------------------------------------------------------------------------

TEST_F(FcTest, UnmountingTakesTheMapAndItsDisksAway) {
  AddMultipath();
  ASSERT_TRUE(MountDevice().ok());
  const Status gone = UnmountDevice();
  ASSERT_TRUE(gone.ok()) << gone.error().ToString();
  EXPECT_THAT(tools_->commands, ElementsAre("/usr/sbin/multipath -f /dev/dm-0"));
  for (const char* name : {"dm-0", "sdb", "sdc"}) EXPECT_FALSE(tree_.HasBlock(name)) << name;
  EXPECT_FALSE(kernel_.Exists(kPlace));
  EXPECT_TRUE(UnmountDevice().ok()) << "again";
}

TEST_F(FcTest, AnUnmountThatEndedAfterTheMountWasGoneIsContinued) {
  AddMultipath();
  ASSERT_TRUE(MountDevice().ok());
  tools_->flush_status = 1;
  const Status busy = UnmountDevice();
  ASSERT_FALSE(busy.ok());
  EXPECT_TRUE(busy.error().maybe_applied());
  EXPECT_TRUE(tree_.HasBlock("sdb"));
  tools_->flush_status = 0;
  ASSERT_TRUE(UnmountDevice().ok());
  for (const char* name : {"dm-0", "sdb", "sdc"}) EXPECT_FALSE(tree_.HasBlock(name)) << name;
}

TEST_F(FcTest, AMultipathDeviceThatLostItsPathsBeforeTheSecondTryWasLeft) {
  ASSERT_NO_FATAL_FAILURE(FailToUnmountAndLosePaths());
  tools_->flush_status = 0;
  const Status gone = UnmountDevice();
  ASSERT_TRUE(gone.ok()) << gone.error().ToString();
  EXPECT_FALSE(tree_.HasBlock("dm-0"));
}

TEST_F(FcTest, ASecondTryDoesNotTakeAMapThatHasTheNameByNow) {
  ASSERT_NO_FATAL_FAILURE(FailToUnmountAndLosePaths());
  kernel_.AddFile("/sys/devices/virtual/block/dm-0/dm/uuid", "mpath-of-another-unit\n");
  tools_->flush_status = 0;
  ASSERT_TRUE(UnmountDevice().ok());
  EXPECT_TRUE(tree_.HasBlock("dm-0"));
}

// Found by the crash walk: sdc is a path of the unit by a port that the volume does not name.
TEST_F(FcTest, AnUnmountThatEndedAmongThePathsLeavesNoneBehind) {
  AddMultipath();
  ASSERT_TRUE(MountDevice().ok());
  kernel_.FailNext("WriteAttribute", EIO, Outcome::kNotApplied);
  ASSERT_FALSE(UnmountDevice().ok());
  EXPECT_FALSE(tree_.HasBlock("dm-0"));
  ASSERT_TRUE(UnmountDevice().ok());
  for (const char* name : {"sdb", "sdc"}) EXPECT_FALSE(tree_.HasBlock(name)) << name;
}

TEST_F(FcTest, TheDiskThatTheVolumeNamesGoesLast) {
  AddMultipath();
  ASSERT_TRUE(MountDevice().ok());
  std::vector<std::string> deleted;
  kernel_.SetCallHook([&](const AnyRequest& request) {
    const auto* write = std::get_if<WriteAttribute>(&request);
    if (write != nullptr) deleted.push_back(write->path.Display());
  });
  ASSERT_TRUE(UnmountDevice().ok());
  ASSERT_EQ(deleted.size(), 2u);
  EXPECT_THAT(deleted[0], HasSubstr("3:0:1:1/delete"));
  EXPECT_THAT(deleted[1], HasSubstr("3:0:0:1/delete"));
}

TEST_F(FcTest, DisksOfOthersStay) {
  tree_.AddDisk({.name = "sdb", .address = "3:0:0:1"});
  tree_.AddDisk({.name = "sdc", .address = "3:0:0:2", .wwid = "naa.6001405a1b2c3d4f"});
  ASSERT_TRUE(MountDevice().ok());
  ASSERT_TRUE(UnmountDevice().ok());
  EXPECT_FALSE(tree_.HasBlock("sdb"));
  EXPECT_TRUE(tree_.HasBlock("sdc"));
}

TEST_F(FcTest, ADiskThatAnotherMountUsesStays) {
  tree_.AddDisk({.name = "sdb", .address = "3:0:0:1"});
  ASSERT_TRUE(MountDevice().ok());
  kernel_.ChangeDevice("/dev/sdb", [](FakeDevice& device) { device.claimed = true; });
  const Status busy = UnmountDevice();
  ASSERT_FALSE(busy.ok());
  EXPECT_EQ(busy.error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(tree_.HasBlock("sdb"));
}

TEST_F(FcTest, ADeadDiskEndsTheUnmountAtItsDeadlineAndIsNotDeleted) {
  tree_.AddDisk({.name = "sdb", .address = "3:0:0:1"});
  ASSERT_TRUE(MountDevice().ok());
  ASSERT_TRUE(kernel_.Call(Unmount{PlaceOf(kPlace)}, {}).ok());
  kernel_.Hang("/dev/sdb");
  const Status hung = UnmountDevice();
  ASSERT_FALSE(hung.ok());
  EXPECT_EQ(hung.error().code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(hung.error().maybe_applied());
  EXPECT_TRUE(tree_.HasBlock("sdb"));
}

TEST_F(FcTest, OnlyPlacesOfFcAreUnmounted) {
  for (const char* other : {"/r/plugins/kubernetes.io/iscsi/x", "/r/plugins/kubernetes.io/fc",
                            "/r/plugins/kubernetes.io/fc/a/b", "/r/pods/u1"}) {
    const Status refused = plugin_->NewDeviceUnmounter().value()->UnmountDevice(PlaceOf(other), {});
    ASSERT_FALSE(refused.ok()) << other;
    EXPECT_EQ(refused.error().code(), Code::kInvalidArgument) << other;
  }
}

// ---- growth, block mode, names ------------------------------------------------------------------

TEST_F(FcTest, AGrownUnitIsAskedForItsSizeAndItsFilesystemGrows) {
  tree_.AddDisk({.name = "sdb", .address = "3:0:0:1"});
  ASSERT_TRUE(MountDevice().ok());
  int64_t grown = 0;
  kernel_.ChangeDevice("/dev/sdb", [&](FakeDevice& device) {
    device.fs_bytes = device.identity.size_bytes;
    grown = device.identity.size_bytes *= 2;
  });
  const NodeResizeOptions options{Spec(), "", PlaceOf(kPlace), {}, Quantity::FromBytes(grown), {}};
  const auto done = plugin_->NodeExpand(options, call_);
  ASSERT_TRUE(done.ok()) << done.error().ToString();
  EXPECT_TRUE(*done);
  EXPECT_EQ(tree_.Attribute("block/sdb/device/rescan"), "1");
  EXPECT_EQ(kernel_.Device("/dev/sdb").growths, 1);
}

TEST_F(FcTest, ABlockVolumesDisksGoAtItsTearDown) {
  AddMultipath();
  const auto mapper =
      plugin_->NewBlockVolumeMapper(Spec(), std::make_shared<const Pod>(MakePod())).value();
  const SafePath place = mapper->GetGlobalMapPath(Spec()).value();
  EXPECT_EQ(place.Display(), "/r/plugins/kubernetes.io/fc/volumeDevices/500a0982991b8dc5-lun-1");
  EXPECT_EQ(mapper->GetPodDeviceMapPath().directory.Display(),
            "/r/pods/u1/volumeDevices/kubernetes.io~fc");
  const auto unmapper = plugin_->NewBlockVolumeUnmapper(SpecName("disk"), PodUid()).value();
  const Status gone = unmapper->AsCustom()->TearDownDevice(place, "/dev/dm-0", call_);
  ASSERT_TRUE(gone.ok()) << gone.error().ToString();
  for (const char* name : {"dm-0", "sdb", "sdc"}) EXPECT_FALSE(tree_.HasBlock(name)) << name;
}

// ---- which are attached -------------------------------------------------------------------------

TEST_F(FcTest, NothingIsMissingOfAVolumeThatIsNotUsedYet) {
  EXPECT_THAT(Attached(), ElementsAre(true));
  tree_.AddDisk({.name = "sdb", .address = "3:0:0:1"});
  EXPECT_THAT(Attached(), ElementsAre(true));
}

TEST_F(FcTest, AMountedVolumeIsMissedWhenItsDiskHasGone) {
  tree_.AddDisk({.name = "sdb", .address = "3:0:0:1"});
  ASSERT_TRUE(MountDevice().ok());
  EXPECT_THAT(Attached(), ElementsAre(true));
  kernel_.Remove("/sys/block/sdb");
  EXPECT_THAT(Attached(), ElementsAre(false));
}

TEST_F(FcTest, AMultipathDeviceThatHasLostItsPathsIsMissed) {
  AddMultipath();
  ASSERT_TRUE(MountDevice().ok());
  EXPECT_THAT(Attached(), ElementsAre(true));
  kernel_.Remove("/sys/devices/virtual/block/dm-0/slaves/sdb");
  EXPECT_THAT(Attached(), ElementsAre(false)) << "sdc is not on the volume's port";
  source_.target_wwns = {"500a0982891b8dc5"};
  kernel_.Remove("/sys/devices/virtual/block/dm-0/slaves/sdc");
  EXPECT_THAT(Attached(), ElementsAre(true)) << "another volume, which is not mounted";
  source_.target_wwns = {kPort};
  EXPECT_THAT(Attached(), ElementsAre(false));
}

TEST_F(FcTest, TheNodeTakesAsManyAsItsAdministratorHasSet) {
  EXPECT_EQ(plugin_->AsWithAttachLimits()->VolumeLimitKey(Spec()), "storage-limits-fc");
  limits_.Set({{"kubernetes.io/fc", 3}});
  EXPECT_EQ(plugin_->AsWithAttachLimits()->GetVolumeLimits()->at("storage-limits-fc"), 3);
}

TEST_F(FcTest, AVolumeIsNamedAndItsDomainIsItsPort) {
  EXPECT_EQ(plugin_->GetVolumeName(Spec()).value(), "[500a0982991b8dc5]:1");
  EXPECT_EQ(plugin_->FaultDomain(Spec()), "fc:500a0982991b8dc5");
  EXPECT_TRUE(plugin_->VerifiesAttachments());
  source_ = {};
  source_.wwids = {"1LIO-ORG disk"};
  EXPECT_EQ(plugin_->GetVolumeName(Spec()).value(), "[1LIO-ORG_disk]");
  source_.wwids = {"../../../etc"};
  EXPECT_EQ(plugin_->NewMounter(Spec(), TargetOf(world_.paths, *plugin_, Spec(), MakePod()))
                .error()
                .code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace volumed
