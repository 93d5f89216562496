// Sub-path requests: the parts of a volume that the containers of a pod mount, with subPathExpr
// expanded by the container's environment.
// Source: kubernetes pkg/kubelet/kubelet_pods.go@v1.36.2 (makeMounts),
// pkg/kubelet/container/helpers.go@v1.36.2 (ExpandContainerVolumeMounts).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "kube/object_catalog.h"
#include "kube/objects.h"
#include "operation/volume_operations.h"
#include "volumehost/volume_host.h"
#include "volumemanager/wanted_problem.h"

namespace volumed {

// What a volume's mounts by sub-path need.
struct SubPathPlan {
  std::vector<SubPathRequest> requests;
  std::vector<WantedProblem> problems;  // of mounts that could not be expanded
  std::set<ObjectKey> objects;          // those from which environment variables come
};

// `earlier` has the requests that were made before: a mount that is among them keeps its path,
// whatever its variables say now, since the container that runs with it keeps it too. Threads: the
// control thread. Blocks: never. A mount of the whole volume needs no request. Errors: none; a
// mount that cannot be expanded is a problem, and the others are planned all the same.
SubPathPlan PlanSubPaths(const Pod& pod, const std::string& volume_name,
                         const std::vector<SubPathRequest>& earlier, const ObjectCatalog& catalog,
                         const HostNode& node);

}  // namespace volumed
