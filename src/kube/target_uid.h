// The uids of those who are given volumes and are no pods: what a CO, such as a kubelet that calls
// the agent as its CSI driver, has published at a target. They have a ":", which no uid of a pod
// may have (rules::kUid), so that a pod never has the key of such a volume.
#pragma once

#include "base/ids.h"

namespace volumed {

inline constexpr char kTargetUidPrefix[] = "csi:";

// Threads: any. Blocks: never.
inline bool IsTargetUid(const PodUid& uid) { return uid.str().starts_with(kTargetUidPrefix); }

}  // namespace volumed
