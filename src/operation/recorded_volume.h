// The volume as its record has it: the JSON of a pod that has only this volume (kube/
// encodes whole objects). It names Secrets and ConfigMaps and never holds their content.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "volume/volume_spec.h"

namespace volumed {

// Threads: any. Blocks: never.

// A persistent volume is kept as its own object, without whether the claim was read-only. If its
// plugin constructed it, so that only the source is known, the other required fields are added. One
// that was translated for a CSI driver (volume/csi_translation.h) comes back as that, with its
// name.
std::string EncodeRecordedVolume(const VolumeSpec& spec);

// Errors, not applied: DataLoss, with the reason, if the text is not a volume.
Result<VolumeSpec> DecodeRecordedVolume(const std::string& volume_json);

// The same; nullopt if the text is empty, or not a volume.
std::optional<VolumeSpec> ReadRecordedVolume(const std::string& volume_json);

// The PersistentVolume in the text; null if the text is not a readable one.
std::shared_ptr<const PersistentVolume> DecodePersistentVolume(const std::string& volume_json);

}  // namespace volumed
