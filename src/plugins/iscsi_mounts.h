// The mounts of iSCSI volumes: a disk's mount for the node, and a pod's bind of it. Private to
// iscsi.
// Source: kubernetes pkg/volume/iscsi/attacher.go, iscsi.go, disk_manager.go@v1.36.2.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attacher/attacher.h"
#include "mounter/mounter.h"
#include "pluginmgr/device_volume.h"
#include "pluginmgr/volume_plugin.h"
#include "plugins/iscsi_initiator.h"

namespace volumed {

// All members outlive the objects that are made from them.
struct IscsiParts {
  VolumeHost& host;
  const DeviceVolumeSettings& formats;
  // Null if nothing finds devices: no volume is attached then.
  IscsiInitiator* initiator = nullptr;
};

// Errors: Unimplemented, not applied, without an initiator.
Result<IscsiInitiator*> RequireInitiator(const IscsiParts& parts);

// WaitForAttach logs in, as in kubelet; Attach does nothing. Threads: one at a time per volume.
// Blocks: until the call's deadline, except for mkfs and fsck.
class IscsiAttacher final : public Attacher {
 public:
  explicit IscsiAttacher(const IscsiParts& parts) : parts_(parts) {}

  Result<std::string> Attach(const VolumeSpec&, const NodeName&, const CallOptions&) override {
    return std::string();
  }
  // Decided by the disks from which the node has the volumes mounted or mapped: see
  // device_attachments.h. (In kubelet all are attached, whatever has become of their sessions.)
  // Errors: InvalidArgument, not applied, for another node.
  Result<std::vector<bool>> VolumesAreAttached(const std::vector<VolumeSpec>& specs,
                                               const NodeName& node,
                                               const CallOptions& call) override;
  // Errors, besides those of IscsiInitiator::AttachDisk: NotFound, not applied, and Unavailable,
  // for the CHAP secret; InvalidArgument, not applied, if CHAP is wanted and no secret is named. It
  // has to be called before MountDevice, which does not log in. Warnings go to the pod as events.
  Result<std::string> WaitForAttach(const VolumeSpec& spec, const std::string& device_path,
                                    const Pod& pod, const CallOptions& call) override;
  Result<SafePath> GetDeviceMountPath(const VolumeSpec& spec) const override;
  // Mounts the device that WaitForAttach has returned, once it is proven to be the volume's disk
  // still. The place has iscsi.json and is not removed after an error. Errors: those of
  // IscsiInitiator::ProveDevice and MountDeviceVolume.
  Status MountDevice(const VolumeSpec& spec, const std::string& device_path,
                     const SafePath& device_mount_path, const DeviceMounterArgs& args) override;

 private:
  Result<std::shared_ptr<const SecretObject>> ChapSecret(const IscsiVolume& volume,
                                                         const Pod& pod) const;

  const IscsiParts parts_;
};

// Threads: one at a time per volume. Blocks: until the call's deadline.
class IscsiDetacher final : public Detacher {
 public:
  explicit IscsiDetacher(const IscsiParts& parts) : parts_(parts) {}

  Status Detach(const std::string&, const NodeName&, const CallOptions&) override {
    return OkStatus();
  }
  // Unmounts the disk, and then removes it from the node with the sessions that nobody else uses;
  // the place goes last. Errors: InvalidArgument, not applied, if the place is not one of iSCSI's;
  // those of Unmount; those of IscsiInitiator::DetachDisk, maybe applied.
  Status UnmountDevice(const SafePath& device_mount_path, const CallOptions& call) override;

 private:
  const IscsiParts parts_;
};

}  // namespace volumed
