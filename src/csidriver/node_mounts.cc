#include "csidriver/node_mounts.h"

#include <memory>
#include <optional>

#include "base/peer_credentials.h"
#include "csidriver/node_targets.h"
#include "mounter/hidden_mount.h"
#include "mounter/mount_refs.h"

namespace volumed {

Status CheckPoolIsThere(const PoolVolumes& volumes, const std::string& id,
                        const CallOptions& call) {
  ASSIGN_OR_RETURN(const PoolVolumeRecord volume, volumes.Find(id));
  CallOptions in_pool = call;
  in_pool.domain = volumes.DomainOf(id);
  for (const std::unique_ptr<Pool>& pool : volumes.pools()) {
    if (pool->name() == volume.pool) return pool->CheckThere(in_pool);
  }
  return OkStatus();
}

Status CheckCallerSees(Kernel& kernel, pid_t caller, const SafePath& place,
                       const CallOptions& call) {
  if (!HasOtherMounts(caller)) return OkStatus();
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountAround(kernel, place.Display(), call));
  if (!mount) return OkStatus();
  for (const std::string& field : mount->propagation) {
    if (field.starts_with("shared:")) return OkStatus();
  }
  return Error::NotApplied(
      Code::kFailedPrecondition,
      "what is mounted below " + ShownPath(mount->mount_point) +
          " stays in this mount namespace, and the caller has another one: a container of "
          "volumed needs mountPropagation: Bidirectional there");
}

Status CheckNotHidden(Kernel& kernel, const SafePath& place, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountAt(kernel, place.Display(), call));
  if (!mount) return OkStatus();
  ASSIGN_OR_RETURN(const std::optional<MountEntry> over, FindMountHiding(kernel, *mount, call));
  if (!over) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           "what is mounted at " + ShownPath(place.Display()) + " is hidden by a " +
                               over->fs_type + " that is mounted over " +
                               ShownPath(over->mount_point) + ": nothing is taken from there");
}

}  // namespace volumed
