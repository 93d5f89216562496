// What `volumectl get pv|pvc|sc` shows.
#pragma once

#include "agent.pb.h"
#include "base/result.h"
#include "kube/object_catalog.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// Of one kind, sorted by namespace and name; the first 5000. Threads: the control thread. Blocks:
// never. Errors, not applied: InvalidArgument for a kind that is none of the three.
Status ListStorage(const ObjectCatalog& catalog, const VolumeManager& manager,
                   const v1::GetStorageRequest& request, v1::GetStorageResponse* response);

}  // namespace volumed
