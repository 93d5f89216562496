// Making a filesystem as large as its device; os/device_requests.h says what the request does.
//
// Threads: any. Blocks: as the device, the filesystem and the tools do.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

Result<FilesystemGrowth> DoGrowFilesystem(const GrowFilesystem& request,
                                          const std::vector<std::string>& tool_directories,
                                          const CallOptions& options);

// A type that GrowFilesystem grows: ext3, ext4, xfs, btrfs. Pure.
bool IsGrowable(const std::string& fs_type);

}  // namespace volumed
