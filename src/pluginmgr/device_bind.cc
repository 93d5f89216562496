#include "pluginmgr/device_bind.h"

#include <optional>

#include "metrics/metrics_statfs.h"
#include "metrics/metrics_tree.h"
#include "mounter/hidden_mount.h"
#include "mounter/mount_refs.h"
#include "mounter/shared_group.h"
#include "mounter/volume_ownership.h"
#include "mounter/volume_places.h"
#include "os/mount_places.h"
#include "pluginmgr/device_volume.h"

namespace volumed {

Attributes DeviceBindMounter::GetAttributes() const {
  return {.read_only = bind_.read_only,
          .managed = !bind_.read_only && !bind_.keeps_owners,
          .selinux_relabel = !bind_.keeps_owners};
}

Result<Metrics> DeviceBindMounter::GetMetrics(const CallOptions& call) {
  if (bind_.is_tree) {
    return MetricsTree(host_.kernel, host_.clock, bind_.place, bind_.project_id).GetMetrics(call);
  }
  return MetricsStatFs(host_.kernel, host_.clock, bind_.place).GetMetrics(call);
}

// What the pod is to have, as the mount table says.
Result<MountEntry> DeviceBindMounter::FindDevice(const CallOptions& call) {
  const std::string source = bind_.device_mount.Display();
  ASSIGN_OR_RETURN(std::optional<MountEntry> device, FindMountAt(host_.kernel, source, call));
  // Where a directory above was renamed, and is back, the table that is kept may not have it.
  if (!device) {
    ASSIGN_OR_RETURN(device, FindMountAtAnew(host_.kernel, source, call));
  }
  if (!device) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             bind_.volume + " is not mounted at " + source);
  }
  ASSIGN_OR_RETURN(const std::optional<MountEntry> over,
                   FindMountHiding(host_.kernel, *device, call));
  if (over) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             bind_.volume + " is mounted at " + source + ", and hidden by a " +
                                 over->fs_type + " that is mounted over " + over->mount_point);
  }
  if (bind_.check_device) RETURN_IF_ERROR(bind_.check_device(*device, call));
  if (bind_.read_only) return *device;
  RETURN_IF_ERROR(CheckTakesWrites(host_, device->source, bind_.device_mount, call));
  return *device;
}

Status DeviceBindMounter::SetUpAt(const SafePath& dir, const MounterArgs& args) {
  if (bind_.before_bind) RETURN_IF_ERROR(bind_.before_bind(args.call));
  ASSIGN_OR_RETURN(const bool bound, IsMountPoint(host_.kernel, dir, args.PlaceCall()));
  if (!bound) {
    ASSIGN_OR_RETURN(const MountEntry device, FindDevice(args.call));
    RETURN_IF_ERROR(BindForPod(host_, bind_.device_mount, dir, bind_.read_only, args.PlaceCall(),
                               /*expected=*/{}, PlaceOf(device).part));
  }
  // A set-up that was finished once is not walked again.
  const bool is_owned = bind_.keeps_owners || (bound && args.is_remount);
  if (bind_.read_only || is_owned) return OkStatus();
  const auto shared = WarnOfOtherGroup(
      host_, {bind_.device_mount, dir, args.fs_group, bind_.pod, bind_.spec}, args.call);
  if (!shared.ok()) return shared.error().AsMaybeApplied();  // it is bound
  const auto owned = SetVolumeOwnership(host_.kernel, host_.events, host_.clock,
                                        {.dir = dir,
                                         .fs_group = args.fs_group,
                                         .policy = args.fs_group_change_policy,
                                         .read_only = false,
                                         .pod = bind_.pod},
                                        args.call);
  if (!owned.ok()) return owned.error().AsMaybeApplied();
  return OkStatus();
}

Result<Metrics> DeviceBindUnmounter::GetMetrics(const CallOptions& call) {
  return MetricsStatFs(host_.kernel, host_.clock, place_).GetMetrics(call);
}

Status DeviceBindUnmounter::TearDownAt(const SafePath& dir, const CallOptions& call) {
  return UnmountAndRemove(host_.kernel, dir, call);
}

}  // namespace volumed
