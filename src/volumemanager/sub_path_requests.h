// Sub-path requests: which parts of a volume the containers of a pod mount, with subPathExpr
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

struct SubPathPlan {
  std::vector<SubPathRequest> requests;
  std::vector<WantedProblem> problems;  // of mounts that could not be expanded
  std::set<ObjectKey> objects;          // that environment variables come from
};

// `earlier` are the requests that were made before: a mount that is among them keeps its path, as
// the container that runs with it does, whatever its variables say now.
// Threads: the control thread. Blocks: never.
SubPathPlan PlanSubPaths(const Pod& pod, const std::string& volume_name,
                         const std::vector<SubPathRequest>& earlier, const ObjectCatalog& catalog,
                         const HostNode& node);

}  // namespace volumed
