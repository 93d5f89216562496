// DeviceReconciler: mounts the device of a volume for the first pod that needs it, and unmounts it
// when no pod has the volume any more. It runs only for devices to which something happened.
//
// A device is unmounted only if no pod wants the volume, no pod may have any of it, every source
// has delivered a complete list, and no pod names a claim that may turn out to have the volume. If
// the volume needs it, the device is attached before the mount, and detached after the unmount. A
// device that is there for another PersistentVolume than the one that pods want by now goes first.
// Source: kubernetes pkg/kubelet/volumemanager/reconciler/reconciler_common.go@v1.36.2
// (unmountDetachDevices).
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/alive_guard.h"
#include "base/ids.h"
#include "base/scheduler.h"
#include "operation/volume_operations.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/desired_state_of_world.h"
#include "volumemanager/devices/attach_ladder.h"
#include "volumemanager/devices/attach_limits.h"
#include "volumemanager/devices/attach_verifier.h"
#include "volumemanager/readiness.h"
#include "volumemanager/reconcile_queue.h"

namespace volumed {

// Threads: the control thread. Blocks: never. Errors: none; how an operation has failed is in
// ActualDevice::failure, and it is tried again with back-off.
//
// A device is mounted, or attached, only for pods whose record is written and whose records can be
// read. A device whose own record cannot be read is left alone.
class DeviceReconciler {
 public:
  // All members outlive this object.
  struct Parts {
    Scheduler& scheduler;
    const Readiness& readiness;
    const DesiredStateOfWorld& desired;
    ActualStateOfWorld& actual;
    VolumeOperations& operations;
    const VolumePluginMgr& plugins;
  };
  struct Hooks {
    // Something has happened for which this pod waits, or which is shown with it.
    std::function<void(const PodUid&)> changed;
    // Nothing of the device of this volume is on the node any more. The SpecName is that of the
    // volume.
    std::function<void(const UniqueVolumeName&, const SpecName&)> gone;
    // The device could not be taken from the node. May be empty.
    std::function<void(const UniqueVolumeName&)> stays;
    // Whether a pod that names a claim may get this volume once that claim is decided
    // (ClaimsAreDecided). May be empty.
    std::function<bool(const SpecName&)> may_be_wanted;
    // Fills in the size that the volume has and the size that it is to have. May be empty.
    std::function<void(const WantedVolume&, MountDeviceRequest&)> set_sizes;
    // The device is mounted and verified. May be empty.
    std::function<void(const UniqueVolumeName&)> mounted;
    // Records a warning for this pod.
    std::function<void(const PodUid&, const std::string& reason, const std::string& message)> event;
  };

  DeviceReconciler(Parts parts, Hooks hooks);
  DeviceReconciler(const DeviceReconciler&) = delete;
  DeviceReconciler& operator=(const DeviceReconciler&) = delete;

  // No operation is started before this is called.
  void Start() {
    queue_.Start();
    verifier_.Start();
  }
  // Something has happened for which the device may have waited. It need not be known.
  void MarkDirty(const UniqueVolumeName& device) { queue_.MarkDirty(device); }
  void MarkAllDirty();
  // A new decision about claims was made: pods want what they are to have by it.
  void ClaimsAreDecided();
  // The devices that pods have from an earlier agent and that this one has not opened.
  void MarkUnpinnedDirty();
  // Tells the pods that wait for the device, and pods that wait for one another because of it. Only
  // pods that want the volume are told (Hooks::changed).
  void TellUsers(const UniqueVolumeName& volume) const;

  // AttachLimitsChanged: limits may have changed, so devices that wait for a slot are looked at
  // again. SetVerifyAttachedPeriod: how often plugins are asked which volumes are attached
  // (AttachVerifier::SetPeriod).
  void AttachLimitsChanged() { SlotMayBeFree(); }
  void SetVerifyAttachedPeriod(Duration period) { verifier_.SetPeriod(period); }
  // These two show why a device waits.
  const AttachLimits& limits() const { return limits_; }
  const AttachVerifier& verifier() const { return verifier_; }

 private:
  void Reconcile(const UniqueVolumeName& name, Wake& wake);
  void StartMount(const UniqueVolumeName& name, Wake& wake);
  void StartUnmount(const UniqueVolumeName& name, const ActualDevice& device, Wake& wake);
  // Opens the device of a block volume if a pod has it that is not mapped again.
  void FollowPin(const UniqueVolumeName& name, const ActualDevice& device, Wake& wake);
  // The following are in device_reconciler_attach.cc.
  bool IsAttachable(const UniqueVolumeName& name, const ActualDevice* device) const;
  void ReconcileAttachable(const UniqueVolumeName& name, const ActualDevice* device, Wake& wake);
  void StartAttach(const UniqueVolumeName& name, Wake& wake);
  void StartDetach(const UniqueVolumeName& name, const ActualDevice& device, Wake& wake);
  void WaitsNoMore(const UniqueVolumeName& name);
  // Looks again at devices that wait for a slot.
  void SlotMayBeFree();
  void TellRefused(const std::vector<PodUid>& pods, const WantedVolume& wanted,
                   const Error& error) const;
  void Verified(const UniqueVolumeName& name);

  // Whether a pod wants the device, and not for another volume than the one that it is there for
  // (other_volume.h): then it has to leave its place first.
  bool IsWantedNow(const UniqueVolumeName& name) const;
  // Whether a device that no pod wants, by what is known, may be taken from the node; if that is to
  // be seen by the next decision about claims, it is looked at again then.
  bool MayLeave(const UniqueVolumeName& name, const ActualDevice& device);
  // Puts those of the pods first that want the device as other pods have it by their own records,
  // also if its record is lost or says nothing of a place: nobody else is let in
  // (CheckNotHadOtherwise). If nobody has it, and one that wanted it was not let in, whoever wants
  // it under another name goes first. Whether there is one of the former.
  bool PutFirstWhoMayJoin(const UniqueVolumeName& name, std::vector<PodUid>& pods) const;

  // Of these pods, those that want the device as it is there already, or else as the first of them
  // does that may join: as a filesystem or raw. REQUIRES: there is one.
  std::vector<PodUid> PodsOfOneKind(const UniqueVolumeName& name, std::vector<PodUid> pods) const;

  // Pods that want the volume and whose record is written, in the order of their uids.
  std::vector<PodUid> PodsThatMayHave(const UniqueVolumeName& name) const;

  Parts parts_;
  Hooks hooks_;
  ReconcileQueue<UniqueVolumeName> queue_;
  AttachLimits limits_;
  AttachVerifier verifier_;
  std::set<UniqueVolumeName> await_claims_;  // devices that stay until claims are decided
  AliveGuard alive_;
};

}  // namespace volumed
