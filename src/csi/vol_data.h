// vol_data.json: the file beside a staged or published volume that says whose it is. Kubelet finds
// its volumes again by it; here it is the second witness, after the record.
//
// All functions are pure; threads: any. Blocks: never.
// Source: kubernetes pkg/volume/csi/csi_util.go@v1.36.2 (saveVolumeData, loadVolumeData).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "csi/csi_names.h"
#include "kube/object_meta.h"

namespace volumed {

struct CsiVolume;  // csi/csi_capabilities.h

// No file that a kubelet writes is as large; what is larger is not read.
inline constexpr size_t kVolDataLimit = size_t{64} << 10;  // bytes

// Takes what kubelet takes: one JSON object of texts, with any keys, which are all kept; of a key
// that is there twice the last counts; null is an empty text; what follows the object does not
// matter. Errors, not applied: DataLoss for anything else, as for the empty file that a crash of a
// kubelet may leave, and for more than kVolDataLimit.
Result<StringMap> ParseVolData(std::string_view text);

// The bytes that kubelet writes for the same data.
std::string FormatVolData(const StringMap& data);

// What is said under this key; empty if nothing is. The reference is valid as long as the data.
const std::string& VolDataOf(const StringMap& data, const std::string& key);

// Which volume it is. Nullopt if it does not say both driver and handle.
std::optional<CsiVolumeId> VolumeIdOf(const StringMap& data);

// What is written for a volume: beside a staging path; beside a pod's target path; for a block
// volume. `selinux_label` is the label of the mount as a whole; empty: it has none.
StringMap StageVolData(const CsiVolume& volume, const std::string& selinux_label);
StringMap PublishVolData(const CsiVolume& volume, const SpecName& spec, const NodeName& node,
                         const std::string& selinux_label);
StringMap BlockVolData(const CsiVolume& volume, const SpecName& spec, const NodeName& node);

}  // namespace volumed
