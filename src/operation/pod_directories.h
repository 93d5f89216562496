// The directories of a pod that hold its volumes: made before the first one, removed after the
// last. Source: kubernetes pkg/kubelet/kubelet_pods.go@v1.36.2 (makePodDataDirs),
// pkg/kubelet/kubelet_volumes.go@v1.36.2 (cleanupOrphanedPodDirs).
#pragma once

#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "mounter/volume_target.h"
#include "os/kernel.h"
#include "volumehost/kubelet_paths.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Who else keeps things in the directories of this root's pods.
enum class PodDirectoryOwner {
  kAgent,    // nobody: whatever the agent did not make is foreign
  kKubelet,  // an adopted root: a kubelet ran on it, and left its own entries behind
};

// Threads: any; not beside a removal of the same pod. Blocks: until the deadline.

// <root>/pods/<uid>, and in it volumes and plugins, all 0750. Idempotent.
Status MakePodDirectories(Kernel& kernel, const KubeletPaths& paths, const PodUid& pod,
                          const CallOptions& call);

// The same as the effects that it is.
std::vector<MakeDirectory> PodDirectoryEffects(const KubeletPaths& paths, const PodUid& pod);

// What must be there before a volume is made at the target: of a pod's volume its pod's
// directories; whoever else names a place has made his own.
std::vector<MakeDirectory> TargetDirectoryEffects(const KubeletPaths& paths,
                                                  const VolumeTarget& target);
Status MakeTargetDirectories(const VolumeHost& host, const VolumeTarget& target,
                             const CallOptions& call);

// Removes them, with what is known to be left in them: empty directories of volumes, readiness
// markers, subpath targets. Never removes a file of anybody else, and looks into no volume: a
// directory of a volume goes only if it is empty and no mount point. Idempotent.
// With kKubelet also kubelet's own entries, after the volumes and never across a mount: the trees
// "containers" and "plugins", and the file "etc-hosts". Kubelet removes these with the pod itself.
// Source: kubernetes pkg/kubelet/kubelet_volumes.go@v1.36.2 (cleanupOrphanedPodDirs),
// pkg/kubelet/kubelet_pods.go@v1.36.2 (ensureHostsFile), pkg/kubelet/config/defaults.go@v1.36.2.
// Errors: FailedPrecondition, not applied for what it names: something is there that the agent did
// not make, or a volume that is not torn down; what was empty before it is gone.
Status RemovePodDirectories(Kernel& kernel, const KubeletPaths& paths, const PodUid& pod,
                            PodDirectoryOwner owner, const CallOptions& call);

// The same as the effect that it is.
RemoveSkeleton PodRemovalEffect(const KubeletPaths& paths, const PodUid& pod,
                                PodDirectoryOwner owner);

}  // namespace volumed
