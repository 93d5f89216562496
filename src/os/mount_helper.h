// Filesystems that a program of their own mounts: /sbin/mount.<type> (NFS, CIFS, FUSE). By
// libmount.
#pragma once

#include <string>

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// Whether /sbin/mount.<type> exists. Threads: any.
bool HasMountHelper(const std::string& fs_type);

// The helper is another process and gets the target as a path: check that it holds no link first.
// Blocks: as long as the helper does.
// Errors: not applied, when libmount says that the helper failed, with the helper's status.
Status MountWithHelper(const Mount& request);

}  // namespace volumed
