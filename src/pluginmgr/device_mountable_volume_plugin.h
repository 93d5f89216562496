// DeviceMountableVolumePlugin: volumes that are mounted once for the node before pods get them.
// Source: kubernetes pkg/volume/plugins.go@v1.36.2 (DeviceMountableVolumePlugin).
//
// Threads: any, after Init, unless said otherwise. plugin() is the plugin that has the capability.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attacher/attacher.h"
#include "base/result.h"
#include "os/kernel.h"
#include "pluginmgr/volume_plugin.h"
#include "volume/volume_spec.h"

namespace volumed {

// A device that is on the node and, as far as the plugin can know, on no record.
struct UnrecordedDevice {
  SafePath place;  // the device's one mount, or a block volume's global map directory
  // With a source, and with the name that its places have, as far as anything tells.
  VolumeSpec spec;
  std::string volume_name;  // as GetVolumeName() answers
  bool is_block = false;
  bool is_mounted = false;  // or bound; false: it was begun
};

class DeviceMountableVolumePlugin {
 public:
  virtual ~DeviceMountableVolumePlugin() = default;
  virtual VolumePlugin& plugin() = 0;
  // The plugin outlives what is made.
  virtual Result<std::unique_ptr<DeviceMounter>> NewDeviceMounter() = 0;
  virtual Result<std::unique_ptr<DeviceUnmounter>> NewDeviceUnmounter() = 0;
  // The mount points of every other place at which what is mounted there shows. Blocks: until the
  // deadline.
  virtual Result<std::vector<std::string>> GetDeviceMountRefs(const SafePath& device_mount_path,
                                                              const CallOptions& call) = 0;
  // Whether this volume has a device to mount. Blocks: never.
  virtual Result<bool> CanDeviceMount(const VolumeSpec& spec) const = 0;
  // The devices that the plugin finds by what is on disk beside them, for plugins whose places do
  // not name their volumes, or that have devices without a mount. Blocks: until the deadline.
  virtual Result<std::vector<UnrecordedDevice>> FindDevices(const CallOptions& /*call*/) {
    return std::vector<UnrecordedDevice>();
  }
};

}  // namespace volumed
