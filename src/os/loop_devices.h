// The requests about loop devices: AttachLoop, ListLoops, ConfigureLoop (os/image_requests.h), and
// DetachLoops (os/device_requests.h), which also takes those that somebody else attached.
// Source: kubernetes pkg/volume/util/volumepathhandler/volume_path_handler_linux.go@v1.36.2
// (getLoopDeviceFromSysfs), Linux drivers/block/loop.c (loop_configure, loop_clr_fd), loop(4).
#pragma once

#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

// Threads: any. Blocks: while a loop device writes back.
Result<Changed> DoDetachLoops(const DetachLoops& request);

// Threads: any; one file's at a time. Blocks: as the files of loop devices do.
Result<AttachedLoop> DoAttachLoop(const AttachLoop& request, const KernelFeatures& features);

// Threads: any. Blocks: never, nor does it ask a device or a file.
Result<LoopList> DoListLoops(const ListLoops& request);

// Threads: any. Blocks: while the loop device writes back.
Result<Done> DoConfigureLoop(const ConfigureLoop& request);

}  // namespace volumed
