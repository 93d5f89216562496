// PersistentVolumesTest: a claim, its volume of a local disk, and what the operation layer records
// of them, on fake operations.
#pragma once

#include <optional>
#include <string>

#include "unit/volumemanager/manager_fixture.h"

namespace volumed {

class PersistentVolumesTest : public ManagerTest {
 protected:
  static inline const UniqueVolumeName kDevice{"kubernetes.io/local-volume/disk"};

  void SetUp() override { StartAgent(); }

  static std::string Volume(const std::string& name, const std::string& more = "",
                            const std::string& mode = "ReadWriteOnce",
                            const std::string& source = "local: {path: /dev/vdb}") {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + name +
           "}\nspec:\n  capacity: {storage: 1Gi}\n  accessModes: [" + mode + "]\n  " + source +
           "\n  nodeAffinity: {required: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, "
           "operator: In, values: [n1]}]}]}}\n" +
           more;
  }
  static std::string Claim(const std::string& name, const std::string& more = "",
                           const std::string& mode = "ReadWriteOnce") {
    return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
           ", namespace: default, uid: claim-" + name + "}\nspec:\n  accessModes: [" + mode +
           "]\n  resources: {requests: {storage: 1Gi}}\n" + more;
  }
  static std::string Storage() { return Volume("disk") + Claim("data"); }

  // The rows that the operation layer writes.
  void LeaveDevice(VolumeState state, const std::string& only_pod = "") {
    DeviceRecord device;
    device.key = kDevice;
    device.only_pod = PodUid(only_pod);
    device.plugin_name = "kubernetes.io/local-volume";
    device.spec = SpecName("disk");
    device.device_mount_path = "/var/lib/volumed/plugins/kubernetes.io/local-volume/mounts/disk";
    device.state = state;
    device.boot_id = BootId("boot-1");
    ASSERT_TRUE(store.Put(EncodeRecord(device), kDeviceRecordDurability).ok());
  }
  void LeaveRecords() {
    LeaveDevice(VolumeState::kDeviceMounted);
    PodVolumeRecord record;
    record.key = Key("a", "disk");
    record.pod_namespace = "default";
    record.pod_name = "a";
    record.plugin_name = "kubernetes.io/local-volume";
    record.state = VolumeState::kSetUp;
    record.boot_id = BootId("boot-1");
    record.unique_name = kDevice;
    record.has_device = true;
    ASSERT_TRUE(store.Put(EncodeRecord(record), kPodVolumeRecordDurability).ok());
  }

  size_t DeviceCalls(const std::string& operation) {
    return operations().Count(operation, OperationKey(kDevice));
  }
  std::optional<ClaimBindingRecord> Binding(const std::string& volume = "disk") const {
    const auto row = store.Find(kClaimBindingRecordKind, volume);
    if (!row) return std::nullopt;
    return DecodeClaimBindingRecord(*row).value();
  }
  std::string Problem(const std::string& pod) {
    const VolumeView volume = View(pod).volumes.at(0);
    return volume.problem ? volume.problem->step + ": " + volume.problem->message : "";
  }
  bool ProblemHas(const std::string& pod, const std::string& text) {
    return Problem(pod).find(text) != std::string::npos;
  }
};

}  // namespace volumed
