// Reads the file on another filesystem to which a link in a manifest directory leads. A worker
// reads it, so that the agent does not hang if that filesystem does not answer.
#pragma once

#include <string>

#include "base/clock.h"
#include "kube/manifest_reader.h"
#include "os/kernel.h"

namespace volumed {

// Reads the file at this absolute path, if it is no larger than kMaxManifestBytes. Threads: any but
// the control thread. Blocks: for `deadline` at most, for all that it asks together. Errors: in the
// answer; DeadlineExceeded or Unavailable if the filesystem or its server does not answer. The
// agent may watch the way to the file only if the filesystem is this node's own: others may fall
// silent at any moment, and tell nothing of changes made elsewhere.
FarContent ReadFarContent(Kernel& kernel, const Clock& clock, const std::string& path,
                          Duration deadline);

}  // namespace volumed
