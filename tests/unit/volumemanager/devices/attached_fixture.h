// AttachedTest: a volume manager with volumes that are attached to the node, on fake operations.
#pragma once

#include <string>
#include <vector>

#include "unit/volumemanager/manager_fixture.h"

namespace volumed {

class AttachedTest : public ManagerTest {
 protected:
  static constexpr const char* kPlugin = "test.io/array";

  static UniqueVolumeName Device(const std::string& volume) {
    return UniqueVolumeName(std::string(kPlugin) + "/" + volume);
  }
  // A volume, the claim that has it, and a pod that uses the claim.
  static std::string Volume(const std::string& name) {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + name +
           "}\nspec:\n  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"
           "  flexVolume: {driver: test.io/array}\n"
           "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " +
           name + ", namespace: default, uid: claim-" + name +
           "}\nspec:\n  accessModes: [ReadWriteOnce]\n  volumeName: " + name +
           "\n  resources: {requests: {storage: 1Gi}}\n";
  }
  static std::string User(const std::string& pod, const std::string& volume) {
    return PodManifest(pod, {"v: persistentVolumeClaim: {claimName: " + volume + "}"});
  }

  // Failures of operations.
  static Error NotApplied(Code code = Code::kUnavailable) {
    return Error::NotApplied(code, "the array");
  }
  static Error MaybeApplied() { return Error::MaybeApplied(Code::kDeadlineExceeded, "the array"); }

  // What was done since the last call, in order: "attach disk", "mount disk for a".
  std::vector<std::string> Done() {
    std::vector<std::string> done;
    for (; seen_ < operations().calls.size(); ++seen_) {
      const FakeVolumeOperations::Call& call = operations().calls[seen_];
      if (call.key.is_device()) {
        const std::string name = call.key.device.str();
        done.push_back(call.operation + " " + name.substr(name.rfind('/') + 1));
      } else {
        done.push_back(call.operation + " " + call.key.spec.str() + " for " + call.key.pod.str());
      }
    }
    return done;
  }
  // An agent before this one has bound the claims of these volumes.
  void BindBefore(const std::string& volumes) {
    StartAgent();
    for (const std::string& source : sources) Deliver(volumes, source);
  }
  void Restart(const std::string& boot_id = "boot-1") {
    StartAgent(boot_id);
    seen_ = 0;
  }
  // The row that the operation layer writes.
  void LeaveDevice(const std::string& volume, VolumeState state,
                   const std::string& boot_id = "boot-1", const std::string& spec = "",
                   bool rest_of_mount = false) {
    DeviceRecord device;
    device.key = Device(volume);
    device.plugin_name = kPlugin;
    device.spec = SpecName(spec.empty() ? volume : spec);
    device.device_mount_path = "/var/lib/volumed/plugins/test.io/array/mounts/" + volume;
    device.state = state;
    device.boot_id = BootId(boot_id);
    device.attachable = true;
    device.device_path = "/dev/" + volume;
    device.limit_key = "storage-limits-fake";
    device.rest_of_mount = rest_of_mount;
    ASSERT_TRUE(store.Put(EncodeRecord(device), kDeviceRecordDurability).ok());
  }
  void LeavePodVolume(const std::string& pod, const std::string& volume) {
    PutPodRecord(pod);
    PodVolumeRecord record;
    record.key = Key(pod, volume);
    record.pod_namespace = "default";
    record.pod_name = pod;
    record.plugin_name = kPlugin;
    record.state = VolumeState::kSetUp;
    record.boot_id = BootId("boot-1");
    record.unique_name = Device(volume);
    record.has_device = true;
    ASSERT_TRUE(store.Put(EncodeRecord(record), kPodVolumeRecordDurability).ok());
  }

  VolumeView ViewOf(const std::string& pod) { return View(pod).volumes.at(0); }
  std::string StepOf(const std::string& pod) {
    const VolumeView view = ViewOf(pod);
    return view.problem ? view.problem->step : "";
  }
  int Events(const std::string& text) const {
    return static_cast<int>(std::count(host_parts.events.begin(), host_parts.events.end(), text));
  }

  size_t seen_ = 0;
};

using Lines = std::vector<std::string>;

}  // namespace volumed
