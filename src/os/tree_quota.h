// SetTreeQuota and ReadTreeQuota (os/quota_requests.h).
#pragma once

#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

// Threads: any; one directory's at a time. Blocks: as the filesystem does.
Result<TreeQuota> DoSetTreeQuota(const SetTreeQuota& request, const KernelFeatures& features);
Result<TreeQuota> DoReadTreeQuota(const ReadTreeQuota& request);

}  // namespace volumed
