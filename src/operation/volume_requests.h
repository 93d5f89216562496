// Requests and answers of the operations on volumes. Those of the attach pipeline are in
// attach_requests.h.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/quantity.h"
#include "mounter/mounter.h"
#include "mounter/volume_target.h"
#include "operation/volume_state.h"
#include "pluginmgr/volume_options.h"
#include "pluginmgr/volume_plugin.h"
#include "volume/claim_binding.h"
#include "volume/expansion_decision.h"
#include "volume/storage_name.h"
#include "volume/volume_spec.h"

namespace volumed {

// A container's mount of a part of a volume.
struct SubPathRequest {
  std::string container;
  int index = 0;         // of the volumeMount in the container
  std::string sub_path;  // expanded, relative, without ".."
  bool read_only = false;
  friend bool operator==(const SubPathRequest&, const SubPathRequest&) = default;
};

// Where a container's mount of a part of a volume is on the node; `host_path` is absolute.
struct SubPathMount {
  std::string container;
  int index = 0;
  std::string host_path;
  friend bool operator==(const SubPathMount&, const SubPathMount&) = default;
};

// A volume that is to be set up, or whose content is to be brought up to date.
struct MountRequest {
  VolumeTarget target;
  VolumeSpec spec;
  std::vector<SubPathRequest> sub_paths;
  // Directories inside the volume that other mounts of the containers need, relative to its root;
  // see NestedMountPoints in volumemanager/volume_inputs.h.
  std::vector<std::string> nested_mount_points;
  bool is_remount = false;     // it is set up: bring its content up to date
  bool reconstructed = false;  // it was found at the start, uncertain
  // Set for a persistent volume, which pods share; else empty.
  UniqueVolumeName unique_name = {};
  bool has_device = false;     // it is bound from the device of that name
  std::string claim_uid = {};  // of a persistent volume: its owner
  // The filesystem that was found mounted in the volume's place at the agent's start, with all its
  // sub-paths; "" for a directory. nullopt: the volume was not found, or that is not known.
  std::optional<std::string> found_as = std::nullopt;
  bool with_many = false;  // see OperationLanes::Enter
  // No other pod may have the volume as long as this one does (ReadWriteOncePod).
  bool one_pod_only = false;
  std::string selinux_label = {};  // of the mount as a whole; empty: none

  const PodVolumeKey& key() const { return target.key; }
  // The place, if a CO gave it: whoever else gets a volume is a pod.
  std::optional<SafePath> given_place() const {
    return target.pod == nullptr ? std::optional<SafePath>(target.place) : std::nullopt;
  }
  // The device from which it is bound; empty if there is none.
  UniqueVolumeName device() const { return has_device ? unique_name : UniqueVolumeName(); }
};

// Where a block volume's device is.
struct MappedDevice {
  std::string device_path;  // "/dev/sdb"
  // The pod's device node in the global map directory, or the node at the place that a CO gave.
  std::string node_path;
  friend bool operator==(const MappedDevice&, const MappedDevice&) = default;
};

// A volume that is set up, or a block volume that is mapped.
struct MountedVolume {
  std::string plugin_name;
  // For a block volume: the pod's link to the device, or the node at the place that a CO gave.
  std::string host_path;
  Attributes attributes;
  std::vector<SubPathMount> sub_paths;
  // Between which wall times the content is good, as of tokens that expire; nullopt: it does not
  // age.
  std::optional<Freshness> freshness;
  std::optional<MappedDevice> mapped = std::nullopt;  // for a block volume
  // The volume is in its place as an agent before this one has made it, but what it should hold by
  // now is not known, since one of its Secrets is missing.
  bool content_unknown = false;
  // Nothing was tried: the volume may hang with another filesystem than the agent's own, so it
  // cannot be made together with others.
  bool left_out = false;
};

// A volume that is to be taken from a pod. If it has a record, that says more of it.
struct UnmountRequest {
  PodUid pod;
  SpecName spec;
  std::string plugin_name;
  std::string pod_display_name;  // "namespace/name", for logs
  UniqueVolumeName device = {};  // as in the mount
  // What the plugin constructed from the disk, if the volume was found and no record knew it.
  std::optional<VolumeSpec> constructed = std::nullopt;
  bool with_many = false;  // see OperationLanes::Enter
  // Where a CO had the volume published (given_place.h); nullopt: it is a pod's. It says where a
  // volume without a record is.
  std::optional<SafePath> place = std::nullopt;

