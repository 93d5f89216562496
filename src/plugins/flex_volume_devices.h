// The devices of flexVolumes: their driver attaches them, mounts them for the node, and removes
// them again; the agent does what the driver does not support. Private to flexVolume.
// Source: kubernetes pkg/volume/flexvolume/attacher.go and detacher.go@v1.36.2.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attacher/attacher.h"
#include "pluginmgr/device_volume.h"
#include "plugins/flex_volume_driver.h"

namespace volumed {

// Threads: one at a time per volume. Blocks: until the deadline, except for mkfs and fsck if the
// agent mounts. Errors: those of FlexVolumeDriver::Call.
class FlexVolumeAttacher final : public Attacher {
 public:
  FlexVolumeAttacher(VolumeHost& host, std::shared_ptr<FlexVolumeDriver> driver,
                     const DeviceVolumeSettings& settings)
      : host_(host), driver_(std::move(driver)), settings_(settings) {}

  // Empty if the driver does not support it: there is no device then. Else it is the device's path
  // in the driver's words. `getvolumename` is called first, as in kubelet, and only its error
  // counts.
  Result<std::string> Attach(const VolumeSpec& spec, const NodeName& node,
                             const CallOptions& call) override;
  // If the driver cannot answer for a volume, it counts as attached, as in kubelet, so that one
  // volume in trouble does not affect the others. An error means that the time is over.
  Result<std::vector<bool>> VolumesAreAttached(const std::vector<VolumeSpec>& specs,
                                               const NodeName& node,
                                               const CallOptions& call) override;
  // Returns the path that the driver answers; if it answers none, or does not support the call,
  // `device_path` as it is.
  Result<std::string> WaitForAttach(const VolumeSpec& spec, const std::string& device_path,
                                    const Pod& pod, const CallOptions& call) override;
  // See flex_volume_places.h. REQUIRES: a flexVolume.
  Result<SafePath> GetDeviceMountPath(const VolumeSpec& spec) const override;
  // Mounts by mountdevice, else by the rules of docs/FORMATTING.md. If the driver does not support
  // mountdevice and there is no device, nothing is mounted here, and `mount` has to do it. After an
  // error that was not applied, no place is left that this call made. A place that is mounted
  // already is success without a call of the driver.
  Status MountDevice(const VolumeSpec& spec, const std::string& device_path,
                     const SafePath& device_mount_path, const DeviceMounterArgs& args) override;

 private:
  Status MountAt(const VolumeSpec& spec, const std::string& device_path, const SafePath& place,
                 const DeviceMounterArgs& args);

  VolumeHost& host_;
  const std::shared_ptr<FlexVolumeDriver> driver_;
  const DeviceVolumeSettings settings_;
};

// Made without a spec, so that it also serves what an earlier agent has mounted. Threads: one at a
// time per volume. Blocks: until the call's deadline. Errors: those of FlexVolumeDriver::Call.
class FlexVolumeDetacher final : public Detacher {
 public:
  FlexVolumeDetacher(VolumeHost& host, std::shared_ptr<FlexVolumeDriver> driver)
      : host_(host), driver_(std::move(driver)) {}

  // `volume_name` is FlexVolumeName. Success if the driver does not support the call; a driver that
  // is not installed is an error.
  Status Detach(const std::string& volume_name, const NodeName& node,
                const CallOptions& call) override;
  // If the place is mounted, calls the driver's unmountdevice, if it supports that; then unmounts
  // and removes the place. Errors: InvalidArgument, not applied, if the place is not one of this
  // driver's.
  Status UnmountDevice(const SafePath& device_mount_path, const CallOptions& call) override;

 private:
  VolumeHost& host_;
  const std::shared_ptr<FlexVolumeDriver> driver_;
};

}  // namespace volumed
