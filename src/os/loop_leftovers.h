// What an earlier user of a loop device has set for it, and the kernel keeps for the next file.
// Source: blockdev(8) --setro; Linux Documentation/ABI/stable/sysfs-block (write_cache),
// block/blk-sysfs.c@v6.18: the limits that a driver sets anew leave both alone.
//
// Threads: any. Blocks: never.
#pragma once

#include <string>

#include "base/result.h"

namespace volumed {

// Makes an attached loop device one that takes writes, and that hands on to its file what it is
// asked to flush: with "write through" the kernel drops each flush, so that an fsync within the
// image promised what a power loss took. `device` is open, `name` is the kernel's, `what` is
// put before each error. Errors, maybe applied: those of BLKROSET and DoWriteAttribute.
Status ClearLoopLeftovers(int device, const std::string& name, const std::string& what);

}  // namespace volumed
