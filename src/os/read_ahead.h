// How much the kernel reads ahead of whoever reads a block device in order. Source: Linux
// Documentation/ABI/stable/sysfs-block (read_ahead_kb).
//
// Threads: any. Blocks: never.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// `what` is put before each error.

// Errors: InvalidArgument, not applied, for what the kernel cannot keep: it has whole pages, as a
// number of 32 bits.
Status CheckReadAheadKib(int64_t kib, const std::string& what);

// Sets it, unless it is so, and reads it back. `sysfs` is the directory of a whole disk. Errors:
// those of DoWriteAttribute; Internal, maybe applied, if the kernel then shows another one.
Status WriteReadAhead(const std::string& sysfs, int64_t kib, const std::string& what);

Result<Done> DoSetReadAhead(const SetReadAhead& request);

}  // namespace volumed
