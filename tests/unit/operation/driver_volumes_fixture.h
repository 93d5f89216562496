// DriverVolumesTest: operations on the volumes of a driver, which is a script; a node and a store
// that outlive the agent, and what a start finds on the one that the other does not have.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "operation/attach_operations.h"
#include "operation/device_operations.h"
#include "operation/driver_storage.h"
#include "operation/map_operations.h"
#include "operation/mount_operations.h"
#include "operation/node_volume_operations.h"
#include "operation/reclaim_operations.h"
#include "unit/operation/driver_plugin.h"
#include "unit/operation/load_records.h"
#include "unit/operation/operation_parts_fixture.h"
#include "unit/operation/test_domains.h"

namespace volumed {

class DriverVolumesTest : public OperationHostFixture {
 protected:
  static constexpr const char* kLane = "csi:disks.test.io";
  static inline const UniqueVolumeName kDriversVolume{"kubernetes.io/csi/disks.test.io^vol-1"};
  static inline const SpecName kSpec{"disk"};

  DriverVolumesTest() {
    node_.AddDirectory("/var/lib/volumed/pods", 0750);
    node_.AddDevice("/dev/vdb");
    script_.device = "/dev/vdb";
    Init(std::make_unique<DriverPlugin>(script_));
    Be({.has_answered = true, .width = 4});
    Restart();
  }

  // A new agent on the same node and store.
  void Restart(const std::string& boot = "boot-a") {
    operations_.reset();
    devices_ =
        std::make_unique<DeviceRecordKeeper>(store_, clock_, logger_, observer_, BootId(boot));
    storage_ = std::make_unique<StorageGuard>(node_, store_, clock_, logger_, BootId(boot));
    OperationParts parts{plugins_, host_, logger_, store_, *devices_, *storage_};
    parts.unrecorded = unrecorded_;
    operations_ = std::make_unique<NodeVolumeOperations>(scheduler_, std::move(parts), observer_,
                                                         BootId(boot), &domains_);
    operations_->Restore(LoadPodVolumeRecords(store_), LoadDeviceRecords(store_));
    script_.calls.clear();
  }
  void Be(LaneHealth health) {
    domains_.health[kLane] = health;
    if (operations_) operations_->LanesChanged();
  }
  void DriverIsAway() {
    Be({.has_answered = true, .width = 4, .closed = true, .closed_to_teardown = true});
  }

