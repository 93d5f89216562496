// Which volumes of the node a path is about, by the records of pods and devices, and by the mounts
// of which none tells: a driver goes by the path that it is given, whatever volume is named beside
// it.
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "csi/csi_names.h"
#include "operation/operation_parts.h"
#include "operation/unrecorded_mounts.h"
#include "os/kernel.h"
#include "volumehost/kubelet_paths.h"

namespace volumed {

// The path with every link in it resolved, ".." as well; what is missing stays as it is. No mount
// is asked for its root, but what lies in one is. REQUIRES: it is absolute. Threads: any. Blocks:
// until the deadline. Errors, not applied: FailedPrecondition for a loop of links; those of the
// effects.
Result<std::string> FindRealPath(Kernel& kernel, const std::string& path, const CallOptions& call);

// Who has a volume at this path, in it or above it: "pod shop/web has volume pv-1 at /x/y"; empty:
// nobody. The path is looked at as it stands and with its links resolved. Those of a volume are its
// directories, links and binds in pods and beside them, and where its device is mounted, staged and
// mapped; the same of what a start has found mounted and on no record, as long as it is mounted.
// The cost depends on all volumes of the node. Threads, Blocks: as above. Errors, not applied:
// InvalidArgument for a path that is not absolute; those of FindRealPath(), and of ListMounts.
//
// With `but_at_path` a mount on no record at exactly this path counts for nothing.
Result<std::string> WhoHasPlace(const OperationParts& parts, const std::string& path,
                                const CallOptions& call, bool but_at_path = false);

// What of the driver's volume a start has found mounted and on no record, and still is. What says
// only by its place which volume it is counts, too, if the persistent volume, whose name may be
// empty, has such places. Threads: any. Blocks: as ListMounts. Errors: those of ListMounts.
Result<std::vector<UnrecordedMounts::Mounted>> FindUnrecorded(UnrecordedMounts& unrecorded,
                                                              const VolumeHost& host,
                                                              const CsiVolumeId& volume,
                                                              const SpecName& persistent_volume,
                                                              const CallOptions& call);

// Whether the driver has the volume at exactly this path, if it is staged, and published as these
// volumes of pods. Pure; threads: any.
bool IsCsiPlace(const KubeletPaths& paths, const CsiVolumeId& volume,
                const std::vector<PodVolumeKey>& pods, const std::string& path);

}  // namespace volumed
