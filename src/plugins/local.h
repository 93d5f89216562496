// local: a directory or a block device of this node, as a persistent volume.
// Source: kubernetes pkg/volume/local/local.go@v1.36.2.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pluginmgr/block_volume_plugin.h"
#include "pluginmgr/device_mountable_volume_plugin.h"
#include "pluginmgr/device_volume.h"
#include "pluginmgr/node_expandable_volume_plugin.h"
#include "pluginmgr/persistent_volume_plugin.h"
#include "pluginmgr/plain_volume_plugin.h"

namespace volumed {

inline constexpr char kLocalVolumePluginName[] = "kubernetes.io/local-volume";

using LocalVolumeSettings = DeviceVolumeSettings;

// A block device is mounted once at <root>/plugins/kubernetes.io/local-volume/mounts/<pv>, and
// bound from there into each pod; a directory is bound as it is. With volumeMode Block the pod gets
// the device itself, and the path must be a device: a file would need a loop device that somebody
// attaches. The volume may hang with the disk: FaultDomain() returns its path.
class LocalVolumePlugin final : public PlainVolumePlugin,
                                public PersistentVolumePlugin,
                                public DeviceMountableVolumePlugin,
                                public BlockVolumePlugin,
                                public NodeExpandableVolumePlugin {
 public:
  explicit LocalVolumePlugin(LocalVolumeSettings settings) : settings_(settings) {}

  std::string GetPluginName() const override { return kLocalVolumePluginName; }
  // The PersistentVolume's name.
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override;
  bool CanSupport(const VolumeSpec& spec) const override;
  // Errors, of this and the next ones that take a spec: InvalidArgument, not applied, if it is no
  // local volume.
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec& spec,
                                              const VolumeTarget& target) override;
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName& spec, const PodUid& pod) override;
  // The spec has the device's path if a device is mounted; otherwise an empty one, as in kubelet.
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName& spec, const SafePath& volume_path,
                                                  const CallOptions& call) override;
  bool SupportsMountOption() const override { return true; }
  // The path of the source, as it is written.
  std::string FaultDomain(const VolumeSpec& spec) const override;
  // The same path: when it appears, a mount that failed is tried again.
  std::vector<std::string> DevicePaths(const VolumeSpec& spec) const override;

  VolumePlugin& plugin() override { return *this; }
  PersistentVolumePlugin* AsPersistent() override { return this; }
  DeviceMountableVolumePlugin* AsDeviceMountable() override { return this; }
  BlockVolumePlugin* AsBlock() override { return this; }
  NodeExpandableVolumePlugin* AsNodeExpandable() override { return this; }

  std::vector<AccessMode> GetAccessModes() const override { return {AccessMode::kReadWriteOnce}; }
  Result<std::unique_ptr<DeviceMounter>> NewDeviceMounter() override;
  Result<std::unique_ptr<DeviceUnmounter>> NewDeviceUnmounter() override;
  // Every other place that shows the device mounted there; empty if nothing is mounted.
  Result<std::vector<std::string>> GetDeviceMountRefs(const SafePath& device_mount_path,
                                                      const CallOptions& call) override;
  // True also for a directory, whose device mount does nothing.
  Result<bool> CanDeviceMount(const VolumeSpec& spec) const override;
  bool RequiresFsResize() const override { return true; }
  // The device must be large enough already; only an administrator can make it so. A directory has
  // no size of its own, so nothing is done. (Kubelet proves nothing, and takes the success of a
  // resize tool for the result.)
  // Errors, besides those of ResizeFs: ResourceExhausted, not applied, naming both sizes, if the
  // device is smaller than the new size; Internal, maybe applied, if the filesystem did not grow.
  Result<bool> NodeExpand(const NodeResizeOptions& options, const CallOptions& call) override;

  Result<std::unique_ptr<BlockVolumeMapper>> NewBlockVolumeMapper(const VolumeSpec& spec,
                                                                  PodPtr pod) override;
  Result<std::unique_ptr<BlockVolumeUnmapper>> NewBlockVolumeUnmapper(const SpecName& spec,
                                                                      const PodUid& pod) override;
  // The spec has the path to which the pod's link leads; in kubelet it has an empty one.
  // Errors: those of ReadLink.
  Result<VolumeSpec> ConstructBlockVolumeSpec(const PodUid& pod, const SpecName& spec,
                                              const SafePath& map_path,
                                              const CallOptions& call) override;

 private:
  const LocalVolumeSettings settings_;
};

}  // namespace volumed
