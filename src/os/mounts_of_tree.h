// Which mounts would be left with nothing, or with another thing, if a directory went from its
// place.
#pragma once

#include <string>

#include "base/result.h"
#include "os/kernel_answers.h"

namespace volumed {

// FailedPrecondition, not applied, with `what` before it, if a mount of this mount namespace shows
// the open directory (O_PATH is enough) or a part of it, or lies in it or on it, naming the place;
// and if the directory was moved or its mount taken away meanwhile. A mount may come right
// afterwards. Threads: any. Blocks: never on a mounted filesystem.
Status CheckNothingIsMounted(int directory, const KernelFeatures& features,
                             const std::string& what);

}  // namespace volumed
