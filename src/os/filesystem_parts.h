// Whether a filesystem has all of itself on one device. Tools that are told of the one find the
// others by UUID or number wherever they are on the node, and write to them.
#pragma once

#include <string>

#include "base/result.h"

namespace volumed {

// True for a btrfs of several devices, an ext with a journal elsewhere, an xfs with its log or a
// realtime part elsewhere; false for other types. Blocks: as the device does. Errors: errno of
// reading, not applied; DataLoss, not applied, if it ends before its superblock.
// Source: Linux Documentation/filesystems/ext4/super.rst; fs/xfs/libxfs/xfs_format.h (xfs_dsb);
// include/uapi/linux/btrfs_tree.h (btrfs_super_block).
Result<bool> SpansDevices(int device, const std::string& fs_type, const std::string& path);

}  // namespace volumed
