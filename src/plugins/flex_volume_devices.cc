#include "plugins/flex_volume_devices.h"

#include <optional>
#include <utility>

#include "mounter/volume_places.h"
#include "plugins/flex_volume_places.h"
#include "volume/unique_name.h"

namespace volumed {

Result<std::string> FlexVolumeAttacher::Attach(const VolumeSpec& spec, const NodeName& node,
                                               const CallOptions& call) {
  const FlexArgument options = FlexOptions(spec);
  // Kubelet asks it of every volume and uses no answer but an error.
  RETURN_IF_ERROR(driver_->Call(FlexCommand::kGetVolumeName, {options}, call));
  ASSIGN_OR_RETURN(const std::optional<FlexStatus> status,
                   driver_->Call(FlexCommand::kAttach, {options, node.str()}, call));
  return status ? status->device : std::string();
}

Result<std::vector<bool>> FlexVolumeAttacher::VolumesAreAttached(
    const std::vector<VolumeSpec>& specs, const NodeName& node, const CallOptions& call) {
  std::vector<bool> attached;
  for (const VolumeSpec& spec : specs) {
    const Result<std::optional<FlexStatus>> status =
        driver_->Call(FlexCommand::kIsAttached, {FlexOptions(spec), node.str()}, call);
    if (!status.ok() && call.deadline.Passed(host_.clock)) return status.error();
    attached.push_back(!status.ok() || !*status || (*status)->attached);
  }
  return attached;
}

Result<std::string> FlexVolumeAttacher::WaitForAttach(const VolumeSpec& spec,
                                                      const std::string& device_path, const Pod&,
                                                      const CallOptions& call) {
  ASSIGN_OR_RETURN(
      const std::optional<FlexStatus> status,
      driver_->Call(FlexCommand::kWaitForAttach, {device_path, FlexOptions(spec)}, call));
  return status && !status->device.empty() ? status->device : device_path;
}

Result<SafePath> FlexVolumeAttacher::GetDeviceMountPath(const VolumeSpec& spec) const {
  return FlexDeviceMountDir(host_.paths, driver_->name(), SpecName(FlexVolumeName(spec)));
}

Status FlexVolumeAttacher::MountDevice(const VolumeSpec& spec, const std::string& device_path,
                                       const SafePath& place, const DeviceMounterArgs& args) {
  ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(host_.kernel, place, args.call));
  if (mounted) return OkStatus();
  RETURN_IF_ERROR(MakePlace(host_.kernel, place, args.call));
  return OrNothing(host_.kernel, place, MountAt(spec, device_path, place, args), args.call);
}

Status FlexVolumeAttacher::MountAt(const VolumeSpec& spec, const std::string& device_path,
                                   const SafePath& place, const DeviceMounterArgs& args) {
  ASSIGN_OR_RETURN(const std::optional<FlexStatus> status,
                   driver_->Call(FlexCommand::kMountDevice,
                                 {place.Display(), device_path, FlexOptions(spec)}, args.call));
  if (status || device_path.empty()) return OkStatus();
  const FlexSource source = FlexSourceOf(spec);
  DeviceMountRequest request;
  request.plugin = "flexVolume driver " + driver_->name() + ", which has no mountdevice";
  request.key = GetUniqueVolumeName(driver_->name(), FlexVolumeName(spec)).str();
  request.volume = spec.persistent_volume();
  request.device = device_path;
  request.place = place;
  request.fs_type = source.fs_type;
  request.for_readers = source.read_only;
  request.read_only_if_protected = source.read_only || args.some_pods_only_read;
  RETURN_IF_ERROR(MountDeviceVolume(host_, settings_, request, args));
  return OkStatus();
}

Status FlexVolumeDetacher::Detach(const std::string& volume_name, const NodeName& node,
                                  const CallOptions& call) {
  RETURN_IF_ERROR(driver_->Call(FlexCommand::kDetach, {volume_name, node.str()}, call));
  return OkStatus();
}

Status FlexVolumeDetacher::UnmountDevice(const SafePath& place, const CallOptions& call) {
  const auto parsed = host_.paths.ParseDeviceMount(place.Display());
  if (!parsed || parsed->plugin != driver_->name()) {
    return Error::NotApplied(
        Code::kInvalidArgument,
        "\"" + place.Display() + "\" is not a place of flexVolume driver " + driver_->name());
  }
  ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(host_.kernel, place, call));
  std::optional<FlexStatus> status;
  if (mounted) {
    ASSIGN_OR_RETURN(
        status, driver_->CallIfInstalled(FlexCommand::kUnmountDevice, {place.Display()}, call));
  }
  Status removed = UnmountAndRemove(host_.kernel, place, call);
  if (removed.ok() || !status) return removed;
  return removed.error().AsMaybeApplied();  // the driver has unmounted what it had there
}

}  // namespace volumed
