// Loop devices that somebody attached to a file of ours.
// Source: kubernetes pkg/volume/util/volumepathhandler/volume_path_handler_linux.go@v1.36.2
// (getLoopDeviceFromSysfs), Linux drivers/block/loop.c (loop_clr_fd), loop(4).
#pragma once

#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

// Threads: any. Blocks: while a loop device writes back.
Result<Changed> DoDetachLoops(const DetachLoops& request);

}  // namespace volumed
