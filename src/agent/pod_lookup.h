// Finds the pod that a caller names. Threads: the control thread, for what takes the manager or the
// catalog; any for the rest. Blocks: never.
#pragma once

#include "agent.pb.h"
#include "base/ids.h"
#include "base/result.h"
#include "kube/object_catalog.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// Finds the pod by uid if it is given, else by namespace (by default "default") and name. A name
// that is a uid is taken as one, in whatever namespace. A static pod is also found by the name in
// its manifest, which lacks the node's name at its end. If several pods have the name, the one that
// does not leave is meant. Errors, not applied: InvalidArgument if the reference is empty;
// Unavailable if there is no such pod among those that are known before the records of the last run
// are loaded; NotFound.
Result<PodUid> FindPodUid(const VolumeManager& manager, const v1::ObjectRef& ref,
                          const NodeName& node);

// The pod that waits for the end of another pod of the same name, found by the same words as in
// FindPodUid; null if none waits. The pointer is valid until the catalog changes.
const WaitingPod* FindWaitingPod(const ObjectCatalog& catalog, const v1::ObjectRef& ref,
                                 const NodeName& node);

// Like FindPodUid; if there is no such pod, the one that waits under this name, if it has a uid
// yet. Errors: those of FindPodUid.
Result<PodUid> FindPodOrSuccessor(const VolumeManager& manager, const ObjectCatalog& catalog,
                                  const v1::ObjectRef& ref, const NodeName& node);

// Whether `name` means this pod: it is the pod's name, its uid, or its name in its manifest.
bool IsPodName(const PodName& pod, const std::string& name, const NodeName& node);

// Finds a volume by its name in the pod's view, or by its name in the pod's spec; a volume that a
// claim gives is shown under the name of its PersistentVolume. Null if the pod has no such volume.
// The pointer is into `pod`.
const VolumeView* FindVolumeByName(const PodView& pod, const std::string& name);

// The name for messages: "default/web", or the uid if that is how the pod is named.
std::string DisplayName(const v1::ObjectRef& ref);

}  // namespace volumed
