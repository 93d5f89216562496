// IdentifyStorage and MarkStorage (os/storage_requests.h), done by descriptor.
#pragma once

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// Threads: any. Blocks: as the filesystems on the way do.
Result<StorageIdentity> DoIdentifyStorage(const IdentifyStorage& request,
                                          const KernelFeatures& features);
Result<Changed> DoMarkStorage(const MarkStorage& request, const KernelFeatures& features);

// Whose a directory is, as an open descriptor (O_PATH is enough) shows it; empty without a mark.
std::string ReadOwnerMark(int directory);

// What tells the open directory from others. `fs_type` is its mount's.
StorageObject ReadStorageObject(int directory, const std::string& fs_type);

}  // namespace volumed
