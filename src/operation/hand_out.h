// A volume that is handed out as it is (a hostPath) and lies in memory or on a disk that hangs only
// with the agent's own filesystem. It is looked at in the same request that makes the other volumes
// of its pod; no effect is needed.
#pragma once

#include <optional>

#include "mounter/mounter.h"
#include "operation/operation.h"
#include "operation/operation_parts.h"
#include "operation/storage_steps.h"
#include "operation/volume_requests.h"
#include "os/kernel.h"
#include "pluginmgr/volume_plugin.h"

namespace volumed {

inline constexpr char kReserveStorage[] = "ReserveStorage";  // name of the step

// Whether this way may be tried: the volume is a pod's own, is set up for the first time, and has
// no sub-paths, since those are mounted. Threads: any. Blocks: never.
bool MayBeHandedOutInGroup(const MountRequest& request, const VolumePlugin& plugin);

// Threads: one executor thread.
class HandOut {
 public:
  // All arguments outlive this object.
  HandOut(const OperationParts& parts, const MountRequest& request, VolumePlugin& plugin,
          Mounter& mounter);

  // The look that has to be made; nullopt if the path, or a mount on the way to it, is on another
  // filesystem, with which the look might hang, and if the path is itself a mount point. The look
  // follows no link, since the mount table does not tell where a link leads. Blocks: for the mount
  // table.
  std::optional<IdentifyStorage> Look(const CallOptions& call) const;
  // Gives the pod what the look has found. Errors: it is in another user's way, or is not what the
  // volume wants.
  std::optional<OperationFailure> Take(const StorageIdentity& identity, const CallOptions& call);
  GivenStorage Given() const { return storage_.Given(); }
  // To be called if the operation has failed. Returns whether only the look failed, so that the
  // volume may be tried alone.
  bool GiveBack(const OperationFailure& failure);

 private:
  const OperationParts& parts_;
  const MountRequest& request_;
  Mounter& mounter_;
  PodStorage storage_;
  bool looked_ = false;
};

}  // namespace volumed
