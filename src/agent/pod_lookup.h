// Finds the pod that a caller names.
#pragma once

#include "agent.pb.h"
#include "base/ids.h"
#include "base/result.h"
#include "kube/object_catalog.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// Finds the pod by uid if it is given, else by namespace (by default "default") and name. A name
// that is a uid is taken as one. A static pod is also found by the name in its manifest, which
// lacks the node's name at its end. Errors, not applied: InvalidArgument if the reference is empty;
// NotFound. Threads: the control thread.
Result<PodUid> FindPodUid(const VolumeManager& manager, const v1::ObjectRef& ref,
                          const NodeName& node);

// The pod that waits for the end of another pod of the same name; null if none waits.
const WaitingPod* FindWaitingPod(const ObjectCatalog& catalog, const v1::ObjectRef& ref,
                                 const NodeName& node);

// Like FindPodUid; if there is no such pod, the one that waits under this name, if it has a uid
// yet.
Result<PodUid> FindPodOrSuccessor(const VolumeManager& manager, const ObjectCatalog& catalog,
                                  const v1::ObjectRef& ref, const NodeName& node);

// Whether `name` means this pod: it is the pod's name, its uid, or its name in its manifest.
bool IsPodName(const PodName& pod, const std::string& name, const NodeName& node);

// Finds a volume by its name in the pod's view, or by its name in the pod's spec; a volume that a
// claim gives is shown under the name of its PersistentVolume. Null if the pod has no such volume.
const VolumeView* FindVolumeByName(const PodView& pod, const std::string& name);

// The name for messages: "default/web".
std::string DisplayName(const v1::ObjectRef& ref);

}  // namespace volumed
