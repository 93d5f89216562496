// VolumePluginWithAttachLimits: volumes of which a node can take only so many.
// Of the seed; v1.36 has the limits in the CSINode object alone.
// Source: kubernetes pkg/volume/plugins.go@v1.21.1 (VolumePluginWithAttachLimits).
//
// Threads: any, after Init, unless said otherwise. plugin() is the plugin that has the capability.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "pluginmgr/volume_plugin.h"

namespace volumed {

class VolumePluginWithAttachLimits {
 public:
  virtual ~VolumePluginWithAttachLimits() = default;
  virtual VolumePlugin& plugin() = 0;
  // How many volumes the node can take, by VolumeLimitKey: "storage-limits-csi-x" -> 39. An error
  // says that the plugin cannot be used on this node.
  virtual Result<std::map<std::string, int64_t>> GetVolumeLimits() const = 0;
  // Which limit the volume counts against: "storage-limits-..", of CSI "attachable-volumes-csi-..".
  virtual std::string VolumeLimitKey(const VolumeSpec& spec) const = 0;
};

// "storage-limits-iscsi" for "kubernetes.io/iscsi", "storage-limits-acme-array" for "acme/array",
// "storage-limits-csi-disks.example.com" for "csi-disks.example.com". A key that would be longer
// than the name of a resource may be ends in a digest of the name. This function is pure.
std::string AttachLimitKey(const std::string& name);

}  // namespace volumed
