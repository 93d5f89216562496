// The snapshot of a volume in its record, as the JSON of a pod that has this one volume and nothing
// else (kube/ encodes whole objects). It names secrets and config maps and never holds what is in
// them.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "volume/volume_spec.h"

namespace volumed {

// Threads: any. Blocks: never.

// A persistent volume is kept as its own object; whether the claim was read-only is not. One that
// its plugin constructed, of which only the source is known, gets what the object must say besides.
std::string EncodeVolumeSnapshot(const VolumeSpec& spec);

// Errors, not applied: DataLoss with the reason, when the text is no volume.
Result<VolumeSpec> DecodeVolumeSnapshot(const std::string& volume_json);

// The PersistentVolume in it; null when it is no readable one.
std::shared_ptr<const PersistentVolume> DecodePersistentVolume(const std::string& volume_json);

}  // namespace volumed
