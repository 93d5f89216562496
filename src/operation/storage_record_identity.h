// What the record of a volume's storage says of devices, and how it is compared. Only the
// StorageGuard's own source files include this.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "operation/storage_record.h"
#include "operation/storage_table.h"
#include "os/storage_requests.h"

namespace volumed {

// Threads: any. Blocks: never. All functions are pure, except those that change a record.

// Whether the holder has a device of the node that is mounted, formatted, or handed out raw.
bool IsDevice(const StorageHolder& holder);

// Whether the volume has data there, by its record.
bool IsUsed(const StorageOwnerRecord& record);

// Whether the record says that the volume has had a device.
bool TellsDevice(const StorageOwnerRecord& record);

// Whether the record identifies the storage independently of where its path leads by now.
bool TellsIdentity(const StorageOwnerRecord& record);

// Whether this use of a device ruins the data of a volume that used the device as recorded.
bool Ruins(StorageUse use, StorageMode recorded);

// Whether the device is the recorded storage, is a part of it, or contains it. Storage that lies in
// a file on the device is not part of the device.
bool MeetsDevice(const StorageOwnerRecord& record, const StorageIdentity& device);

// The same for a directory, which may lie on the recorded storage.
bool MeetsDirectory(const StorageOwnerRecord& record, const StorageIdentity& directory);

// Keeps in `record` what the same claim had before.
void KeepIdentity(const StorageOwnerRecord& before, StorageOwnerRecord& record);
// Adds the present identity of the storage to the record.
void AddIdentity(const StorageIdentity& identity, StorageOwnerRecord& record);
void ForgetIdentity(StorageOwnerRecord& record);

// The error for a fact about the storage itself that forbids the use.
inline Error Refused(const std::string& why) {
  return Error::NotApplied(Code::kFailedPrecondition, why);
}

}  // namespace volumed
