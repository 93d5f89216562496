// ActualDevices: the devices of volumes that are on this node, or may be, and what operations did
// to them. A part of the actual state of the world.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "operation/attach_requests.h"
#include "operation/volume_operations.h"
#include "operation/volume_state.h"
#include "volumemanager/failure_history.h"

namespace volumed {

// Whether the device of an attachable volume is attached, as far as its plugin has said.
enum class Attachment {
  kUnknown,  // found at the start; the plugin was not asked since
  kAttached,
  kMissing,  // the plugin says that it is not attached, although it should be
};

// The device of a volume, which the pods of the node share.
struct ActualDevice {
  std::string plugin_name;
  SpecName spec;
  // Where the device is mounted, as an absolute path; of a block volume, its global map directory.
  // Empty before the first mount has succeeded.
  std::string device_mount_path;
  bool is_block = false;  // the device is set up, and nothing is mounted
  // A device that needs no attach begins, and ends, as attached.
  VolumeState state = VolumeState::kAttached;
  // ---- only of a device that the agent attaches
  bool attachable = false;
  Attachment attachment = Attachment::kUnknown;
  int64_t missing_since_unix_ms = 0;
  std::string device_path;  // on the node
  std::string limit_key;    // of the slot that it takes; "": it takes none
  // The node was booted since the device was, or may have been, mounted, or the device was found
  // mounted and without a record, and was to be attached since. A rest of that mount may be left,
  // so the device is unmounted before it is detached, unless it was mounted again: whether or not
  // it could be attached again says nothing of that rest. The record tells the next agent.
  bool rest_of_mount = false;
  // As in DeviceRecord.
  bool attach_in_doubt = false;
  // Grows with each operation that begins, and so shows that an answer is too old.
  uint64_t operations = 0;
  // ----
  // The last call may or may not have had its effect (operation/volume_state.h).
  bool uncertain = false;
  bool reconstructed = false;  // found at the start and not verified since
  // The device was found at the start and no record knows it, so it is not known who attached it.
  // It is not detached, unless a pod has wanted it since and this agent has attached it (attaching
  // an attached device has no effect).
  bool unrecorded = false;
  int64_t since_unix_ms = 0;  // when it entered the state

  bool in_flight = false;         // an operation on it runs
  bool uncertain_before = false;  // `uncertain` before the operation that runs
  // How attach, mount, unmount and detach have failed since one of them last succeeded. A growth
  // that has failed is kept by VolumeExpander.
  std::optional<FailureHistory> failure;

  // Set if its record could not be read: then no operation touches the device, except that it is
  // opened for the pods that have it.
  std::string quarantine_reason;

  // The pod that alone may have the volume, by the record that was found at the start; empty as
  // soon as it does not have it any more. What this process has given to a pod, the pod's volume
  // tells.
  PodUid only_pod;

  // ---- only of the device of a block volume
  // Pods have it from an earlier agent of this boot, and this one has not opened it since.
  bool lacks_pin = false;
  std::string pinned_path;  // of its node, once this agent has opened it
  std::string pod_node;     // that a pod has, if the device's record could not be read
};

// What is known when an attach starts.
struct AttachIntent {
  std::string plugin_name;
  SpecName spec;
  std::string limit_key = {};
};

// Threads: the control thread. Blocks: never. REQUIRES, for methods that take a name: the device
// exists, unless the comment says otherwise. Each call ...Started is followed by its ...Done, with
// what the operation has answered; states change by the table of operation/volume_state.h alone.
class ActualDevices {
 public:
  explicit ActualDevices(const Clock& clock) : clock_(clock) {}

