// The mounts of a container, as an OCI runtime configuration has them.
// Source: opencontainers/runtime-spec config-linux.md (mounts), kubernetes
// pkg/kubelet/kubelet_pods.go@v1.36.2 (makeMounts).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "kube/objects.h"
#include "volumemanager/views/view_types.h"

namespace volumed {

// A volumeMount, as an entry of `mounts` has it.
struct ContainerMount {
  std::string destination;           // in the container
  std::string source;                // on the node: the volume, or its prepared subPath
  std::vector<std::string> options;  // "rbind", "ro" or "rw", "rro", "rprivate" ...
};

// A volumeDevice, as linux.devices and linux.resources.devices have it. Source: kubernetes
// pkg/kubelet/kubelet_pods.go@v1.36.2 (makeBlockVolumes).
struct ContainerDevice {
  std::string path;         // in the container
  std::string host_path;    // the pod's link to the device
  std::string permissions;  // "mrw"; "r" if the claim is read-only, which only this enforces
};

// All volumeDevices of the container, in the order of the pod. `container` is the name of one of
// any kind: also of an init or an ephemeral container. Threads: any. Blocks: never; whether the
// link and the device still exist is not looked at. Errors, not applied: NotFound (no such
// container); FailedPrecondition, naming a volume that is not mapped (kubelet leaves such a volume
// out).
Result<std::vector<ContainerDevice>> GetContainerDevices(const Pod& pod, const PodView& view,
                                                         const std::string& container);

// All volumeMounts of the container, in the order of the pod. Threads, Blocks: as
// GetContainerDevices. Errors, not applied: NotFound (no such container); FailedPrecondition,
// naming a volume that is not set up, or one of which the subPath is not prepared; Unimplemented,
// if the pod demands recursive read-only (Enabled) and the kernel does not have it.
Result<std::vector<ContainerMount>> GetContainerMounts(const Pod& pod, const PodView& view,
                                                       const std::string& container,
                                                       bool kernel_has_recursive_read_only);

}  // namespace volumed
