// What `volumectl get pv|pvc|sc` shows.
#pragma once

#include "agent.pb.h"
#include "base/result.h"
#include "kube/object_catalog.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// Lists the objects of one kind, sorted by namespace and name (StorageClasses that are refused come
// last), at most 5000; `not_shown` counts the rest. The request's name, and for claims its
// namespace, choose among them; each that is "" chooses all. None that fits is no error. Threads:
// the control thread. Blocks: never. Errors, not applied: InvalidArgument for any other kind.
Status ListStorage(const ObjectCatalog& catalog, const VolumeManager& manager,
                   const v1::GetStorageRequest& request, v1::GetStorageResponse* response);

}  // namespace volumed
