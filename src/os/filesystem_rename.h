// ChangeFilesystemUuid (os/freeze_requests.h). Source: tune2fs(8), and for btrfs
// os/btrfs_superblock.h.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// Threads: any; one file's at a time. Blocks: as long as the tools take, and the replay of a log.
Result<FilesystemName> DoChangeFilesystemUuid(const ChangeFilesystemUuid& request,
                                              const KernelFeatures& features,
                                              const std::vector<std::string>& tool_directories,
                                              const CallOptions& options);

}  // namespace volumed
