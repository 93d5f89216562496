// A volume that is handed out as it is (a hostPath) and lies on the agent's own filesystem, under
// whichever of its mounts, or in memory: it is looked at in the one request that makes the other
// volumes of its pod. Nothing is made of it.
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

inline constexpr char kReserveStorage[] = "ReserveStorage";  // the step

// Whether it may be tried: it is a pod's own volume that is set up for the first time, without
// sub-paths, for those are mounted. Threads: any. Blocks: never.
bool MayBeHandedOutInGroup(const MountRequest& request, const VolumePlugin& plugin);

// Threads: one executor thread.
class HandOut {
 public:
  // All outlive this.
  HandOut(const OperationParts& parts, const MountRequest& request, VolumePlugin& plugin,
          Mounter& mounter);

  // What is to be asked; nothing if the mount table has it, or a mount on the way to it, on another
  // filesystem, with which it may hang. A link on the way is not followed, for the table does not
  // tell where it leads. Blocks: for the mount table.
  std::optional<IdentifyStorage> Look(const CallOptions& call) const;
  // The pod is given what the look has told of, unless that is in somebody's way, or is not what
  // the volume wants.
  std::optional<OperationFailure> Take(const StorageIdentity& identity, const CallOptions& call);
  GivenStorage Given() const { return storage_.Given(); }
  // The operation has failed. Whether only the look did, and it may be tried by itself.
  bool GiveBack(const OperationFailure& failure);

 private:
  const OperationParts& parts_;
  const MountRequest& request_;
  Mounter& mounter_;
  PodStorage storage_;
  bool looked_ = false;
};

}  // namespace volumed
