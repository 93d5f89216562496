// What the operations on volumes are asked for, and what they answer. Those of the attach pipeline
// are in attach_requests.h.
#pragma once

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

struct SubPathMount {
  std::string container;
  int index = 0;
  std::string host_path;
  friend bool operator==(const SubPathMount&, const SubPathMount&) = default;
};

struct MountRequest {
  VolumeTarget target;
  VolumeSpec spec;
  std::vector<SubPathRequest> sub_paths;
  std::vector<std::string> nested_mount_points;
  bool is_remount = false;     // it is set up; bring its content up to date
  bool reconstructed = false;  // it was found at start, uncertain
  // Of a persistent volume, which pods share; else empty.
  UniqueVolumeName unique_name = {};
  bool has_device = false;     // it is bound from the device of that name
  std::string claim_uid = {};  // of a persistent volume: whose it is
  // Found at the agent's start in its place, with all its sub-paths: the filesystem that is mounted
  // there, "" for a directory. Nothing: it was not, or it cannot be told.
  std::optional<std::string> found_as = std::nullopt;
  bool with_many = false;  // see OperationLanes::Enter

  const PodVolumeKey& key() const { return target.key; }
  UniqueVolumeName device() const { return has_device ? unique_name : UniqueVolumeName(); }
};

// Where a block volume's device is.
struct MappedDevice {
  std::string device_path;  // "/dev/sdb"
  std::string node_path;    // the pod's node of it, in the global map directory
  friend bool operator==(const MappedDevice&, const MappedDevice&) = default;
};

struct MountedVolume {
  std::string plugin_name;
  std::string host_path;  // of a block volume: the pod's link to the device
  Attributes attributes;
  std::vector<SubPathMount> sub_paths;
  std::optional<Freshness> freshness;
  std::optional<MappedDevice> mapped = std::nullopt;  // of a block volume
  // It is in its place as an agent before this one has made it, and what it should hold by now
  // cannot be told: a Secret of it is missing.
  bool content_unknown = false;
  // Nothing was tried: it may hang with something else than the agent's own filesystem, and cannot
  // be made together with others.
  bool left_out = false;
};

struct UnmountRequest {
  PodUid pod;
  SpecName spec;
  std::string plugin_name;
  std::string pod_display_name;  // "namespace/name", for logs
  UniqueVolumeName device = {};  // as of the mount
  // What its plugin made of it, where it was found and no record knew it.
  std::optional<VolumeSpec> constructed = std::nullopt;
  bool with_many = false;  // see OperationLanes::Enter

  PodVolumeKey key() const { return {pod, spec}; }
};

struct MountDeviceRequest {
  UniqueVolumeName device;
  VolumeSpec spec;
  std::vector<PodUid> pods;  // that wait for it: a failure is an event of each
  std::optional<int64_t> fs_group = std::nullopt;  // of the first of them
  // Some of them, while `spec` is read-only only if all do.
  bool some_pods_only_read = false;
  // The first of them, for volumes that are attachable or block volumes.
  PodPtr first_pod = nullptr;
  // What the claim says of its size; zero: it is not known.
  Quantity size = {};
  // It is to be made this large; what can only be grown unmounted is, before the mount.
  std::optional<Quantity> grow_to = std::nullopt;
  bool attachable = false;  // it was attached, and its device is waited for
};

struct MountedDevice {
  std::string plugin_name;
  std::string device_mount_path;
  std::string device_path = {};  // of an attachable volume
  Quantity size = {};            // as of the request
};

// A volume that is on the node is made larger.
struct ExpandRequest {
  UniqueVolumeName volume;
  VolumeSpec spec;
  VolumeTarget target;       // of one that has it
  std::vector<PodUid> pods;  // all of them, for events
  std::string claim;         // "namespace/name", likewise
  Quantity new_size;
  Quantity old_size;
  // What a failure would mean, for events.
  ExpansionDecision decision;
};

struct ExpandedVolume {
  std::string note;  // what was done, for people; may be empty
};

struct UnmountDeviceRequest {
  UniqueVolumeName device;
  std::string plugin_name;
  SpecName spec;
  std::string device_mount_path;
  bool is_block = false;
};

// What is done with a volume that its claim has left.
struct ReclaimRequest {
  std::shared_ptr<const PersistentVolume> volume;
  ReclaimAction action = ReclaimAction::kNone;
  std::string claim_uid = {};  // that it was bound with
  // All other volumes that anybody knows: none may have its data in the same place.
  std::vector<std::shared_ptr<const PersistentVolume>> others = {};
  // The pods of this node: what they have on it of their own (a hostPath) may lie in it, also
  // before they are set up, as after a reboot.
  std::vector<std::shared_ptr<const Pod>> pods = {};
};

// A PersistentVolume that is there, and whose object nobody can read: nobody knows what storage it
// has, unless that is on record.
struct UnknownVolume {
  std::string volume;
  std::string file;                                // that had its object; may be empty
  std::string reason;                              // why that is not known, for people
  std::optional<StorageName> name = std::nullopt;  // as a claim's record has it
  friend bool operator==(const UnknownVolume&, const UnknownVolume&) = default;
};

// A volume that is made for a claim, as its record has it.
struct ProvisionRequest {
  std::string plugin_name;
  VolumeOptions options;
  std::vector<TopologyTerm> allowed_topologies;
  PersistentVolume planned;
};

// What becomes of a pod's record when its directories are gone. kKeep: it says that the pod was
// deleted by command, which must hold as long as a source has the pod.
enum class PodRecordEnd { kRemove, kKeep };

}  // namespace volumed
