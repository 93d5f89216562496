// The static backend: a volume is a block device that was there before, and that the pool has
// nothing of but the row. The path of a device may lead to another one tomorrow; so the device is
// pinned by what it says of itself (a disk's WWID), and nothing else is ever opened in its stead.
#pragma once

#include <string>

#include "base/result.h"
#include "os/kernel.h"
#include "pool/pool_record.h"

namespace volumed {

// The device of the volume. Threads: any. Blocks: until the call's deadline, in the lane of the
// device. Errors, not applied: NotFound, if nothing is at its path; FailedPrecondition, if another
// device is there, or if it has become smaller; those of IdentifyDevice.
Result<IdentifiedDevice> FindStaticDevice(Kernel& kernel, const PoolVolumeRecord& volume,
                                          const CallOptions& call);

// The same without a volume: which device the path leads to. Errors: those of IdentifyDevice.
Result<IdentifiedDevice> IdentifyListed(Kernel& kernel, const std::string& path,
                                        const CallOptions& call);

}  // namespace volumed
