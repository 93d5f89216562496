// What goes on using an object that a command deletes although it is in use, as kubectl does: a
// StorageClass, a CSIDriver, or a Secret that calls to a driver need. Objects that are held while
// they are used say so themselves.
#pragma once

#include <string>

#include "kube/object_catalog.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// Who uses the object, with a few names, and what becomes of them without it; "" for an object that
// nobody uses, or that is of another kind. To be asked before the object goes. It walks over all
// claims, or over all volumes and pods: there is no index by class, driver or Secret, since nothing
// but a command by hand asks. Threads: the control thread. Blocks: never.
std::string WarningOfUse(const ObjectCatalog& catalog, const VolumeManager& manager,
                         const ObjectKey& object);

}  // namespace volumed
