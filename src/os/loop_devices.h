// The requests about loop devices: AttachLoop, ListLoops, ConfigureLoop (os/image_requests.h), and
// DetachLoops (os/device_requests.h), which also takes those that somebody else attached.
// Source: kubernetes pkg/volume/util/volumepathhandler/volume_path_handler_linux.go@v1.36.2
// (getLoopDeviceFromSysfs), Linux drivers/block/loop.c (loop_configure, loop_clr_fd), loop(4).
#pragma once

#include <string>

#include "base/descriptor.h"
#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

// Threads: any. Blocks: while a loop device writes back, and as DoListLoops does.
Result<Changed> DoDetachLoops(const DetachLoops& request);

// Threads: any; one file's at a time. Blocks: as the file does, and as FileOfLoops::MayBeOn.
Result<AttachedLoop> DoAttachLoop(const AttachLoop& request, const KernelFeatures& features);

// Threads: any. Blocks: as the path's filesystem does, and as FileOfLoops::MayBeOn.
Result<LoopList> DoListLoops(const ListLoops& request);

// Threads: any. Blocks: while the loop device writes back.
Result<Done> DoConfigureLoop(const ConfigureLoop& request);

// The loop device that an open file has, as "/dev/loop3"; empty if it has none. Every loop device
// of the node that may have it is opened for a moment. Errors, not applied: errno of opening or
// asking one.
Result<std::string> FindLoopOn(int file, const std::string& what);

// A loop device that goes when nobody has it open or mounted any more, also if its process is
// killed.
struct PrivateLoop {
  std::string path;
  Descriptor device;
};
// Of blocks of 512 bytes, from which a filesystem mounts whatever sectors it was made with, and
// through the file's cache. Errors, not applied: as AttachLoop's.
Result<PrivateLoop> AttachPrivateLoop(int file, const std::string& what);

}  // namespace volumed
