// Which lane each operation on a driver's volume waits in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "operation/attach_operations.h"
#include "operation/device_operations.h"
#include "operation/expand_operations.h"
#include "operation/map_operations.h"
#include "operation/mount_operations.h"
#include "operation/pin_operations.h"
#include "operation/provision_operations.h"
#include "operation/reclaim_operations.h"
#include "unit/operation/driver_operations_fixture.h"
#include "unit/pluginmgr/stateful_plugin.h"

namespace volumed {
namespace {

using ::testing::Each;

class DriverTraitsTest : public DriverOperationsTest {
 protected:
  void InitStateful(bool works_in_lane, const std::string& domain) {
    Init(std::make_unique<StatefulPlugin>(
        "x/v", stateful_,
        StatefulPlugin::Switches{.fault_domain = domain, .works_in_lane = works_in_lane}));
  }
  static PersistentVolume Volume() {
    PersistentVolume volume;
    volume.metadata.name = "disk";
    return volume;
  }
  static VolumeSpec Spec() { return VolumeSpec::FromPersistentVolume(Volume(), false); }
  static ProvisionRequest Provision() {
    ProvisionRequest request;
    request.plugin_name = "x/v";
    request.planned = Volume();
    return request;
  }
  MountDeviceRequest DeviceRequest(bool attachable) {
    MountDeviceRequest request{kDriverDisk, Spec(), {}};
    request.attachable = attachable;
    return request;
  }
  static ExpandRequest Growth() {
    return {.volume = kDriverDisk,
            .spec = Spec(),
            .target = {},
            .pods = {},
            .claim = "",
            .new_size = {},
            .old_size = {},
            .decision = {}};
  }
  // The lanes of the operations that need nothing of the volume on the node.
  std::vector<std::string> LanesWithoutPlace() {
    const auto volume = std::make_shared<const PersistentVolume>(Volume());
    return {TraitsOf(AttachVolume({kDriverDisk, Spec(), {}})).domain.lane,
            TraitsOf(MountDevice(DeviceRequest(/*attachable=*/true))).domain.lane,
            TraitsOf(ExpandVolume(Growth())).domain.lane,
            TraitsOf(ReclaimVolume(ReclaimRequest{volume, ReclaimAction::kDelete})).domain.lane,
            TraitsOf(ProvisionVolume(Provision())).domain.lane,
            TraitsOf(UndoProvision(Provision())).domain.lane};
  }
  void RecordDevice(const std::string& domain) {
    DeviceRecord record;
    record.key = kDriverDisk;
    record.plugin_name = "x/v";
    record.fault_domain = domain;
    record.boot_id = BootId("boot-a");
    record.attachable = true;
    record.mapped = MappedDeviceRecord{.path = "/dev/sdx"};
    devices_.Restore(record);
  }
  UnmountRequest RecordPod(const std::string& domain) {
    PodVolumeRecord record;
    record.key = Key("a", "disk");
    record.state = VolumeState::kSetUp;
    record.boot_id = BootId("boot-a");
    record.fault_domain = domain;
    volumes_->Restore(record);
    return {PodUid("a"), SpecName("disk"), "x/v", "default/a", kDriverDisk};
  }

