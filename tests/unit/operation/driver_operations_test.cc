// Operations on volumes that a driver with a lane of its own works for, from end to end: when they
// wait for it, and what their effects on the node hang with. The driver is a fake one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "fakes/fake_array_plugin.h"
#include "operation/attach_operations.h"
#include "operation/device_operations.h"
#include "operation/device_use.h"
#include "operation/mount_operations.h"
#include "operation/node_volume_operations.h"
#include "unit/operation/driver_operations_fixture.h"
#include "unit/operation/test_domains.h"

namespace volumed {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

PodPtr PodNamed(const std::string& uid) {
  auto pod = std::make_shared<Pod>();
  pod->metadata.uid = uid;
  pod->metadata.name = uid;
  pod->metadata.name_space = "default";
  return pod;
}

class DriverArrayTest : public DriverOperationsTest {
 protected:
  static constexpr char kDevice[] = "/dev/array/disk";
  static constexpr char kDeviceMount[] = "/var/lib/volumed/plugins/test.io/array/mounts/disk";
  static constexpr char kPodMount[] = "/var/lib/volumed/pods/a/volumes/test.io~array/disk";

  DriverArrayTest() {
    node_.AddDirectory("/var/lib/volumed/pods", 0750);
    array_.disks["disk"] = kDevice;
    array_.driver = "disks.test.io";
    FakeDevice device;
    device.fs_type = "ext4";
    device.usage = "filesystem";
    device.identity.uuid = "6b1c6a5e-0000-4000-8000-000000000001";
    node_.AddDevice(kDevice, device);
    node_.Remove(kDevice);  // until it is attached
    Init(std::make_unique<FakeArrayPlugin>(array_, node_));
    domains_.why_closed[kDriverLane] = "CSI driver disks.test.io is gone since 10:00: refused";
    Be(Open());
  }

  static LaneHealth Open() { return {.has_answered = true, .width = 4}; }
  static LaneHealth Away() {
    return {.has_answered = true, .width = 4, .closed = true, .closed_to_teardown = true};
  }
  void Be(LaneHealth health) {
    domains_.health[kDriverLane] = health;
    operations_.LanesChanged();
  }
  static VolumeSpec Spec() {
    PersistentVolume volume;
    volume.metadata.name = "disk";
    FlexPersistentVolumeSource source;
    source.driver = kFakeArrayPlugin;
    volume.spec.source = source;
    return VolumeSpec::FromPersistentVolume(volume, false);
  }
  template <typename Op>
  void Start(Op operation) {
    using Value = typename Op::Value;
    outcome_ = "waits";
    kernel_.calls.clear();
    operations_.ResetBackoff(operation.key());
    started_ = operations_.Start(std::move(operation), [this](const OperationOutcome<Value>& got) {
      outcome_ = got.failure ? got.failure->step + ": " + got.failure->error.message() : "done";
    });
    Settle();
  }
  void Settle() { scheduler_.RunFor(std::chrono::milliseconds(1)); }
  void Attach() { Start(AttachVolume({kDriverDisk, Spec(), {PodUid("a")}, "key"})); }
  void MountTheDevice() {
    MountDeviceRequest request{kDriverDisk, Spec(), {PodUid("a")}};
    request.attachable = true;
    request.first_pod = PodNamed("a");
    Start(MountDevice(std::move(request)));
  }
  void MountFor(const std::string& pod) {
    MountRequest request{
        .target = PodVolumeTarget(paths_, PodNamed(pod), kFakeArrayPlugin, SpecName("disk")),
        .spec = Spec(),
        .sub_paths = {},
        .nested_mount_points = {}};
    request.unique_name = kDriverDisk;
    request.has_device = true;
    Start(MountVolume(std::move(request)));
  }
  static UnmountRequest UnmountOf(const std::string& pod) {
    return {PodUid(pod), SpecName("disk"), kFakeArrayPlugin, "default/" + pod, kDriverDisk};
  }
  void UnmountTheDevice() {
    Start(UnmountDevice({kDriverDisk, kFakeArrayPlugin, SpecName("disk"), kDeviceMount}));
  }
  void Detach() { Start(DetachVolume({kDriverDisk, kFakeArrayPlugin, SpecName("disk")})); }
  void SetUpFor(const std::string& pod) {
    Attach();
    ASSERT_EQ(outcome_, "done");
    MountTheDevice();
    ASSERT_EQ(outcome_, "done");
    MountFor(pod);
    ASSERT_EQ(outcome_, "done");
  }

