// What a volume of a pod is made from, besides its own source: objects, fields of the pod and of
// the node, and mount points that other mounts of the containers need inside it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "kube/object_catalog.h"
#include "kube/objects.h"
#include "volume/volume_spec.h"

namespace volumed {

// Threads: any. Blocks: never. Errors: none. All of these are pure.

// What a volume shows of its pod (downwardAPI, also within a projected volume).
struct DownwardUse {
  bool any = false;        // it uses the pod's own fields
  bool resources = false;  // it uses limits, whose default is the node's
};

// A persistent volume uses neither.
DownwardUse DownwardUseOf(const VolumeSpec& spec);

// Whether the two pods have the same security context, and the same runAsUser in each of their
// containers: besides the volume, these decide to whom its files belong.
bool SameOwnership(const Pod& a, const Pod& b);

// The Secrets and ConfigMaps from which the content of a volume comes.
std::set<ObjectKey> ObjectsOfVolume(const std::string& name_space, const VolumeSource& source);

// The same for a volume as it is built; none for a persistent volume, which has its own content.
std::set<ObjectKey> ContentObjects(const Pod& pod, const VolumeSpec& spec);

// Directories that a container's other mounts need inside this volume, relative to the volume's
// root: "data/cache" for a volume at /srv and another one at /srv/data/cache. Mounts of sub-paths
// are not considered, since their root is not the volume's.
// Source: kubernetes pkg/volume/util/nested_volumes.go@v1.36.2 (GetNestedMountpoints).
std::vector<std::string> NestedMountPoints(const Pod& pod, const std::string& volume_name);

}  // namespace volumed
