// What the parts of PoolPlugin have in common: which volume a spec, or a place, stands for, and
// where its device is.
//
// All functions are pure. Threads: any.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "kube/objects.h"
#include "os/safe_path.h"
#include "volume/volume_spec.h"
#include "volumehost/kubelet_paths.h"

namespace volumed {

// An annotation of the specification of a volume at a place that a CO gave: the uid of the pod that
// it is for, if the CO said so.
inline constexpr char kPoolPodUidAnnotation[] = "volumed.io/csi-pod-uid";

// The id of the volume, if it is one of this driver. Errors: as PoolPlugin::GetVolumeName.
Result<std::string> PoolVolumeIdOf(const VolumeSpec& spec, const std::string& driver);
// The same of a volume that is on record as one of the plugin's, whatever the driver is called by
// now.
Result<std::string> RecordedPoolVolumeId(const VolumeSpec& recorded);
// Decided by the pod's claim, by the volume's source, or by its mount options.
bool IsReadOnlyPoolVolume(const VolumeSpec& spec);
// A spec that names this volume, as far as its places tell.
VolumeSpec PoolVolumeSpec(const SpecName& spec, const std::string& driver, const std::string& id,
                          VolumeMode mode);

// What is the same in every PersistentVolume of a pool's volume: its source, its mode, its size,
// and that it is on this node. `fs_type` is of no block volume.
PersistentVolume PoolPersistentVolume(const std::string& driver, const std::string& id,
                                      const std::string& fs_type, VolumeMode mode, int64_t bytes,
                                      const std::string& node);

// <root>/plugins/volumed.io/pool/mounts/<id>: where its device is mounted once for the node.
SafePath PoolDevicePlace(const KubeletPaths& paths, const std::string& id);
// <root>/plugins/volumed.io~pool/volumeDevices/<id>: where pods have its device.
SafePath PoolMapPlace(const KubeletPaths& paths, const std::string& id);
// The id of the volume whose place it is, of one of these two kinds. Errors: InvalidArgument, not
// applied.
Result<std::string> PoolVolumeIdAt(const KubeletPaths& paths, const SafePath& place);

}  // namespace volumed
