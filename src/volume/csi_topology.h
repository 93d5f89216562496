// Where a persistent volume of a cloud can be used, in the words of the CSI driver that its source
// is translated for: the driver's own keys in the node affinity in place of Kubernetes' labels of
// zone and region. Nodes have these keys as labels once the driver runs there.
//
// All functions are pure; threads: any. Blocks: never. Errors: none.
// Source: csi-translation-lib@v0.36.3, plugins/in_tree_volume.go, plugins/vsphere_volume.go.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/storage_objects.h"

namespace volumed {

// Labels of a node, and of a volume that a cloud provider has made. The beta ones were before
// v1.17.
inline constexpr const char kZoneLabel[] = "topology.kubernetes.io/zone";
inline constexpr const char kRegionLabel[] = "topology.kubernetes.io/region";
inline constexpr const char kBetaZoneLabel[] = "failure-domain.beta.kubernetes.io/zone";
inline constexpr const char kBetaRegionLabel[] = "failure-domain.beta.kubernetes.io/region";

// The zones in the value of a volume's zone label, which may be several with "__" in between; a
// part that is empty is one of them too. An empty value is one empty part.
std::vector<std::string> ZonesOf(std::string_view label_value);

// The zones that the affinity asks for are asked for by `zone_key`. If it asks for none, the zones
// of the volume's label are added to each of its terms. A region that is asked for by the beta
// label is asked for by the present one, which newer nodes have alone. Where the affinity has both
// labels of a zone, the beta one stays as it is.
void TranslateZone(std::string_view zone_key, PersistentVolume& volume);

// Does the same for zone and region of a vSphere volume, whose labels name one of each, and whose
// driver has a key for regions too.
void TranslateZoneAndRegion(std::string_view zone_key, std::string_view region_key,
                            PersistentVolume& volume);

}  // namespace volumed
