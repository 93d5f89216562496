// VolumePathHandler: the places at which a raw block volume's device shows: one node per pod, bound
// in the volume's global map directory, and the pod's own link to the device.
//
//   <global map directory>/<pod uid>        the device's node, bound onto a file
//   pods/<uid>/volumeDevices/<esc plugin>/<spec name>  ->  /dev/...
//
// Names and order are those of kubernetes
// pkg/volume/util/volumepathhandler/volume_path_handler.go@v1.36.2. Three things differ:
//  - what is bound is the device that the caller identified, not what a path leads to by then, and
//    a node that is bound already must be that device (kubelet takes any);
//  - a pod's node counts as a reference by what it is; kubelet looks at the kind of the directory
//    entry, which is that of the file below the bind;
//  - no loop device is attached as a lock (see blockmapper/device_pins.h); those that a kubelet
//    left are recognised by their file's path, and detached.
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// Threads: any; one at a time per volume. Blocks: until the call's deadline. All are idempotent.
// Errors: those of the effects, unless a method says more.
class VolumePathHandler {
 public:
  // `kernel` outlives this.
  explicit VolumePathHandler(Kernel& kernel) : kernel_(kernel) {}

  // Binds the device's node to <map_path>/<link_name>; the directory is made. `device` should be
  // pinned. Errors: FailedPrecondition, not applied, if the node there, or what `device`'s path
  // leads to by now, is another device; AlreadyExists, not applied, if something else is there.
  Status MapDeviceByBind(const IdentifiedDevice& device, const SafePath& map_path,
                         const std::string& link_name, const CallOptions& call);
  // Makes <map_path>/<link_name> a link to `device_path`; the directory is made.
  Status MapDeviceByLink(const std::string& device_path, const SafePath& map_path,
                         const std::string& link_name, const CallOptions& call);

  // The inverses. The first removes an empty file alone: FailedPrecondition for one with content,
  // which is left. The second leaves alone what is no link.
  Status UnmapBoundDevice(const SafePath& map_path, const std::string& link_name,
                          const CallOptions& call);
  Status UnmapLinkedDevice(const SafePath& map_path, const std::string& link_name,
                           const CallOptions& call);

  // Removes the directory and the files in it. Errors: FailedPrecondition if a node is still bound.
  Status RemoveMapPath(const SafePath& map_path, const CallOptions& call);

  // Whether a link, or a block device's node, is at exactly this place; false if nothing is.
  Result<bool> IsSymlinkExist(const SafePath& path, const CallOptions& call);
  Result<bool> IsDeviceBindMountExist(const SafePath& path, const CallOptions& call);
  // The names of the nodes in a global map directory: uids of pods. There are none if it is
  // missing.
  Result<std::vector<std::string>> GetDeviceBindMountRefs(const SafePath& map_path,
                                                          const CallOptions& call);
  // Finds, below `plugin_dir`, the node of this pod that is the device that the pod's link leads
  // to. Errors: NotFound, not applied, if there is no such node or link.
  Result<SafePath> FindGlobalMapPathUUIDFromPod(const SafePath& plugin_dir,
                                                const SafePath& pod_link, const PodUid& pod,
                                                const CallOptions& call);

  // Detaches the loop devices that a kubelet attached to <map_path>/<link_name> as its lock. True
  // if there was one.
  Result<bool> DetachFileDevice(const SafePath& map_path, const std::string& link_name,
                                const CallOptions& call);

 private:
  Status Bind(const IdentifiedDevice& device, const SafePath& place, const CallOptions& call);

  Kernel& kernel_;
};

}  // namespace volumed