  const std::map<UniqueVolumeName, ActualDevice>& all() const { return devices_; }
  // Null if there is none. The pointer is valid until the device is erased.
  const ActualDevice* Find(const UniqueVolumeName& device) const;
  // Adds a device that was found at the start by its record, as AfterRestart leaves it, or else by
  // its mount. It is uncertain. A device that is only attached is as its record says, but
  // unverified.
  void AddReconstructed(const UniqueVolumeName& name, ActualDevice device);
  // Adds the device if it is not there.
  void MountStarted(const UniqueVolumeName& name, const std::string& plugin_name,
                    const SpecName& spec, bool is_block = false);
  // After a failure the device is what it was before if nothing was applied, and uncertain
  // otherwise.
  void MountDone(const UniqueVolumeName& name, const OperationOutcome<MountedDevice>& outcome);
  void UnmountStarted(const UniqueVolumeName& name);
  // On success, erases a device that needs no attach; any other device is still attached.
  void UnmountDone(const UniqueVolumeName& name, const OperationOutcome<Unit>& outcome);
  // Has no effect if the volume has no device. Whatever the result, the device stays mounted.
  void ExpandStarted(const UniqueVolumeName& name);
  void ExpandDone(const UniqueVolumeName& name, const OperationOutcome<ExpandedVolume>& outcome);
  // Has no effect if the volume has no device.
  void Erase(const UniqueVolumeName& name);
  // This agent has the device open. Has no effect if the volume has no device.
  void Pinned(const UniqueVolumeName& name, const std::string& device_path);
  // The pod does not have the volume of this device any more; no effect if it was not found to have
  // it alone, or if there is no device.
  void ReleaseOnlyPod(const UniqueVolumeName& name, const PodUid& pod);
  // The same for all devices, which are returned.
  std::set<UniqueVolumeName> ReleaseOnlyPods(const PodUid& pod);
  // The devices that count against this attach limit, since some of them may be present. Empty if
  // there are none, and if the key is empty. The reference is valid until the next change.
  const std::set<UniqueVolumeName>& OfLimit(const std::string& limit_key) const;

  // Adds the device if it is not there.
  void AttachStarted(const UniqueVolumeName& name, const AttachIntent& intent);
  void AttachDone(const UniqueVolumeName& name, const OperationOutcome<AttachedVolume>& outcome);
  // REQUIRES: the device is attached, or may be, and is not mounted.
  void DetachStarted(const UniqueVolumeName& name);
  // Erases the device on success.
  void DetachDone(const UniqueVolumeName& name, const OperationOutcome<Unit>& outcome);
  // Notes what the plugin has said. Returns true if that differs from what was known.
  bool AttachmentVerified(const UniqueVolumeName& name, bool attached);

  // No operation touches the device until its record is repaired. Adds the device if it does not
  // exist.
  void Quarantine(const UniqueVolumeName& name, const std::string& reason);
  // A pod has such a device from an earlier agent of this boot, by this node.
  void LacksPin(const UniqueVolumeName& name, const std::string& plugin_name,
                const std::string& pod_node);

  // Takes the content of `found`, which is empty afterwards. REQUIRES: this object is empty.
  void TakeOver(ActualDevices& found);

 private:
  void Start(ActualDevice& device, VolumeEvent call);
  void SetLimitKey(const UniqueVolumeName& name, ActualDevice& device,
                   const std::string& limit_key);
  static void BeginAs(ActualDevice& device, bool attachable);

  const Clock& clock_;
  std::map<UniqueVolumeName, ActualDevice> devices_;
  std::map<std::string, std::set<UniqueVolumeName>> by_limit_;  // devices_ by limit_key
  std::map<PodUid, std::set<UniqueVolumeName>> by_only_pod_{};  // devices_ by only_pod
};

// Whether it is mounted and this process has verified that: pods may get binds of it.
bool IsMounted(const ActualDevice& device);
// Whether it is mounted, or set up, at its place, or may be; also what a reboot may have left
// there.
bool MayBeAtItsPlace(const ActualDevice& device);
// Whether some of the device may be on the node: it is in another state than RestingState(), or it
// is uncertain.
bool MayBePresent(const ActualDevice& device);

}  // namespace volumed
