// Filesystems that a program of their own mounts: /sbin/mount.<type> (NFS, CIFS, FUSE).
// Source: mount(8), EXTERNAL HELPERS.
#pragma once

#include <string>

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// Whether /sbin/mount.<type> exists. Threads: any.
bool HasMountHelper(const std::string& fs_type);

// The helper is another process and gets the target as a path: check that it holds no link first.
// It runs in a scope of its own (os/process_scope.h), for the daemons that it leaves behind.
// Blocks: as long as the helper does.
// Errors: not applied, when the helper failed, with its status and what it said, in which the
// values of options are left out; maybe applied, when a signal ended it.
Status MountWithHelper(const Mount& request, const CallOptions& options);

}  // namespace volumed
