// CSI volumes that are on the node and on no record, as in a root that a kubelet has left: which
// they are is in the vol_data.json beside each.
// Source: kubernetes pkg/volume/csi/csi_plugin.go@v1.36.2 (ConstructVolumeSpec,
// ConstructBlockVolumeSpec, constructPVSourceSpec).
#pragma once

#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "csi/csi_context.h"
#include "os/kernel.h"
#include "pluginmgr/device_mountable_volume_plugin.h"
#include "pluginmgr/volume_plugin.h"
#include "volume/volume_spec.h"

namespace volumed {

// All have: Threads: any. Blocks: until the deadline, on the agent's own filesystem alone.

// The spec of a pod's volume, as far as its file tells: `directory` is
// pods/<uid>/volumes/kubernetes.io~csi/<name>. Errors, not applied: NotFound without a file;
// DataLoss for one that does not say which volume it is.
Result<VolumeSpec> ConstructCsiVolume(const CsiContext& context, const SpecName& spec,
                                      const SafePath& directory, const CallOptions& call);
// The same of a block volume, whose spec has this name. Errors: as above.
Result<VolumeSpec> ConstructCsiBlockVolume(const CsiContext& context, const SpecName& spec,
                                           const CallOptions& call);

// The volumes that are staged, or have been begun to be: in the layout of today and in that of
// before 1.24, and block volumes. A directory whose file does not fit it is logged and left out; so
// is one without a file, in which a driver was asked for nothing. Errors: those of ListMounts.
Result<std::vector<UnrecordedDevice>> FindCsiDevices(const CsiContext& context,
                                                     const CallOptions& call);

}  // namespace volumed
