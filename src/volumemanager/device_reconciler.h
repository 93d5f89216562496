// DeviceReconciler: mounts the device of a volume for the first pod that needs it, and unmounts it
// when nobody has the volume any more. It runs for devices that something happened to.
//
// A device is unmounted only when no pod wants the volume, no pod may have anything of it, and
// every source has delivered a complete list.
// Source: kubernetes pkg/kubelet/volumemanager/reconciler/reconciler_common.go@v1.36.2
// (unmountDetachDevices).
#pragma once

#include <functional>
#include <memory>

#include "base/ids.h"
#include "base/scheduler.h"
#include "operation/volume_operations.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/desired_state_of_world.h"
#include "volumemanager/reconcile_queue.h"

namespace volumed {

// Threads: the control thread. Blocks: never.
class DeviceReconciler {
 public:
  // All outlive this.
  struct Parts {
    Scheduler& scheduler;
    const DesiredStateOfWorld& desired;
    ActualStateOfWorld& actual;
    VolumeOperations& operations;
  };
  struct Hooks {
    // Unmounting what is not wanted is allowed.
    std::function<bool()> ready;
    // Something that this pod waits for, or is shown with, has happened.
    std::function<void(const PodUid&)> changed;
    // Nothing of the device of this volume is on the node any more.
    std::function<void(const UniqueVolumeName&, const SpecName&)> gone;
    // Fills in the sizes that the volume has and is to have. May be empty.
    std::function<void(const WantedVolume&, MountDeviceRequest&)> set_sizes;
    // The device is mounted, and verified. May be empty.
    std::function<void(const UniqueVolumeName&)> mounted;
  };

  DeviceReconciler(Parts parts, Hooks hooks);
  DeviceReconciler(const DeviceReconciler&) = delete;
  DeviceReconciler& operator=(const DeviceReconciler&) = delete;

  // Nothing is started before this.
  void Start() { queue_.Start(); }
  void MarkDirty(const UniqueVolumeName& device) { queue_.MarkDirty(device); }
  void MarkAllDirty();
  // Those that wait for the device, or for one another.
  void TellUsers(const UniqueVolumeName& volume) const;

 private:
  void Reconcile(const UniqueVolumeName& name, Wake& wake);
  void StartMount(const UniqueVolumeName& name, Wake& wake);
  void StartUnmount(const UniqueVolumeName& name, const ActualDevice& device, Wake& wake);
  // Pods that want the volume and whose record is written, the first one first.
  std::vector<PodUid> PodsThatMayHave(const UniqueVolumeName& name) const;

  Parts parts_;
  Hooks hooks_;
  ReconcileQueue<UniqueVolumeName> queue_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace volumed
