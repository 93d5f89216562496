// Places that a CO gave: it calls the agent as its CSI driver, and names where the device of a
// volume is to be mounted (staged), and where the volume itself (published). The operations take
// such a place in place of the agent's own layout, and keep it in the rows of volume and device:
// nobody can find it anew. Source: the CSI specification v1.12 (NodeStageVolume, NodePublishVolume,
// and their inverses).
//
// The CO made the directory of a device and the parent of a volume's place: both are neither made
// nor removed here. The volume's place itself is made, and removed.
#pragma once

#include <optional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "operation/volume_record.h"
#include "os/safe_path.h"
#include "volumehost/kubelet_paths.h"

namespace volumed {

// Threads: any. Blocks: never.

// The key of the volume `id` at this target: its uid is "csi:" and 32 hex digits of a digest of the
// path, and its name is the id. `target_path` is the place's (SafePath::Display), without a "/" at
// its end.
PodVolumeKey TargetKey(const std::string& target_path, const std::string& id);

// Whether the operations may take the place. Errors: InvalidArgument, not applied, unless its root
// is absolute, it lies below the root, and no link is followed below that (Resolve::kNoSymlinks):
// a row says no more than the two paths.
Status CheckGivenPlace(const SafePath& place);

// What the row says of a place that a CO gave; nullopt if the volume, or the device, is at a place
// of the agent's own layout.
std::optional<SafePath> GivenPlaceOf(const PodVolumeRecord& record);
std::optional<SafePath> GivenPlaceOf(const DeviceRecord& record);

// Who has the volume by its row, for people: "pod ns/name", or the target.
std::string HolderOf(const PodVolumeRecord& record);

// Where the device is by its row: the place that a CO gave, or one below the agent's root. Errors:
// those of KubeletPaths::BelowRoot.
Result<SafePath> PlaceOfDevice(const KubeletPaths& paths, const DeviceRecord& record);

}  // namespace volumed
