// What is asked of a command on objects before it is carried out, and what its caller is told.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/object_catalog.h"
#include "kube/object_directory.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// Threads: the control thread, for both. Blocks: never.

struct ApplyWords {
  std::vector<Object> objects;
  bool replace = false;  // pods whose volumes are others are replaced
};

// The objects as they are to be stored, with the uids that their names have already.
// Errors, not applied: AlreadyExists for an object that another source has, that is being deleted
// (a pod only if its volumes are to be others), or that has the uid of one that was deleted;
// FailedPrecondition for a change of what is immutable (kube/validate_update.h), and for a manifest
// that names another uid than the object has.
// Whether a pod's volumes are others is seen by the directory, which has it.
Result<ApplyCommand> AdmitApply(const ObjectCatalog& catalog, const VolumeManager& manager,
                                const NodeName& node, ApplyWords words);

// Whether another directory may be accepted as the volume's: not while its content is to be
// deleted, which would be that of the accepted one. Errors: FailedPrecondition, not applied.
Status CheckAcceptVolume(const ObjectCatalog& catalog, const VolumeManager& manager,
                         const std::string& volume);

// Of an object whose deletion is on record: what keeps it, what stays of it, or which manifest
// still has it. "" if there is nothing to be told. `origin` is who had it when it was deleted.
std::string WarningOfDelete(const VolumeManager& manager, const ObjectKey& object,
                            const std::optional<ObjectOrigin>& origin);

// The data of a claim, or of a PersistentVolume whose claim is gone or being deleted, of which the
// policy says that it is deleted once that has ended.
struct DoomedData {
  std::string volume;  // its PersistentVolume
  std::string place;   // "/srv/disk"; "" if it has no name on this node
  std::string policy;  // "Delete"
  bool in_use = false;
  std::string stays_because = {};  // why it stays all the same; "" if it goes
  std::string way_to_keep = {};    // of what is in use: what can be done before it goes
};

// nullopt if the object has no such data: the claim is not bound, that of the volume is not to go,
// or the policy is Retain.
std::optional<DoomedData> DataThatEndsWith(const ObjectCatalog& catalog,
                                           const VolumeManager& manager, const ObjectKey& object);

// The same in words; "" if there is none.
std::string FateOfData(const ObjectCatalog& catalog, const VolumeManager& manager,
                       const ObjectKey& object);

// A PersistentVolume that has left its source keeps its data; the command ends that, and has to say
// so with `yes`. Errors: FailedPrecondition, not applied.
Status CheckDelete(const ObjectCatalog& catalog, const VolumeManager& manager,
                   const ObjectKey& object, bool yes);

// Who had it when it was deleted, if that has it still: in use, or refused because of an earlier
// deletion.
std::optional<ObjectOrigin> OriginOfDeleted(const ObjectCatalog& catalog, const ObjectKey& object);

// Of a pod that is about to be deleted: the manifest that has it now, or "".
std::string WarningOfPodDelete(const ObjectCatalog& catalog, const ObjectKey& pod);

}  // namespace volumed
