// RecyclableVolumePlugin: volumes that can be scrubbed and given to the next claim.
// Source: kubernetes pkg/volume/plugins.go@v1.36.2 (RecyclableVolumePlugin).
//
// Threads: any, after Init, unless said otherwise. plugin() is the plugin that has the capability.
#pragma once

#include <string>

#include "base/result.h"
#include "os/kernel.h"
#include "pluginmgr/volume_options.h"
#include "pluginmgr/volume_plugin.h"
#include "recycler/recycler.h"

namespace volumed {

class RecyclableVolumePlugin {
 public:
  virtual ~RecyclableVolumePlugin() = default;
  virtual VolumePlugin& plugin() = 0;
  // Whether Recycle() would ever try, as far as the volume's spec tells. Blocks: never. Errors, not
  // applied: why not.
  virtual Status CanRecycle(const VolumeSpec&) const { return OkStatus(); }
  // Returns when the volume is empty, or with the reason why it may not be. Blocks: until the
  // recycler pod has ended, which its own timeout bounds, or the deadline.
  virtual Status Recycle(const std::string& pv_name, const VolumeSpec& spec,
                         const RecycleEventRecorder& recorder, const CallOptions& call) = 0;
};

// Recycles by the pod of `config`, whose first volume becomes `source`. `pods` may be null. Errors:
// Unimplemented, not applied, without `pods`; those of LoadRecyclerPodTemplate and
// ValidateRecyclerPodTemplate, not applied; those of the recycler.
Status RecycleByPod(const VolumeConfig& config, RecyclerPodRunner* pods,
                    const PersistentVolume& volume, const std::string& pv_name, VolumeSource source,
                    const RecycleEventRecorder& recorder, const CallOptions& call);

}  // namespace volumed