  PodVolumeKey key() const { return {pod, spec}; }
};

// The device of a volume that is to be mounted for all pods of the node, or set up as a block
// device.
struct MountDeviceRequest {
  UniqueVolumeName device;
  VolumeSpec spec;
  // The pods that wait for it: a failure is an event of each.
  std::vector<PodUid> pods;
  // The fsGroup of the first of these pods, for plugins that give the files to it when they mount
  // the device.
  std::optional<int64_t> fs_group = std::nullopt;
  // Some of these pods only read; `spec` is read-only if all of them do.
  bool some_pods_only_read = false;
  // The first of these pods, for volumes that are attachable or block volumes.
  PodPtr first_pod = nullptr;
  // The size in the claim's status; zero: not known.
  Quantity size = {};
  // The size that it is to have; a filesystem that can only be grown unmounted is grown before the
  // mount.
  std::optional<Quantity> grow_to = std::nullopt;
  // It was attached: the mount waits for its device.
  bool attachable = false;
  bool reconstructed = false;      // it was found at the start, and was not verified since
  std::string selinux_label = {};  // as in MountRequest
  // An existing directory, in which a CO wants the device (given_place.h); nullopt: it comes to the
  // plugin's own place. Of a block volume nothing is put there: what is recorded is that its device
  // is set up for this place.
  std::optional<SafePath> place = std::nullopt;
};

// A device that is mounted; `device_mount_path` is absolute, and the global map directory of a
// block volume, or the place that a CO gave.
struct MountedDevice {
  std::string plugin_name;
  std::string device_mount_path;
  std::string device_path = {};  // for an attachable volume
  Quantity size = {};            // as in the request
};

// Makes a volume that is on the node larger. The sizes are in bytes, as quantities. Where its
// device is, if a CO gave that place, the device's row says.
struct ExpandRequest {
  UniqueVolumeName volume;
  VolumeSpec spec;
  VolumeTarget target;       // of a pod that has it, if its plugin mounts no devices
  std::vector<PodUid> pods;  // all that have it, for events
  std::string claim;         // "namespace/name", for events
  Quantity new_size;
  Quantity old_size;
  // What a failure would mean, for events.
  ExpansionDecision decision;
};

// What a growth has done.
struct ExpandedVolume {
  // What was done, for people; may be empty.
  std::string note;
};

// The device of a volume that no pod has any more. Its record, if there is one, has precedence.
struct UnmountDeviceRequest {
  UniqueVolumeName device;
  std::string plugin_name;
  SpecName spec;
  std::string device_mount_path;
  bool is_block = false;
  // As in MountDeviceRequest, with the same path in `device_mount_path`.
  std::optional<SafePath> place = std::nullopt;
  // What is at that place, for a device without a record: its place does not say it. `spec` is its
  // name.
  std::optional<VolumeSpec> constructed = std::nullopt;
};

// What shall be done with a volume that its claim has left.
struct ReclaimRequest {
  std::shared_ptr<const PersistentVolume> volume;
  ReclaimAction action = ReclaimAction::kNone;
  std::string claim_uid = {};  // of the claim to which it was bound
  // All other volumes that are known: none of them may have its data in the same place. Who has
  // what a driver has, the StorageGuard knows by itself.
  std::vector<std::shared_ptr<const PersistentVolume>> others = {};
  // The pods of this node: what they use on it without a PersistentVolume (a hostPath) may lie in
  // the volume, even if they are not set up yet, as after a reboot.
  std::vector<std::shared_ptr<const Pod>> pods = {};
  // Brings both lists up to date, on the control thread; may be empty.
  std::function<void(ReclaimRequest& request)> look_again = {};
};

// A PersistentVolume that exists, but whose object cannot be read: it is not known what storage it
// has, unless that is on record.
struct UnknownVolume {
  std::string volume;
  std::string file;                                // the file that had its object; may be empty
  std::string reason;                              // why it is not known, for people
  std::optional<StorageName> name = std::nullopt;  // as in a claim's record
  friend bool operator==(const UnknownVolume&, const UnknownVolume&) = default;
};

// A volume that is made for a claim, as in its record. `planned` has the name and the place of what
// is to be made; nothing else is made or taken away.
struct ProvisionRequest {
  std::string plugin_name;  // or the driver that makes it
  VolumeOptions options;
  PersistentVolume planned;
  std::string plan = {};       // Provisioner::PlanText()
  std::string claim_uid = {};  // of the claim that it is made for
};

// What becomes of a pod's record when its directories are gone. kKeep: the record says that a
// command has deleted the pod, which must hold as long as a source has the pod.
enum class PodRecordEnd { kRemove, kKeep };

}  // namespace volumed
