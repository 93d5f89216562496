#include "plugins/flex_volume_mounts.h"

#include <optional>
#include <utility>

#include "metrics/metrics_nil.h"
#include "metrics/metrics_statfs.h"
#include "mounter/shared_group.h"
#include "mounter/volume_ownership.h"
#include "mounter/volume_places.h"
#include "plugins/flex_volume_places.h"

namespace volumed {
namespace {

Result<Metrics> MetricsOf(VolumeHost& host, const FlexCapabilities& capabilities,
                          const SafePath& place, const CallOptions& call) {
  if (!capabilities.supports_metrics) return MetricsNil().GetMetrics(call);
  return MetricsStatFs(host.kernel, host.clock, place).GetMetrics(call);
}

}  // namespace

FlexVolumeMounter::FlexVolumeMounter(VolumeHost& host, std::shared_ptr<FlexVolumeDriver> driver,
                                     const FlexCapabilities& capabilities, VolumeSpec spec,
                                     const VolumeTarget& target)
    : host_(host),
      driver_(std::move(driver)),
      capabilities_(capabilities),
      spec_(std::move(spec)),
      pod_(target.pod),
      place_(target.place),
      read_only_(FlexSourceOf(spec_).read_only) {}

Attributes FlexVolumeMounter::GetAttributes() const {
  return {.read_only = read_only_,
          .managed = !read_only_,
          .selinux_relabel = capabilities_.selinux_relabel};
}

Result<Metrics> FlexVolumeMounter::GetMetrics(const CallOptions& call) {
  return MetricsOf(host_, capabilities_, place_, call);
}

Status FlexVolumeMounter::SetUpAt(const SafePath& dir, const MounterArgs& args) {
  ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(host_.kernel, dir, args.call));
  if (!mounted) {
    RETURN_IF_ERROR(MakePlace(host_.kernel, dir, args.call));
    RETURN_IF_ERROR(OrNothing(host_.kernel, dir, MountAt(dir, args), args.call));
  }
  // A set-up that was finished once is not walked again.
  const bool finished = mounted && args.is_remount;
  if (read_only_ || finished || !capabilities_.fs_group) return OkStatus();
  const auto shared =
      WarnOfOtherGroup(host_, {dir, dir, args.fs_group, pod_->uid(), spec_.name()}, args.call);
  if (!shared.ok()) return shared.error().AsMaybeApplied();  // it is mounted
  const auto owned = SetVolumeOwnership(host_.kernel, host_.events, host_.clock,
                                        {.dir = dir,
                                         .fs_group = args.fs_group,
                                         .policy = args.fs_group_change_policy,
                                         .read_only = false,
                                         .pod = pod_->uid()},
                                        args.call);
  if (!owned.ok()) return owned.error().AsMaybeApplied();
  return OkStatus();
}

Status FlexVolumeMounter::MountAt(const SafePath& dir, const MounterArgs& args) {
  ASSIGN_OR_RETURN(FlexArgument options,
                   FlexMountOptions(spec_, *pod_, args.fs_group, host_.objects));
  ASSIGN_OR_RETURN(
      const std::optional<FlexStatus> status,
      driver_->Call(FlexCommand::kMount, {dir.Display(), std::move(options)}, args.call));
  return status ? OkStatus() : BindDevice(dir, args.call);
}

Status FlexVolumeMounter::BindDevice(const SafePath& dir, const CallOptions& call) {
  const SafePath device =
      FlexDeviceMountDir(host_.paths, driver_->name(), SpecName(FlexVolumeName(spec_)));
  ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(host_.kernel, device, call));
  if (!mounted) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "flexVolume driver " + driver_->name() +
                                 " has no mount, and nothing is mounted at " + device.Display());
  }
  RETURN_IF_ERROR(
      host_.kernel.Call(BindMount{.source = device, .target = dir, .read_only = read_only_}, call));
  return OkStatus();
}

Result<Metrics> FlexVolumeUnmounter::GetMetrics(const CallOptions& call) {
  return MetricsOf(host_, capabilities_, place_, call);
}

Status FlexVolumeUnmounter::TearDownAt(const SafePath& dir, const CallOptions& call) {
  ASSIGN_OR_RETURN(const FileInfo there,
                   host_.kernel.Call(Stat{.path = dir, .only_mount_point = true}, call));
  if (there.type == FileType::kMissing) return OkStatus();
  ASSIGN_OR_RETURN(const std::optional<FlexStatus> status,
                   driver_->CallIfInstalled(FlexCommand::kUnmount, {dir.Display()}, call));
  Status removed = UnmountAndRemove(host_.kernel, dir, call);
  if (removed.ok() || !status) return removed;
  return removed.error().AsMaybeApplied();  // the driver has unmounted what it had there
}

}  // namespace volumed
