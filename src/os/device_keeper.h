// DeviceKeeper: a process that keeps one block device open, and does nothing else.
//
// Whoever closes a device last waits until what was written to it is there, in the kernel and for
// as long as the disk does not answer. A process that ends with such a descriptor does not end
// then, and neither do its locks, so that no other agent could start. A keeper that hangs so holds
// up nobody. It ends when the other end of its socket is closed.
// Source: Linux block/bdev.c (bdev_release, sync_blockdev).
#pragma once

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/result.h"

namespace volumed {

// Starts a keeper of the device. It has nothing else of this process open, and has left its process
// group, so that what kills that leaves the keeper. Returns the keeper's socket, which may be
// given to another process: the device is kept as long as somebody has it. Threads: one at a time.
// Blocks: for the start of the process. Errors, not applied: errno of the socket, or of the
// process; Unavailable if somebody ends that at once.
Result<Descriptor> KeepDeviceOpen(Descriptor device);

// Whether the device is still kept: somebody may have killed the keeper. `keeper` is what
// KeepDeviceOpen returned; one that is not valid, as a fake kernel's, keeps always. Threads: any.
// Blocks: never.
bool IsDeviceKept(const Descriptor& keeper);

// Lets the keeper close the device. True once it is closed; else it is closed when the disk
// answers, and this may be asked again. Threads: any. Blocks: for `patience` at most.
bool LetDeviceGo(const Descriptor& keeper, Duration patience);

}  // namespace volumed
