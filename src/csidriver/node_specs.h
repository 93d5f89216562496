// From a volume and what a CO asks of it to the specification that the operations take and keep on
// record, and back: by what is on record it is decided whether a repeated call asks for the same.
//
// Neither secrets nor a context are ever in it, but for the uid of the pod. All are pure; threads:
// any. Blocks: never.
#pragma once

#include <optional>
#include <string>

#include "csidriver/csi_capability_wish.h"
#include "csidriver/csi_publish_rules.h"
#include "kube/objects.h"
#include "operation/volume_record.h"
#include "volume/volume_spec.h"

namespace volumed {

// Annotations of such a specification: what a CO has asked for and a PersistentVolume has no field
// for.
inline constexpr char kCsiAccessModeAnnotation[] = "volumed.io/csi-access-mode";
inline constexpr char kCsiMountGroupAnnotation[] = "volumed.io/csi-volume-mount-group";

// `of_pool` is what PoolPvOf() says of the volume `id`, which is the name of the specification, as
// it is in the keys of its rows. Whoever only reads by its access mode, or by `read_only`, has it
// read-only. `pod` is the uid of the pod that it is published for, if the CO says so; nothing
// compares it (PodOfPublication). REQUIRES: the volume can be used so (WhyNotUsableSo).
VolumeSpec NodeSpecOf(PersistentVolume of_pool, const std::string& id,
                      const CsiCapabilityWish& capability, bool read_only,
                      const std::string& pod = "");

// What a specification like this asks for, without its filesystem, which is the volume's own
// whether a CO names it or not. That of a text that cannot be read has no access mode, so that it
// is like none that is asked for.
CsiCapabilityWish CapabilityOnRecord(const std::string& volume_json);
// The same of a target, with the path and whether it is read-only.
CsiPublication PublicationOnRecord(const PodVolumeRecord& published);

// What is compared with the above: the same without the filesystem.
CsiPublication PublicationWanted(const std::string& target_path, CsiCapabilityWish capability,
                                 bool read_only);
// Whether a volume that is staged in the one way may be staged in the other: whose group its files
// become is decided when it is published.
bool IsStagedAlike(const CsiCapabilityWish& staged, const CsiCapabilityWish& wanted);

}  // namespace volumed
