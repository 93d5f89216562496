// Whose a file is, by whatever name it was found: a hard link, or a loop device, leads to the file
// of a volume as well as its own path does.
//
// Threads: any. Blocks: never.
#pragma once

#include <string>

#include "os/storage_requests.h"
#include "pool/pool_volumes.h"

namespace volumed {

// "volume v-..." or "snapshot s-...", of which the file or directory is on record; empty: of none.
std::string OwnerOfObject(const PoolVolumes& volumes, const StorageObject& object);

}  // namespace volumed
