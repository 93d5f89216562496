// Where the cgroup of a pod may be: the names that a kubelet gives it.
//
// Pure; threads: any. Blocks: never.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace volumed {

// From the root of a hierarchy, without "/" at the begin: those of each quality of service, of both
// cgroup drivers of a kubelet (systemd, cgroupfs), with its cgroup root unset or "kubelet", as kind
// has it. Errors, not applied: InvalidArgument for a text that is no uid of a pod.
// Source: kubernetes pkg/kubelet/cm/pod_container_manager_linux.go (GetPodContainerName),
// pkg/kubelet/cm/cgroup_manager_linux.go (ToSystemd, ToCgroupfs)@v1.36.2.
Result<std::vector<std::string>> PodCgroups(const std::string& pod_uid);

}  // namespace volumed
