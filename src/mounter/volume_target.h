// VolumeTarget: for whom a volume is made present on the node, and where. Most are of pods
// (PodVolumeTarget); whoever else is given volumes, such as the caller of a CSI driver, names the
// place himself, and there is no pod.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "kube/objects.h"
#include "os/kernel_requests.h"
#include "volumehost/kubelet_paths.h"

namespace volumed {

// Who is to be able to use what is in the volume.
struct VolumeOwner {
  std::optional<int64_t> fs_user;  // the common runAsUser of all containers
  std::optional<int64_t> fs_group;
  std::optional<FsGroupChangePolicy> fs_group_change_policy;
};

// A value. Threads: any.
struct VolumeTarget {
  PodVolumeKey key;  // of its operations and of its record
  SafePath place;    // of the volume; plugins whose place is fixed (hostPath) have their own
  // Of its owner alone: what the agent keeps beside the volume (MarksOf) lies below it.
  SafePath directory;
  std::string display_name;  // "namespace/name" of a pod, for people
  VolumeOwner owner;
  // Where the device of the volume is mounted, if a CO gave that place; nullopt: at the plugin's
  // own place. MountVolume takes it from the row of the device, so its callers leave it empty.
  std::optional<SafePath> device_place = std::nullopt;
  // Whose objects, tokens and resources the content is made from. Null: a volume that needs one
  // is refused (NoPod).
  PodPtr pod;
};

// Threads: any. Blocks: never.

// The target of a pod's volume, in kubelet's layout. `plugin` is VolumePlugin::GetPluginName().
// REQUIRES: a pod.
VolumeTarget PodVolumeTarget(const KubeletPaths& paths, PodPtr pod, const std::string& plugin,
                             const SpecName& spec);

// The directory in which a plugin keeps what it must know of the volume: for a pod's,
// <root>/pods/<uid>/plugins/<esc plugin>/<spec name>.
SafePath MarksOf(const VolumeTarget& target, const std::string& plugin);

// The error of a volume whose content is made from a pod, if the target has none: InvalidArgument,
// not applied. `what` is the volume's kind, for people.
Error NoPod(const std::string& what, const VolumeTarget& target);

}  // namespace volumed
