// Giving a tree to a group. See os/kernel_requests.h (ChangeOwnership).
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include "base/result.h"
#include "os/kernel.h"
#include "os/work_meter.h"

namespace volumed {

// Entries that vanish while the walk goes on are no error; other failures end it and name the path.
// The root is changed last, and only after everything else was right or has been made right.
// Threads: any. Blocks: as the filesystem does.
Result<OwnershipInfo> DoChangeOwnership(const ChangeOwnership& request,
                                        const KernelFeatures& features, const CallOptions& options);

// What an entry with `mode` (type and permission bits) must have. Pure.
// Source: kubernetes pkg/volume/volume_linux.go@v1.36.2 (changeFilePermission).
uint32_t WantedMode(uint32_t mode, bool read_only);

}  // namespace volumed
