// Writing one small file whole: one of the agent's own, or an attribute of the kernel's. One
// function per request of os/kernel_requests.h; its comments say what each does. Threads: any.
// Blocks: as the filesystem does, or the driver behind an attribute.
#pragma once

#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

Result<Changed> DoWriteFile(const WriteFile& request);
Result<Done> DoWriteAttribute(const WriteAttribute& request);

}  // namespace volumed
