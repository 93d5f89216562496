// Checks a command on objects before it is carried out, and words what its caller is told. Nothing
// here changes anything.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/object_catalog.h"
#include "kube/object_directory.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// Threads: the control thread, for everything here. Blocks: never.

// What `volumectl apply` was told: decoded objects, in the order of the manifest.
struct ApplyWords {
  std::vector<Object> objects;
  bool replace = false;  // replaces pods whose volumes the new manifest changes
};

// The objects as they are to be stored, with the uids that are already known for their names, and
// what the directory has to know of each. The command has no number yet: the caller gets one that
// is on record.
// The first object that is refused refuses all. Errors, not applied:
//  - AlreadyExists, for an object that another source has, that is being deleted (for a pod: only
//    if the new manifest changes its volumes), or that has the uid of an object that was deleted;
//    for a claim that belongs to a pod's generic ephemeral volume; and for a pod that has the uid
//    of a pod of another name, or that a source has already under the other form of its name, with
//    or without the node's suffix;
//  - FailedPrecondition, for a change of an immutable field (kube/validate_update.h), and for a
//    manifest that names another uid than the object has.
// Whether the manifest changes a pod's volumes is checked later, by the directory, which has the
// pod.
Result<ApplyCommand> AdmitApply(const ObjectCatalog& catalog, const VolumeManager& manager,
                                const NodeName& node, ApplyWords words);

// Whether another directory may be accepted as that of the PersistentVolume with the name `volume`.
// It may not while the reclaim policy is about to delete the volume's content, since that would
// then be the content of the accepted directory. A volume that is unknown, or that never had a
// claim, passes. Errors: FailedPrecondition, not applied.
Status CheckAcceptVolume(const ObjectCatalog& catalog, const VolumeManager& manager,
                         const std::string& volume);

// The warning for an object whose deletion is on record: what keeps the object, what stays of it,
// or which manifest still has it. "" if there is no warning. `origin` is the source and file that
// had the object when it was deleted.
std::string WarningOfDelete(const VolumeManager& manager, const ObjectKey& object,
                            const std::optional<ObjectOrigin>& origin);

// Data on disk that the reclaim policy deletes once the object is gone. The object is a claim, or a
// PersistentVolume whose claim is gone or being deleted.
struct DoomedData {
  std::string volume;  // the name of the PersistentVolume
  std::string place;   // "/srv/disk"; "" if it has no name on this node
  std::string policy;  // "Delete"
  bool in_use = false;
  std::string stays_because = {};  // why the data stays all the same; "" if it is deleted
  std::string way_to_keep = {};    // only if in_use: how the data can still be kept
};

// nullopt if no data ends with the object: the claim is not bound, the volume's claim is not gone
// nor being deleted, or the policy is Retain.
std::optional<DoomedData> DataThatEndsWith(const ObjectCatalog& catalog,
                                           const VolumeManager& manager, const ObjectKey& object);

// DataThatEndsWith() as text for people; of a bound claim whose volume is retained, that its data
// stays; "" if there is no data.
std::string FateOfData(const ObjectCatalog& catalog, const VolumeManager& manager,
                       const ObjectKey& object);

// Refuses to delete, without `yes`, a PersistentVolume that has left its source and whose data the
// command would delete: until then such a volume keeps its data. Objects of other kinds, and
// unknown ones, pass. Errors: FailedPrecondition, not applied.
Status CheckDelete(const ObjectCatalog& catalog, const VolumeManager& manager,
                   const ObjectKey& object, bool yes);

// The source and file of an object that a source has now: it is in use, or refused because of an
// earlier deletion. nullopt otherwise, also for an object that is Missing, unproven or going. It
// has to be asked before the object is deleted: a manifest that has it now still has it afterwards.
std::optional<ObjectOrigin> OriginOfDeleted(const ObjectCatalog& catalog, const ObjectKey& object);

// The warning for a pod that is about to be deleted while a manifest has it; "" if no manifest
// does.
std::string WarningOfPodDelete(const ObjectCatalog& catalog, const ObjectKey& pod);

}  // namespace volumed
