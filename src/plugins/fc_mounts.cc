#include "plugins/fc_mounts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "mounter/mount_refs.h"
#include "mounter/volume_places.h"
#include "plugins/device_attachments.h"
#include "volume/unique_name.h"

namespace volumed {
namespace {

constexpr char kReadOnlyOption[] = "ro";
constexpr char kContextOption[] = "context=";

}  // namespace

// ---- names --------------------------------------------------------------------------------------

Result<FcNames> FcNamesOf(const VolumeSpec& spec) {
  const auto* source = spec.SourceAs<FcVolumeSource>();
  if (source == nullptr) {
    return Error::NotApplied(Code::kInvalidArgument, "Spec does not reference a FC volume type");
  }
  FcNames names{source->target_wwns, source->lun, source->wwids};
  for (std::string& wwid : names.wwids) std::replace(wwid.begin(), wwid.end(), ' ', '_');
  RETURN_IF_ERROR(ValidateFcNames(names));
  return names;
}

bool IsReadOnlyFc(const VolumeSpec& spec) {
  const auto* source = spec.SourceAs<FcVolumeSource>();
  if (spec.volume() != nullptr) return source != nullptr && source->read_only;
  return spec.read_only();
}

SafePath FcDevicePlace(const VolumeHost& host, const FcNames& names) {
  return host.paths.GetPluginDir(kFcPluginName).Below(FcDirectoryName(names));
}

SafePath FcMapPlace(const VolumeHost& host, const FcNames& names) {
  return host.paths.GetVolumeDevicePluginDir(kFcPluginName).Below(FcDirectoryName(names));
}

Result<FcNames> FcNamesAt(const VolumeHost& host, const SafePath& place) {
  const std::string path = place.Display();
  const FcNames names = ParseFcDirectoryName(path.substr(path.rfind('/') + 1));
  const bool is_ours =
      path == FcDevicePlace(host, names).Display() || path == FcMapPlace(host, names).Display();
  if (is_ours && ValidateFcNames(names).ok()) return names;
  return Error::NotApplied(Code::kInvalidArgument, "\"" + path + "\" is not a place of fc volumes");
}

// ---- the device ---------------------------------------------------------------------------------

Result<std::string> FcAttacher::WaitForAttach(const VolumeSpec& spec, const std::string&,
                                              const Pod&, const CallOptions& call) {
  ASSIGN_OR_RETURN(const FcNames names, FcNamesOf(spec));
  ASSIGN_OR_RETURN(const FoundDevice device, disks_.WaitFor(names, call));
  return device.node;
}

Result<std::vector<bool>> FcAttacher::VolumesAreAttached(const std::vector<VolumeSpec>& specs,
                                                         const NodeName& node,
                                                         const CallOptions& call) {
  RETURN_IF_ERROR(CheckIsThisNode(host_, node));
  std::vector<FcNames> names;
  std::vector<SafePath> places;
  for (const VolumeSpec& spec : specs) {
    ASSIGN_OR_RETURN(FcNames of_spec, FcNamesOf(spec));
    places.push_back(IsBlockVolume(spec) ? FcMapPlace(host_, of_spec)
                                         : FcDevicePlace(host_, of_spec));
    names.push_back(std::move(of_spec));
  }
  return AreDevicesAttached(
      host_, disks_.scsi(), kFcPluginName, places,
      [&](size_t volume, const ScsiDisk& disk, const CallOptions& options) {
        return disks_.IsDiskOf(names[volume], disk, options);
      },
      call);
}

Result<SafePath> FcAttacher::GetDeviceMountPath(const VolumeSpec& spec) const {
  ASSIGN_OR_RETURN(const FcNames names, FcNamesOf(spec));
  return FcDevicePlace(host_, names);
}

Status FcAttacher::MountDevice(const VolumeSpec& spec, const std::string&, const SafePath& place,
                               const DeviceMounterArgs& args) {
  ASSIGN_OR_RETURN(const FcNames names, FcNamesOf(spec));
  ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(host_.kernel, place, args.call));
  if (mounted) return OkStatus();
  ASSIGN_OR_RETURN(const FoundDevice device, disks_.WaitFor(names, args.call));
  RETURN_IF_ERROR(MakePlace(host_.kernel, place, args.call));
  return OrNothing(host_.kernel, place, Mount(spec, device, place, args), args.call);
}

Status FcAttacher::Mount(const VolumeSpec& spec, const FoundDevice& device, const SafePath& place,
                         const DeviceMounterArgs& args) {
  ASSIGN_OR_RETURN(const FcNames names, FcNamesOf(spec));
  const bool read_only = IsReadOnlyFc(spec);
  DeviceMountRequest request;
  request.plugin = "fc";
  request.key = GetUniqueVolumeName(kFcPluginName, FcVolumeName(names)).str();
  request.volume = spec.persistent_volume();
  request.device = device.node;
  request.expected = device.facts.identity;
  request.place = place;
  request.fs_type = spec.SourceAs<FcVolumeSource>()->fs_type;
  if (read_only) request.options.emplace_back(kReadOnlyOption);
  if (!args.selinux_label.empty()) request.options.push_back(kContextOption + args.selinux_label);
  request.for_readers = read_only;
  request.read_only_if_protected = read_only || args.some_pods_only_read;
  RETURN_IF_ERROR(MountDeviceVolume(host_, settings_, request, args));
  return OkStatus();
}

Status FcDetacher::UnmountDevice(const SafePath& place, const CallOptions& call) {
  ASSIGN_OR_RETURN(const FcNames names, FcNamesAt(host_, place));
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountAt(host_.kernel, place.Display(), call));
  if (mount) disks_.KeepMap(place, mount->source, call);
  RETURN_IF_ERROR(UnmountAndRemove(host_.kernel, place, call));
  Status removed = RemoveDisks(names, place, mount, call);
  if (removed.ok()) disks_.ForgetMap(place);
  if (removed.ok() || !mount) return removed;
  return removed.error().AsMaybeApplied();  // it is unmounted
}

Status FcDetacher::RemoveDisks(const FcNames& names, const SafePath& place,
                               const std::optional<MountEntry>& mount, const CallOptions& call) {
  if (mount) return disks_.Remove(names, mount->source, call);
  ASSIGN_OR_RETURN(const std::optional<std::string> kept, disks_.KeptMap(place, call));
  return disks_.Remove(names, kept, call);
}

}  // namespace volumed
