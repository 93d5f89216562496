// CutFrozen (os/freeze_requests.h).
#pragma once

#include <string>

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// `thawer` is the program that is started as the thawer (os/thawer.h). Threads: any; one
// filesystem's and one file's at a time. Blocks: as long as the filesystems sync and freeze.
Result<FrozenCut> DoCutFrozen(const CutFrozen& request, const KernelFeatures& features,
                              const std::string& thawer, const CallOptions& options);

}  // namespace volumed
