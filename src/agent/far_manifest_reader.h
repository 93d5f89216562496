// Reads what a link in a manifest directory leads to on another filesystem: by a worker, so that
// nothing of the agent hangs where that does not answer.
#pragma once

#include <string>

#include "base/clock.h"
#include "kube/manifest_reader.h"
#include "os/kernel.h"

namespace volumed {

// Threads: any. Blocks: until kFarManifestDeadline (kube/far_manifests.h) has passed. Errors: in
// the answer.
FarContent ReadFarContent(Kernel& kernel, const Clock& clock, const std::string& path);

}  // namespace volumed