  FakeArray array_;
  TestDomains domains_;
  NodeVolumeOperations operations_{scheduler_,
                                   {plugins_, host_, logger_, store_, devices_, storage_},
                                   observer_,
                                   BootId("boot-a"),
                                   &domains_};
  StartResult started_ = StartResult::kPending;
  std::string outcome_;  // of the operation that was started last
};

TEST_F(DriverArrayTest, AnAttachWaitsForItsDriverWithoutACallOrARecordAndThenGoesOn) {
  Be(Away());
  Attach();
  EXPECT_EQ(outcome_, "waits");
  const auto running = operations_.FindRunning(OperationKey(kDriverDisk));
  ASSERT_TRUE(running);
  EXPECT_EQ(running->step, "WaitForDriver");
  ASSERT_TRUE(running->waits_for);
  EXPECT_EQ(running->waits_for->text, domains_.why_closed[kDriverLane]);
  EXPECT_TRUE(running->waits_for->does_not_answer) << "somebody has to bring the driver back";
  scheduler_.RunFor(std::chrono::hours(3));
  EXPECT_THAT(array_.calls, IsEmpty());
  EXPECT_FALSE(devices_.Find(kDriverDisk)) << "nothing is intended before it can begin";
  Be(Open());
  Settle();
  EXPECT_EQ(outcome_, "done");
  EXPECT_THAT(array_.calls, ElementsAre("Attach disk"));
}

TEST_F(DriverArrayTest, OneThatIsGivenUpHasTriedNothingAndIsNoEvent) {
  Be(Away());
  Attach();
  operations_.GiveUpWaiting(OperationKey(kDriverDisk));
  Settle();
  EXPECT_EQ(outcome_, "WaitForDriver: given up while it waited for its driver");
  EXPECT_THAT(parts_.events, IsEmpty());
  EXPECT_THAT(observer_.finished, IsEmpty());
  EXPECT_FALSE(operations_.NextTry(OperationKey(kDriverDisk)));
}

TEST_F(DriverArrayTest, TheWayDownGoesOnWhileTheDriverTakesNoNewWork) {
  SetUpFor("a");
  Be({.has_answered = true, .width = 4, .closed = true});
  Start(UnmountVolume(UnmountOf("a")));
  EXPECT_EQ(outcome_, "done");
  UnmountTheDevice();
  EXPECT_EQ(outcome_, "done");
  Detach();
  EXPECT_EQ(outcome_, "done");
  EXPECT_THAT(array_.attached, IsEmpty());
  Attach();
  EXPECT_EQ(outcome_, "waits");
}

TEST_F(DriverArrayTest, EachStepOfTheWayDownWaitsWhileTheDriverIsAway) {
  SetUpFor("a");
  Be(Away());
  Start(UnmountVolume(UnmountOf("a")));
  EXPECT_EQ(outcome_, "waits");
  EXPECT_TRUE(node_.IsMountPoint(kPodMount));
  Be(Open());
  Settle();
  EXPECT_EQ(outcome_, "done");
  UnmountTheDevice();
  ASSERT_EQ(outcome_, "done");
  Be(Away());
  Detach();
  EXPECT_EQ(outcome_, "waits");
  EXPECT_EQ(devices_.Find(kDriverDisk)->state, VolumeState::kAttached);
  Be(Open());
  Settle();
  EXPECT_EQ(outcome_, "done");
}

TEST_F(DriverArrayTest, OfTwoPodsOfAVolumeOneTeardownIsWithTheDriver) {
  SetUpFor("a");
  MountFor("b");
  ASSERT_EQ(outcome_, "done");
  const auto ignore = [](const OperationOutcome<Unit>&) {};
  EXPECT_EQ(operations_.Start(UnmountVolume(UnmountOf("a")), ignore), StartResult::kStarted);
  EXPECT_EQ(operations_.Start(UnmountVolume(UnmountOf("b")), ignore), StartResult::kPending);
  Settle();
  EXPECT_EQ(operations_.Start(UnmountVolume(UnmountOf("b")), ignore), StartResult::kStarted);
}

// One dead mount would take the workers of all volumes of the driver.
TEST_F(DriverArrayTest, EffectsHangWithThePlaceOfTheVolumeAndNoneWithTheDriver) {
  const auto none_of_the_driver = Each(Not(StartsWith("csi:")));
  Attach();
  ASSERT_EQ(outcome_, "done");
  EXPECT_THAT(kernel_.Domains(), Each(std::string()));
  MountTheDevice();
  ASSERT_EQ(outcome_, "done");
  EXPECT_THAT(kernel_.DomainsOf("Mount"), ElementsAre(kDeviceMount));
  EXPECT_THAT(kernel_.Domains(), none_of_the_driver);
  MountFor("a");
  ASSERT_EQ(outcome_, "done");
  EXPECT_THAT(kernel_.DomainsOf("BindMount"), ElementsAre(kPodMount));
  EXPECT_THAT(kernel_.Domains(), none_of_the_driver);
  Start(UnmountVolume(UnmountOf("a")));
  ASSERT_EQ(outcome_, "done");
  EXPECT_THAT(kernel_.DomainsOf("Unmount"), Contains(kPodMount));
  EXPECT_THAT(kernel_.Domains(), none_of_the_driver);
  UnmountTheDevice();
  ASSERT_EQ(outcome_, "done");
  EXPECT_THAT(kernel_.DomainsOf("Unmount"), ElementsAre(kDeviceMount));
  EXPECT_THAT(kernel_.DomainsOf("CheckDeviceUse"), ElementsAre(""))
      << "the device hangs for itself: nothing is mounted at the path any more";
  EXPECT_THAT(kernel_.Domains(), none_of_the_driver);
  Detach();
  ASSERT_EQ(outcome_, "done");
  EXPECT_THAT(kernel_.DomainsOf("FlushDevice"), ElementsAre(""));
  EXPECT_THAT(kernel_.Domains(), Each(std::string()));
}

// A driver's attachment has a name, which stands where others have the path of a device.
TEST_F(DriverArrayTest, WhatIsNoPathIsNeitherFlushedNorAskedWhoHasIt) {
  array_.attached_as = "csi-0123456789abcdef";
  SetUpFor("a");
  EXPECT_EQ(devices_.Find(kDriverDisk)->device_path, array_.attached_as);
  Start(UnmountVolume(UnmountOf("a")));
  ASSERT_EQ(outcome_, "done");
  UnmountTheDevice();
  ASSERT_EQ(outcome_, "done");
  Detach();
  EXPECT_EQ(outcome_, "done");
  EXPECT_THAT(kernel_.DomainsOf("FlushDevice"), IsEmpty());
  EXPECT_THAT(kernel_.DomainsOf("CheckDeviceUse"), IsEmpty());
  EXPECT_FALSE(devices_.Find(kDriverDisk));
}

TEST_F(DriverArrayTest, WhetherADriverHasAnythingHereIsOnRecord) {
  EXPECT_FALSE(operations_.HasAnyOf(kDriverLane, /*attached=*/false));
  SetUpFor("a");
  EXPECT_TRUE(operations_.HasAnyOf(kDriverLane, /*attached=*/false));
  EXPECT_TRUE(operations_.HasAnyOf(kDriverLane, /*attached=*/true));
  EXPECT_FALSE(operations_.HasAnyOf("csi:other.io", /*attached=*/false));
  EXPECT_EQ(operations_.FaultDomainOf(OperationKey(kDriverDisk)), kDriverLane);
  EXPECT_EQ(operations_.FaultDomainOf(OperationKey(UniqueVolumeName("no/such"))), "");
}

TEST_F(DriverArrayTest, ANameIsNoStorageThatAnybodyCouldTake) {
  DeviceRecord record;
  record.key = kDriverDisk;
  record.state = VolumeState::kAttached;
  record.attachable = true;
  record.device_path = "csi-0123456789abcdef";
  EXPECT_FALSE(StorageOf(record));
  record.device_path = "/dev/sdx";
  EXPECT_TRUE(StorageOf(record));
  record.device_path = "csi-0123456789abcdef";
  record.source = MountedSource{"/dev/sdx", 8, 16};
  ASSERT_TRUE(StorageOf(record));
  EXPECT_EQ(StorageOf(record)->name.path, "/dev/sdx");
}

// One driver attaches its volumes, and another does not, though their plugin is one.
TEST_F(DriverArrayTest, ADeviceThatIsNotAttachedMayBeInUseByAnAdministratorToo) {
  SetUpFor("a");
  Start(UnmountVolume(UnmountOf("a")));
  ASSERT_EQ(outcome_, "done");
  node_.ChangeDevice(kDevice, [](FakeDevice& device) { device.claimed = true; });
  UnmountTheDevice();
  EXPECT_THAT(outcome_, StartsWith("CheckDeviceUse: "));
  DeviceRecord record = *devices_.Find(kDriverDisk);
  record.attachable = false;
  devices_.Restore(record);
  UnmountTheDevice();
  EXPECT_EQ(outcome_, "done");
  EXPECT_EQ(log_.Count("may be in use still"), 1);
}

// The node's own disk is never let go of, so such a volume stayed attached for ever.
TEST(FindMountedSourceTest, OfADriversVolumeThatIsADirectoryTheDiskIsNotTheVolumesDevice) {
  FakeKernel kernel;
  FakeDevice disk;
  disk.fs_type = "ext4";
  disk.usage = "filesystem";
  kernel.AddDevice("/dev/vda", disk);
  for (const char* directory : {"/mnt", "/staged"}) kernel.AddDirectory(directory, 0750);
  ASSERT_TRUE(kernel.Call(Mount{"ext4", "/dev/vda", {"/mnt", ""}, {}}, {}).ok());
  ASSERT_TRUE(kernel.Call(MakeDirectory{.path = {"/mnt", "v"}}, {}).ok());
  ASSERT_TRUE(kernel.Call(BindMount{.source = {"/mnt", "v"}, .target = {"/staged", ""}}, {}).ok());
  const auto find = [&](const char* place, const std::string& domain) {
    const auto found = FindMountedSource(kernel, {place, ""}, domain, {});
    return found.ok() && *found ? (*found)->path : "";
  };
  EXPECT_EQ(find("/staged", kDriverLane), "");
  EXPECT_EQ(find("/mnt", kDriverLane), "/dev/vda") << "the whole filesystem is the volume's";
  EXPECT_EQ(find("/staged", "portal:1"), "/dev/vda");
  EXPECT_EQ(find("/staged", "/mnt"), "") << "the disk has what the volume hangs with";
  EXPECT_EQ(find("/staged", "/elsewhere"), "/dev/vda");
}

TEST_F(DriverArrayTest, EffectsOfAnyOtherPluginHangWithWhatItSays) {
  array_.driver = "";
  Attach();
  ASSERT_EQ(outcome_, "done");
  EXPECT_THAT(kernel_.Domains(), Each(std::string("array")));
  MountTheDevice();
  ASSERT_EQ(outcome_, "done");
  EXPECT_THAT(kernel_.DomainsOf("Mount"), ElementsAre("array"));
  UnmountTheDevice();
  ASSERT_EQ(outcome_, "done");
  EXPECT_THAT(kernel_.DomainsOf("CheckDeviceUse"), ElementsAre("array"));
}

}  // namespace
}  // namespace volumed
