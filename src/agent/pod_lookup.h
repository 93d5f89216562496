// Finds the pod that a caller means.
#pragma once

#include "agent.pb.h"
#include "base/ids.h"
#include "base/result.h"
#include "kube/object_catalog.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// By uid when it is given, else by namespace (default "default") and name; a name that is a uid is
// taken as one. A static pod is found by the name in its manifest too, without the node's name that
// it has got behind it. Errors, not applied: InvalidArgument when nothing is given, NotFound.
// Threads: control thread.
Result<PodUid> FindPodUid(const VolumeManager& manager, const v1::ObjectRef& ref,
                          const NodeName& node);

// A pod that waits for the end of another one of its name; null: none does.
const WaitingPod* FindWaitingPod(const ObjectCatalog& catalog, const v1::ObjectRef& ref,
                                 const NodeName& node);

// As FindPodUid; if there is none, the one that waits, once it has a uid.
Result<PodUid> FindPodOrSuccessor(const VolumeManager& manager, const ObjectCatalog& catalog,
                                  const v1::ObjectRef& ref, const NodeName& node);

// Whether somebody who says `name` means this pod: its name, its uid, or its name in its manifest.
bool IsPodName(const PodName& pod, const std::string& name, const NodeName& node);

// By its name in the views, or by one of those that it has in the pod's spec: a volume that came by
// a claim is shown by its PersistentVolume's. Null: the pod has none.
const VolumeView* FindVolumeByName(const PodView& pod, const std::string& name);

// "default/web", for messages.
std::string DisplayName(const v1::ObjectRef& ref);

}  // namespace volumed
