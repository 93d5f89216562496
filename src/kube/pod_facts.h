// Facts about a pod that its volumes need and that no single field states.
// Threads: any. Blocks: no. Errors: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/objects.h"

namespace volumed {

// The user as which all containers of every kind run, by their own setting or else the pod's;
// nullopt if one has neither, or if two differ.
// Source: kubernetes pkg/volume/util/util.go@v1.36.2 (FsUserFrom).
std::optional<int64_t> EffectiveFsUser(const Pod& pod);

// The memory limit of the pod as a whole, in bytes: the pod's own limit, or the sum over its
// containers and sidecars, or what an init container needs beside the sidecars before it, if that
// is more. The result is nullopt if a container has no limit and the pod has none.
// Source: kubernetes pkg/kubelet/cm/helpers_linux.go (ResourceConfigForPod), KEP-753 for sidecars.
std::optional<int64_t> PodMemoryLimitBytes(const Pod& pod);

// Names of the volumes whose data is on a disk and ends with the pod: emptyDirs on disk, and
// volumes whose claims are the pod's own. They are in the order of the pod's volumes.
std::vector<std::string> VolumesThatEndWithPod(const Pod& pod);

// Whether both pods have the same volumes, in whatever order.
bool HaveSameVolumes(const Pod& a, const Pod& b);

struct VolumeUse {
  bool mounted = false;    // by a volumeMount of some container
  bool as_device = false;  // by a volumeDevice
};

// The use of each volume, by its name. A volume that no container uses is not in the map; kubelet
// does not mount it.
// Source: kubernetes pkg/volume/util/util.go@v1.36.2 (GetPodVolumeNames).
std::map<std::string, VolumeUse> VolumesInUse(const Pod& pod);

// The labels that a mount of the volume as a whole would need for each of the containers that use
// it: "system_u:object_r:container_file_t:s0:c1,c2". A container for which nothing of a label is
// set, neither by itself nor by the pod, can use any; its runtime labels it. Of what is set, user
// and level are those of files too; their role and type never are what a process has.
// Source: kubernetes pkg/volume/util/selinux.go@v1.36.2 (GetMountSELinuxLabel,
// SELinuxOptionsToFileLabel).
std::set<std::string> MountLabels(const Pod& pod, const std::string& volume);

}  // namespace volumed