  StatefulStorage stateful_;
};

TEST_F(DriverTraitsTest, WhatADriverWorksForHasItsLaneAlsoWhereNothingIsOnTheNode) {
  InitStateful(/*works_in_lane=*/true, kDriverLane);
  EXPECT_THAT(LanesWithoutPlace(), Each(std::string(kDriverLane)));
  EXPECT_EQ(TraitsOf(MountDevice(DeviceRequest(/*attachable=*/false))).domain.lane, kDriverLane);
}

TEST_F(DriverTraitsTest, AnyOtherPluginsOperationsWaitForADeviceOrAProgramAsBefore) {
  InitStateful(/*works_in_lane=*/false, "portal:1");
  EXPECT_THAT(LanesWithoutPlace(), Each(std::string()));
  EXPECT_EQ(TraitsOf(MountDevice(DeviceRequest(/*attachable=*/false))).domain.lane, "portal:1");
  const OperationTraits attach = TraitsOf(AttachVolume({kDriverDisk, Spec(), {}}));
  EXPECT_FALSE(attach.on_own_filesystem) << "so it has the lane of what waits for a device";
  const auto volume = std::make_shared<const PersistentVolume>(Volume());
  EXPECT_EQ(TraitsOf(ReclaimVolume(ReclaimRequest{volume, ReclaimAction::kDelete})).use,
            DeviceUse::kNone);
}

TEST_F(DriverTraitsTest, ADetachGoesByTheRecordBesideTheSetUpsOfItsDriver) {
  InitStateful(/*works_in_lane=*/false, "");  // as of a plugin that cannot say it any more
  RecordDevice(kDriverLane);
  const OperationTraits detach = TraitsOf(DetachVolume({kDriverDisk, "x/v", SpecName("disk")}));
  EXPECT_EQ(detach.domain.lane, kDriverLane);
  EXPECT_TRUE(detach.takes_away);
  RecordDevice("portal:1");
  const OperationTraits other = TraitsOf(DetachVolume({kDriverDisk, "x/v", SpecName("disk")}));
  EXPECT_EQ(other.domain.lane, "");
  EXPECT_FALSE(other.takes_away);
}

// Of a thousand volumes of one driver no pod was ready before the last of them was staged.
TEST_F(DriverTraitsTest, APodsVolumeIsFinishedBeforeTheNextIsBegun) {
  InitStateful(/*works_in_lane=*/true, kDriverLane);
  RecordDevice(kDriverLane);
  MountRequest mount{{}, Spec(), {}, {}};
  mount.unique_name = kDriverDisk;
  EXPECT_FALSE(TraitsOf(MountVolume(mount)).finishes) << "it has no device";
  mount.has_device = true;
  EXPECT_TRUE(TraitsOf(MountVolume(mount)).finishes);
  EXPECT_FALSE(TraitsOf(MountDevice(DeviceRequest(/*attachable=*/false))).finishes);
  EXPECT_FALSE(TraitsOf(AttachVolume({kDriverDisk, Spec(), {}})).finishes);
  EXPECT_FALSE(TraitsOf(UnmountVolume(RecordPod(kDriverLane))).finishes);
  UnmountDeviceRequest unmount;
  unmount.device = kDriverDisk;
  EXPECT_TRUE(TraitsOf(UnmountDevice(unmount)).finishes);
  EXPECT_TRUE(TraitsOf(DetachVolume({kDriverDisk, "x/v", SpecName("disk")})).finishes);
}

// Two pods' calls about one volume would be with the driver at once.
TEST_F(DriverTraitsTest, OneVolumeOfADriverIsTakenFromOnePodAtATime) {
  InitStateful(/*works_in_lane=*/true, kDriverLane);
  const UnmountRequest request = RecordPod(kDriverLane);
  EXPECT_EQ(TraitsOf(UnmountVolume(request)).use, DeviceUse::kExclusive);
  EXPECT_EQ(TraitsOf(UnmapVolume(request)).use, DeviceUse::kExclusive);
  EXPECT_EQ(TraitsOf(UnmountVolume(request)).domain.lane, kDriverLane);
  UnmountRequest alone = request;
  alone.device = UniqueVolumeName();
  EXPECT_EQ(TraitsOf(UnmountVolume(alone)).use, DeviceUse::kNone);
  EXPECT_EQ(TraitsOf(UnmountVolume(RecordPod("portal:1"))).use, DeviceUse::kShared);
}

// Two pods' volumes of which no record is left were unpublished at once.
TEST_F(DriverTraitsTest, WhatNoRecordKnowsMayBeADriversAndWasTakenFromTwoPodsAtOnce) {
  InitStateful(/*works_in_lane=*/true, kDriverLane);
  const UnmountRequest found{PodUid("b"), SpecName("disk"), "x/v", "default/b", kDriverDisk};
  EXPECT_EQ(TraitsOf(UnmountVolume(found)).use, DeviceUse::kExclusive);
  EXPECT_EQ(TraitsOf(UnmapVolume(found)).use, DeviceUse::kExclusive);
}

TEST_F(DriverTraitsTest, OpeningADeviceAgainWaitsForTheDeviceAndForNoDriver) {
  InitStateful(/*works_in_lane=*/true, kDriverLane);
  RecordDevice(kDriverLane);
  EXPECT_EQ(TraitsOf(PinDevice(kDriverDisk, "x/v")).domain.lane, "/dev/sdx");
  RecordDevice("portal:1");
  EXPECT_EQ(TraitsOf(PinDevice(kDriverDisk, "x/v")).domain.lane, "portal:1");
}

}  // namespace
}  // namespace volumed
