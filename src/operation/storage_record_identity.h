// What the record of a volume's storage says of devices, and how it is compared. For the
// StorageGuard's own source files alone.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "operation/storage_record.h"
#include "operation/storage_table.h"
#include "os/storage_requests.h"

namespace volumed {

// Threads: any. Blocks: never. All but the changes of a record are pure.

// A device of the node, that is mounted, formatted, or handed out raw.
bool IsDevice(const StorageHolder& holder);

// Whether the volume has data there, as far as its record tells.
bool IsUsed(const StorageOwnerRecord& record);

// Whether it tells that the volume has had a device.
bool TellsDevice(const StorageOwnerRecord& record);

// Whether the record tells what the storage is wherever its path leads by now.
bool TellsIdentity(const StorageOwnerRecord& record);

// Whether to have a device for this use ruins what a volume has on it that used it as recorded.
bool Ruins(StorageUse use, StorageMode recorded);

// Whether the device is the recorded storage, a part of it, or contains it. What lies in a file on
// it is no part of it.
bool MeetsDevice(const StorageOwnerRecord& record, const StorageIdentity& device);

// The same of a directory, which may lie on the recorded storage.
bool MeetsDirectory(const StorageOwnerRecord& record, const StorageIdentity& directory);

// What the same claim had before is not forgotten.
void KeepIdentity(const StorageOwnerRecord& before, StorageOwnerRecord& record);
// What the storage is now is the volume's, too.
void AddIdentity(const StorageIdentity& identity, StorageOwnerRecord& record);
void ForgetIdentity(StorageOwnerRecord& record);

// How long the look at another storage may take that decides whether something is deleted.
inline constexpr Duration kLookTimeout = std::chrono::seconds(10);
// Something about the storage itself speaks against it.
inline Error Refused(const std::string& why) {
  return Error::NotApplied(Code::kFailedPrecondition, why);
}

}  // namespace volumed
