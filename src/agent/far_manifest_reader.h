// Reads the file on another filesystem to which a link in a manifest directory leads. A worker
// reads it, so that the agent does not hang if that filesystem does not answer.
#pragma once

#include <string>

#include "base/clock.h"
#include "kube/manifest_reader.h"
#include "os/kernel.h"

namespace volumed {

// Threads: any. Blocks: for `deadline` at most. Errors: in the answer.
FarContent ReadFarContent(Kernel& kernel, const Clock& clock, const std::string& path,
                          Duration deadline);

}  // namespace volumed