  static PersistentVolume Volume(const std::string& name, const std::string& handle) {
    PersistentVolume volume;
    volume.metadata.name = name;
    CsiPersistentVolumeSource source;
    source.driver = kTestDriver;
    source.volume_handle = handle;
    volume.spec.source = source;
    return volume;
  }
  VolumeSpec Spec() const {
    PersistentVolume volume = Volume(spec_.str(), "vol-1");
    if (is_block_) volume.spec.volume_mode = VolumeMode::kBlock;
    return VolumeSpec::FromPersistentVolume(volume, false);
  }
  static PodPtr PodNamed(const std::string& uid) {
    auto pod = std::make_shared<Pod>();
    pod->metadata.uid = uid;
    pod->metadata.name = uid;
    pod->metadata.name_space = "default";
    return pod;
  }
  // The first failure of several; they are made in this order.
  static std::string All(std::initializer_list<std::string> outcomes) {
    for (const std::string& outcome : outcomes) {
      if (!outcome.empty()) return outcome;
    }
    return "";
  }
  // "" on success, "waits", or the step and the error.
  template <typename Op>
  std::string Start(Op operation) {
    const auto outcome = std::make_shared<std::string>("waits");
    operations_->ResetBackoff(operation.key());
    const StartResult started = operations_->Start(
        std::move(operation), [outcome](const OperationOutcome<typename Op::Value>& got) {
          *outcome = got.failure ? got.failure->step + ": " + got.failure->error.message() : "";
        });
    EXPECT_EQ(started, StartResult::kStarted);
    scheduler_.RunFor(std::chrono::milliseconds(1));
    return *outcome;
  }
  std::string Attach() { return Start(AttachVolume({kDriversVolume, Spec(), {PodUid("a")}, ""})); }
  std::string Stage(bool attached, bool reconstructed = false) {
    MountDeviceRequest request{kDriversVolume, Spec(), {PodUid("a")}};
    request.attachable = attached;
    request.first_pod = PodNamed("a");
    request.reconstructed = reconstructed;
    return Start(MountDevice(std::move(request)));
  }
  MountRequest MountOf(const std::string& pod, bool reconstructed = false) {
    MountRequest request{.target = PodVolumeTarget(paths_, PodNamed(pod), kDriverPlugin, spec_),
                         .spec = Spec(),
                         .sub_paths = {},
                         .nested_mount_points = {}};
    request.unique_name = kDriversVolume;
    request.has_device = true;
    request.is_remount = reconstructed && !is_block_;
    request.reconstructed = reconstructed;
    request.one_pod_only = one_pod_only_;
    return request;
  }
  std::string Publish(const std::string& pod, bool reconstructed = false) {
    MountRequest request = MountOf(pod, reconstructed);
    if (is_block_) return Start(MapVolume(std::move(request)));
    return Start(MountVolume(std::move(request)));
  }
  std::string Unpublish(const std::string& pod) {
    UnmountRequest request{PodUid(pod), spec_, kDriverPlugin, "default/" + pod, kDriversVolume};
    if (is_block_) return Start(UnmapVolume(std::move(request)));
    return Start(UnmountVolume(std::move(request)));
  }
  std::string Unstage() {
    return Start(UnmountDevice(
        {kDriversVolume, kDriverPlugin, kSpec, Device().device_mount_path, is_block_}));
  }
  std::string Detach() { return Start(DetachVolume({kDriversVolume, kDriverPlugin, kSpec})); }
  std::string Remove(const std::string& pod) {
    return Start(RemovePod(PodUid(pod), "default/" + pod, PodRecordEnd::kRemove));
  }
  // A delete of the volume of that name and handle, while "disk" is known.
  std::string Delete(const std::string& name, const std::string& handle) {
    ReclaimRequest request{std::make_shared<const PersistentVolume>(Volume(name, handle)),
                           ReclaimAction::kDelete};
    if (name != "disk" && disk_is_known_) {
      request.others = {std::make_shared<const PersistentVolume>(Volume("disk", "vol-1"))};
    }
    return Start(ReclaimVolume(std::move(request)));
  }
  // What a start finds of this pod after the records were lost: its mount, which is there.
  UnrecordedMount LeftBy(const std::string& pod, UniqueVolumeName volume = kDriversVolume) {
    const std::string place = paths_.GetPodVolumeDir(PodUid(pod), kDriverPlugin, kSpec).Display();
    node_.AddDirectory(place + "/mount");
    EXPECT_TRUE(node_.Call(Mount{"tmpfs", "tmpfs", {place + "/mount", ""}, {}}, {}).ok());
    UnrecordedMount left;
    left.plugin = kDriverPlugin;
    left.volume = std::move(volume);
    left.spec = kSpec;
    left.pod = PodUid(pod);
    left.places = {place};
    return left;
  }
  void UnmountLeftBy(const std::string& pod) {
    node_.UnmountBelow(
        paths_.GetPodVolumeDir(PodUid(pod), kDriverPlugin, kSpec).Below("mount").Display());
  }
  DeviceRecord Device() const { return devices_->Find(kDriversVolume).value_or(DeviceRecord{}); }

  DriverScript script_;
  TestDomains domains_;
  std::unique_ptr<DeviceRecordKeeper> devices_;
  std::unique_ptr<StorageGuard> storage_;
  std::unique_ptr<NodeVolumeOperations> operations_;
  SpecName spec_ = kSpec;  // of the PersistentVolume whose handle is vol-1
  bool is_block_ = false;
  bool one_pod_only_ = false;
  bool disk_is_known_ = false;
};

}  // namespace volumed
