// Mounting and unmounting, one function per request of os/kernel_requests.h; its comments say what
// each does. Targets and sources are held by checked descriptors throughout: no path is looked up
// twice.
//
// Threads: any. Blocks: as the kernel and mount helpers do.
#pragma once

#include "base/result.h"
#include "os/bind_anchor.h"
#include "os/kernel.h"

namespace volumed {

// Filesystems with a helper (/sbin/mount.nfs) are mounted by it, all others by the mount API
// itself, whose error texts go into the message.
Result<Done> DoMount(const Mount& request, const KernelFeatures& features,
                     const CallOptions& options);

// By open_tree, mount_setattr and move_mount; by mount(2), in two steps, without mount_setattr.
Result<Done> DoBindMount(const BindMount& request, const KernelFeatures& features,
                         BindAnchor& anchor);

// Per-mount flags change this mount only; every other option is the superblock's.
// FailedPrecondition, not applied, when the target is no mount point.
Result<Done> DoRemount(const Remount& request, const KernelFeatures& features);

Result<Changed> DoUnmount(const Unmount& request);

// A target that is no mount point is bound on itself together with the mounts below it.
Result<Changed> DoMakeShared(const MakeShared& request, const KernelFeatures& features);

}  // namespace volumed
