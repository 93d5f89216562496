// IdentifyStorage and MarkStorage (os/storage_requests.h), done by descriptor.
#pragma once

#include "base/descriptor.h"
#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

// Threads: any. Blocks: as the filesystems on the way do.
Result<StorageIdentity> DoIdentifyStorage(const IdentifyStorage& request,
                                          const KernelFeatures& features);
Result<Changed> DoMarkStorage(const MarkStorage& request, const KernelFeatures& features);

// Whose a directory is, as an open descriptor (O_PATH is enough) shows it; empty without a mark.
std::string ReadOwnerMark(int directory);

// What tells the open directory or regular file from others. `fs_type` is its mount's.
StorageObject ReadStorageObject(int file, const std::string& fs_type);

// As StorageObject::handle has it, of an open file of any kind (O_PATH is enough).
std::string FileHandleOf(int file);

// FailedPrecondition, not applied, if the open directory or file is another one than `expected`, or
// if its mount was taken away meanwhile.
Status CheckIsExpected(int file, const StorageObject& expected, const KernelFeatures& features);

// Opens what has this handle in the filesystem of an open directory (O_PATH is enough). Errors, not
// applied: errno of open_by_handle_at(2), ESTALE if there is no such file any more; InvalidArgument
// for what is no handle.
Result<Descriptor> OpenByHandle(int directory, const std::string& handle);

// As StorageDifference, for a path that leads nowhere any more; `now` tells the filesystem above
// it. Without an inode it is the filesystem's UUID that shows that the recorded directory was
// removed: else its disk may just not be mounted there. Empty when it was removed. Pure.
std::string RemovalDoubt(const StorageObject& recorded, const StorageObject& now);

}  // namespace volumed
