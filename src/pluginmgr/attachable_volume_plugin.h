// AttachableVolumePlugin: volumes that are attached to the node before they are mounted.
// Source: kubernetes pkg/volume/plugins.go@v1.36.2 (AttachableVolumePlugin).
//
// Threads: any, after Init, unless said otherwise. plugin() is the plugin that has the capability.
#pragma once

#include <memory>

#include "attacher/attacher.h"
#include "base/result.h"
#include "pluginmgr/device_mountable_volume_plugin.h"

namespace volumed {

// Such a plugin answers itself from AsDeviceMountable() too.
class AttachableVolumePlugin : public DeviceMountableVolumePlugin {
 public:
  // The plugin outlives what is made.
  virtual Result<std::unique_ptr<Attacher>> NewAttacher() = 0;
  virtual Result<std::unique_ptr<Detacher>> NewDetacher() = 0;
  // Whether this volume has to be attached at all. Blocks: never.
  virtual Result<bool> CanAttach(const VolumeSpec& spec) const = 0;
  // Whether attaching fails because the node can take no more. Blocks: never.
  virtual bool VerifyExhaustedResource(const VolumeSpec&) const { return false; }
  // False if VolumesAreAttached says yes whatever is asked: then nobody asks again and again.
  virtual bool VerifiesAttachments() const { return true; }
  // Null if the nodes are asked one by one; owned by the plugin. (The seed has this as
  // SupportsBulkVolumeVerification and an interface that the Attacher may also have.)
  virtual BulkVolumeVerifier* AsBulkVolumeVerifier() { return nullptr; }
};

}  // namespace volumed
