// Attacher, Detacher, DeviceMounter, DeviceUnmounter: a volume's device, made present on the node
// once for all pods, and mounted at one place from which pods get their binds.
// Source: kubernetes pkg/volume/volume.go@v1.36.2 (Attacher, Detacher, DeviceMounter,
// DeviceUnmounter); the seed's BulkVolumeVerifier, which v1.36 no longer has.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/quantity.h"
#include "base/result.h"
#include "kube/objects.h"
#include "os/kernel.h"
#include "volume/volume_spec.h"
#include "volumehost/volume_host.h"

namespace volumed {

// What a mount of a device depends on besides the volume.
struct DeviceMounterArgs {
  std::optional<int64_t> fs_group;  // for drivers that apply it while they mount
  // Some pods of the volume do not write; that none does is in the spec. A device that takes no
  // writes is mounted for their sake.
  bool some_pods_only_read = false;
  std::string selinux_label;  // of the mount as a whole; empty: none
  // The volume is to be this large: what can only be grown unmounted is, before the mount. That it
  // cannot be grown fails no mount.
  std::optional<Quantity> grow_to;
  // What somebody should hear of, for the pods that wait: "FilesystemFormatted". May be empty.
  std::function<void(EventType type, const std::string& reason, const std::string& message)> event;
  // A certain record of this boot says that it is mounted: it is to be proven on the node alone,
  // without a call to a driver. If it cannot be, that is maybe applied, and the next call is a
  // whole one.
  bool as_recorded = false;
  // Deadline, key and cancel token for every effect of the call.
  CallOptions call;
};

// Threads: one call at a time per volume. Blocks: until the call's deadline.
// Errors of MountDevice: NotApplied = the mount point is as it was, to be tried again or given up;
// MaybeApplied = it may be mounted, so only MountDevice again or UnmountDevice may follow. (These
// are kubelet's "final" and "uncertain progress"; its "transient" is Unavailable, not applied.)
class DeviceMounter {
 public:
  virtual ~DeviceMounter() = default;
  // Where the device is mounted once for the node, whether it is or not. Pure.
  virtual Result<SafePath> GetDeviceMountPath(const VolumeSpec& spec) const = 0;
  // `device_path` is a device node or a link to one, and empty for plugins that attach nothing.
  // Idempotent: a volume that is mounted there is success. A place other than GetDeviceMountPath()
  // was given by a CO, for plugins that take such places: its directory is there already, and it is
  // neither made nor removed.
  virtual Status MountDevice(const VolumeSpec& spec, const std::string& device_path,
                             const SafePath& device_mount_path, const DeviceMounterArgs& args) = 0;
};

// Makes a device present on the node, for all pods together. Threads: one call at a time per
// volume. Blocks: until the call's deadline. Errors of Attach: MaybeApplied = it may be attached,
// so only Attach again or Detach may follow.
class Attacher : public DeviceMounter {
 public:
  // Returns the device's path on the node, or what WaitForAttach() needs in its place. Idempotent.
  virtual Result<std::string> Attach(const VolumeSpec& spec, const NodeName& node,
                                     const CallOptions& call) = 0;
  // One answer per spec, in their order. After an error nothing is known of any of them.
  virtual Result<std::vector<bool>> VolumesAreAttached(const std::vector<VolumeSpec>& specs,
                                                       const NodeName& node,
                                                       const CallOptions& call) = 0;
  // Waits until the device is there and returns its path; `device_path` is what Attach() has
  // returned. Errors: DeadlineExceeded at the call's deadline (kubelet's `timeout`).
  virtual Result<std::string> WaitForAttach(const VolumeSpec& spec, const std::string& device_path,
                                            const Pod& pod, const CallOptions& call) = 0;
};

// The inverse of DeviceMounter. Threads: one call at a time per volume. Blocks: until the call's
// deadline.
class DeviceUnmounter {
 public:
  virtual ~DeviceUnmounter() = default;
  // To be called once all binds of pods are gone. Idempotent; a path that is no mount is success.
  virtual Status UnmountDevice(const SafePath& device_mount_path, const CallOptions& call) = 0;
  // The same for a volume of which the record says what it was: the first witness for a plugin that
  // has to name it to somebody. Only it is called for a place that a CO gave, whose directory
  // stays.
  virtual Status UnmountRecorded(const VolumeSpec& /*recorded*/, const SafePath& device_mount_path,
                                 const CallOptions& call) {
    return UnmountDevice(device_mount_path, call);
  }
};

// The inverse of Attacher. Threads: one call at a time per volume. Blocks: until the call's
// deadline.
class Detacher : public DeviceUnmounter {
 public:
  // `volume_name` is what the plugin's GetVolumeName() answers. Idempotent.
  virtual Status Detach(const std::string& volume_name, const NodeName& node,
                        const CallOptions& call) = 0;
  // The same for a volume of which the record says what it was, with the Secrets that it names.
  virtual Status DetachRecorded(const VolumeSpec& /*recorded*/, const std::string& volume_name,
                                const NodeName& node, const CallOptions& call) {
    return Detach(volume_name, node, call);
  }
};

// Asks for the volumes of many nodes in one call. Threads: any. Blocks: until the deadline.
class BulkVolumeVerifier {
 public:
  using SpecsByNode = std::map<NodeName, std::vector<VolumeSpec>>;
  using AttachedByNode = std::map<NodeName, std::vector<bool>>;  // in the order of the specs

  virtual ~BulkVolumeVerifier() = default;
  // After an error all of them are to be taken for attached still.
  virtual Result<AttachedByNode> BulkVerifyVolumes(const SpecsByNode& specs,
                                                   const CallOptions& call) = 0;
};

}  // namespace volumed
