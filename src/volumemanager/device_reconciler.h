// DeviceReconciler: mounts the device of a volume for the first pod that needs it, and unmounts it
// when nobody has the volume any more. It runs for devices that something happened to.
//
// A device is unmounted only when no pod wants the volume, no pod may have anything of it, and
// every source has delivered a complete list. Where the volume needs it, the device is attached
// before, and detached after that.
// Source: kubernetes pkg/kubelet/volumemanager/reconciler/reconciler_common.go@v1.36.2
// (unmountDetachDevices).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/scheduler.h"
#include "operation/volume_operations.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/attach_ladder.h"
#include "volumemanager/attach_limits.h"
#include "volumemanager/attach_verifier.h"
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
    const VolumePluginMgr& plugins;
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
    // A warning that this pod should hear of.
    std::function<void(const PodUid&, const std::string& reason, const std::string& message)> event;
  };

  DeviceReconciler(Parts parts, Hooks hooks);
  DeviceReconciler(const DeviceReconciler&) = delete;
  DeviceReconciler& operator=(const DeviceReconciler&) = delete;

  // Nothing is started before this.
  void Start() {
    queue_.Start();
    verifier_.Start();
  }
  void MarkDirty(const UniqueVolumeName& device) { queue_.MarkDirty(device); }
  void MarkAllDirty();
  // Those that wait for the device, or for one another.
  void TellUsers(const UniqueVolumeName& volume) const;

  // How often plugins are asked which volumes are attached; zero: never again.
  void AttachLimitsChanged() { SlotMayBeFree(); }
  void SetVerifyAttachedPeriod(Duration period) { verifier_.SetPeriod(period); }
  // For those who show why a device waits.
  const AttachLimits& limits() const { return limits_; }
  const AttachVerifier& verifier() const { return verifier_; }

 private:
  void Reconcile(const UniqueVolumeName& name, Wake& wake);
  void StartMount(const UniqueVolumeName& name, Wake& wake);
  void StartUnmount(const UniqueVolumeName& name, const ActualDevice& device, Wake& wake);
  // In device_reconciler_attach.cc.
  bool IsAttachable(const UniqueVolumeName& name, const ActualDevice* device) const;
  void ReconcileAttachable(const UniqueVolumeName& name, const ActualDevice* device, Wake& wake);
  void StartAttach(const UniqueVolumeName& name, Wake& wake);
  void StartDetach(const UniqueVolumeName& name, const ActualDevice& device, Wake& wake);
  void WaitsNoMore(const UniqueVolumeName& name);
  // Those that wait for one are looked at again.
  void SlotMayBeFree();
  void TellRefused(const std::vector<PodUid>& pods, const WantedVolume& wanted,
                   const Error& error) const;
  void Verified(const UniqueVolumeName& name);

  // Pods that want the volume and whose record is written, the first one first.
  std::vector<PodUid> PodsThatMayHave(const UniqueVolumeName& name) const;

  Parts parts_;
  Hooks hooks_;
  ReconcileQueue<UniqueVolumeName> queue_;
  AttachLimits limits_;
  AttachVerifier verifier_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace volumed
