// Subpaths: a part of a volume as a bind of its own, so that a container is never given a path that
// its pod could still redirect. Checks and mounts happen on the same descriptor, inside the kernel
// effects; here is only their order.
// Source: kubernetes pkg/volume/util/subpath/subpath_linux.go@v1.36.2.
#pragma once

#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "os/kernel.h"
#include "volumehost/kubelet_paths.h"

namespace volumed {

struct SafeSubpathRequest {
  PodUid pod;
  SpecName spec;
  std::string container;
  int index = 0;         // of the volumeMount in the container
  SafePath volume;       // the volume's root: Mounter::GetSafePath()
  std::string sub_path;  // relative; from the pod, so resolved inside the volume only
};

// Binds volume/sub_path to <root>/pods/<uid>/volume-subpaths/<spec>/<container>/<index> and answers
// that place. A missing sub_path is made as directories with exactly the mode of the volume's root.
// Links inside the volume are followed; one that leads out is an error. A bind that is right
// already is kept; one of something else is replaced.
//
// Threads: one at a time per volume and pod. Blocks: until the deadline; may touch the volume's
// filesystem, so `call.domain` should be the volume's.
// Errors: InvalidArgument, not applied, for an empty or absolute sub_path, one with "..", or one in
// which a link leads out of the volume; those of the effects. After an error at most an empty
// target directory is left.
Result<SafePath> PrepareSafeSubpath(Kernel& kernel, const KubeletPaths& paths,
                                    const SafeSubpathRequest& request, const CallOptions& call);

// The same as the effect that it is.
// Errors: InvalidArgument, not applied, for a sub_path as above.
Result<PrepareSubPath> SubPathEffect(const KubeletPaths& paths, const SafeSubpathRequest& request);

// The effect that takes all subpath binds of a volume away.
RemoveSubPaths SubPathsRemoval(const KubeletPaths& paths, const PodUid& pod, const SpecName& spec,
                               bool keep_directories);

// Takes away all subpath binds of a volume, and leaves their directories: a root that takes no
// writes still lets its mounts go. It is to be done before the volume itself is torn down.
// Idempotent. True: there were directories. It never touches what is behind a bind.
// Errors: those of Unmount, naming the path; what came before is gone.
Result<bool> UnmountSubPaths(Kernel& kernel, const KubeletPaths& paths, const PodUid& pod,
                             const SpecName& spec, const CallOptions& call);

// The same, and then their directories. Idempotent.
// Errors: those of Unmount and RemoveDirectory, naming the path; what came before is gone.
Status CleanSubPaths(Kernel& kernel, const KubeletPaths& paths, const PodUid& pod,
                     const SpecName& spec, const CallOptions& call);

}  // namespace volumed
