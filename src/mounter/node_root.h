// PrepareRoot: the agent's root directory, made ready before anything is mounted in it.
// Source: kubernetes pkg/kubelet/kubelet.go@v1.36.2 (setupDataDirs).
#pragma once

#include "base/result.h"
#include "os/kernel.h"
#include "volumehost/kubelet_paths.h"

namespace volumed {

// Makes the root (0750), pods/ (0750), plugins/ (0750) and volumed/ (0700), and makes the root a
// shared mount, so that what is mounted in it is seen in other mount namespaces. Idempotent:
// a root that is shared already is not bound onto itself again.
//
// Threads: any. Blocks: until the deadline.
// Errors: InvalidArgument, not applied, when the root is not absolute, not clean ("//", ".", "..",
// a trailing slash), is "/", or leads through a symbolic link: mounts would be looked for under
// another name than the kernel's. Those of the effects.
Status PrepareRoot(Kernel& kernel, const KubeletPaths& paths, const CallOptions& call);

}  // namespace volumed
