// The directories of a pod that hold its volumes. They are made before the first volume and removed
// after the last. Source: kubernetes pkg/kubelet/kubelet_pods.go@v1.36.2 (makePodDataDirs),
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

// Whose entries may be in the directories of this root's pods.
enum class PodDirectoryOwner {
  // Only the agent's: whatever the agent did not make is foreign.
  kAgent,
  // Also a kubelet's: the root was adopted, and the kubelet left its own entries behind.
  kKubelet,
};

// Threads: any, but not beside a removal of the same pod. Blocks: until the deadline.

// Makes <root>/pods/<uid> and in it volumes and plugins, all with the mode 0750. It is idempotent.
Status MakePodDirectories(Kernel& kernel, const KubeletPaths& paths, const PodUid& pod,
                          const CallOptions& call);

// The same as a list of effects.
std::vector<MakeDirectory> PodDirectoryEffects(const KubeletPaths& paths, const PodUid& pod);

// The directories that must exist before a volume is made at the target: those of the pod for a
// pod's volume; any other caller that names a place has made the directories itself.
std::vector<MakeDirectory> TargetDirectoryEffects(const KubeletPaths& paths,
                                                  const VolumeTarget& target);
Status MakeTargetDirectories(const VolumeHost& host, const VolumeTarget& target,
                             const CallOptions& call);

// Removes the directories with what is known to be left in them: empty directories of volumes,
// readiness markers, targets of sub-paths. It never removes a foreign file, and looks into no
// volume: a directory of a volume goes only if it is empty and not a mount point. It is idempotent.
// With kKubelet it also removes kubelet's own entries, after the volumes and never across a mount:
// the trees "containers" and "plugins", and the file "etc-hosts". Kubelet removes these with the
// pod itself. Source: kubernetes pkg/kubelet/kubelet_volumes.go@v1.36.2 (cleanupOrphanedPodDirs),
// pkg/kubelet/kubelet_pods.go@v1.36.2 (ensureHostsFile), pkg/kubelet/config/defaults.go@v1.36.2.
// Errors: FailedPrecondition, not applied for what it names: there is something that the agent did
// not make, or a volume that is not torn down. What was empty before that is gone.
Status RemovePodDirectories(Kernel& kernel, const KubeletPaths& paths, const PodUid& pod,
                            PodDirectoryOwner owner, const CallOptions& call);

// The same as an effect.
RemoveSkeleton PodRemovalEffect(const KubeletPaths& paths, const PodUid& pod,
                                PodDirectoryOwner owner);

}  // namespace volumed
