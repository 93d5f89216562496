// Finds the pod that a caller means.
#pragma once

#include "agent.pb.h"
#include "base/ids.h"
#include "base/result.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// By uid when it is given, else by namespace (default "default") and name; a name that is a uid is
// taken as one. Errors, not applied: InvalidArgument when nothing is given, NotFound.
// Threads: control thread.
Result<PodUid> FindPodUid(const VolumeManager& manager, const v1::ObjectRef& ref);

// "default/web", for messages.
std::string DisplayName(const v1::ObjectRef& ref);

}  // namespace volumed
