#include "plugins/local_mounts.h"

#include <optional>
#include <utility>

#include "metrics/metrics_statfs.h"
#include "mounter/host_directory.h"
#include "mounter/shared_group.h"
#include "mounter/volume_ownership.h"
#include "mounter/volume_places.h"
#include "pluginmgr/device_volume.h"
#include "volume/unique_name.h"

namespace volumed {
namespace {

const LocalVolumeSource& SourceOf(const PersistentVolume& volume) {
  return std::get<LocalVolumeSource>(volume.spec.source);
}

Result<FileType> TypeOf(VolumeHost& host, const std::string& path, const CallOptions& call) {
  ASSIGN_OR_RETURN(const FileInfo info,
                   host.kernel.Call(Stat{.path = HostPath(path), .follow = true}, call));
  switch (info.type) {
    case FileType::kDirectory:
    case FileType::kBlockDevice:
      return info.type;
    case FileType::kMissing:
      return Error::NotApplied(Code::kNotFound, "path \"" + path + "\" does not exist");
    case FileType::kRegular:
    case FileType::kSymlink:
    case FileType::kSocket:
    case FileType::kCharDevice:
    case FileType::kFifo:
      break;
  }
  return Error::NotApplied(Code::kInvalidArgument,
                           "only directory and block device are supported, and \"" + path +
                               "\" is a " + std::string(FileTypeName(info.type)));
}

}  // namespace

// ---- the device ---------------------------------------------------------------------------------

Result<SafePath> LocalDeviceMounter::GetDeviceMountPath(const VolumeSpec& spec) const {
  return host_.paths.GetDeviceMountDir(kLocalVolumePluginName, spec.name());
}

Status LocalDeviceMounter::MountDevice(const VolumeSpec& spec, const std::string&,
                                       const SafePath& place, const DeviceMounterArgs& args) {
  const PersistentVolume& volume = *spec.persistent_volume();
  ASSIGN_OR_RETURN(const FileType type, TypeOf(host_, SourceOf(volume).path, args.call));
  if (type == FileType::kDirectory) return OkStatus();
  ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(host_.kernel, place, args.call));
  if (mounted) return OkStatus();
  RETURN_IF_ERROR(MakePlace(host_.kernel, place, args.call));
  return OrNothing(host_.kernel, place, MountBlock(spec, place, args), args.call);
}

Status LocalDeviceMounter::MountBlock(const VolumeSpec& spec, const SafePath& place,
                                      const DeviceMounterArgs& args) {
  const PersistentVolume& volume = *spec.persistent_volume();
  const LocalVolumeSource& source = SourceOf(volume);
  DeviceMountRequest request;
  request.plugin = "local";
  request.key = GetUniqueVolumeName(kLocalVolumePluginName, volume.metadata.name).str();
  request.volume = &volume;
  request.device = source.path;
  request.place = place;
  request.fs_type = source.fs_type;
  request.for_readers = spec.read_only();
  request.read_only_if_protected = spec.read_only() || args.some_pods_only_read;
  RETURN_IF_ERROR(MountDeviceVolume(host_, settings_, request, args));
  return OkStatus();
}

// ---- expansion ----------------------------------------------------------------------------------

Result<bool> ExpandLocalVolume(VolumeHost& host, const NodeResizeOptions& options,
                               const CallOptions& call) {
  const PersistentVolume& volume = *options.spec.persistent_volume();
  const std::string& path = SourceOf(volume).path;
  ASSIGN_OR_RETURN(const FileType type, TypeOf(host, path, call));
  if (type == FileType::kDirectory) {
    if (options.note) {
      options.note("a local directory has no size of its own: nothing is to be done");
    }
    return true;
  }
  return GrowDeviceVolume(host,
                          {.plugin = "local",
                           .device = path,
                           .mounted_at = options.device_mount_path,
                           .is_block = volume.spec.volume_mode == VolumeMode::kBlock,
                           .target_bytes = options.new_size.Value(),
                           .note = options.note},
                          call);
}

Status LocalDeviceUnmounter::UnmountDevice(const SafePath& place, const CallOptions& call) {
  const auto parsed = host_.paths.ParseDeviceMount(place.Display());
  if (!parsed || parsed->plugin != kLocalVolumePluginName) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "\"" + place.Display() + "\" is not a place of local volumes");
  }
  return UnmountAndRemove(host_.kernel, place, call);
}

// ---- a pod's bind -------------------------------------------------------------------------------

LocalVolumeMounter::LocalVolumeMounter(VolumeHost& host, VolumeSpec spec,
                                       const VolumeTarget& target)
    : host_(host),
      spec_(std::move(spec)),
      pod_(target.key.pod),
      place_(target.place),
      read_only_(spec_.read_only() || IsReadOnlyVolume(spec_.persistent_volume())) {}

Attributes LocalVolumeMounter::GetAttributes() const {
  return {.read_only = read_only_, .managed = !read_only_, .selinux_relabel = true};
}

Result<Metrics> LocalVolumeMounter::GetMetrics(const CallOptions& call) {
  return MetricsStatFs(host_.kernel, host_.clock, place_).GetMetrics(call);
}

// What was approved tells nothing about something else that has come to be at the path since.
Status CheckIsApproved(const std::string& path, FileType type, const CallOptions& call) {
  if (call.approved == nullptr || call.approved->type == type) return OkStatus();
  if (call.approved->type == FileType::kMissing) {
    return Error::NotApplied(Code::kNotFound,
                             "path \"" + path + "\" did not exist when it was looked at");
  }
  return Error::NotApplied(Code::kFailedPrecondition,
                           "path \"" + path + "\" is a " + std::string(FileTypeName(type)) +
                               ", and was a " + std::string(FileTypeName(call.approved->type)) +
                               " when it was looked at");
}

// The directory, or the place at which the block device is mounted for the node.
Result<SafePath> LocalVolumeMounter::FindSource(const CallOptions& call) const {
  const std::string& path = SourceOf(*spec_.persistent_volume()).path;
  ASSIGN_OR_RETURN(const FileType type, TypeOf(host_, path, call));
  RETURN_IF_ERROR(CheckIsApproved(path, type, call));
  if (type == FileType::kDirectory) return HostPath(path);
  const SafePath device = host_.paths.GetDeviceMountDir(kLocalVolumePluginName, spec_.name());
  ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(host_.kernel, device, call));
  if (mounted) return device;
  return Error::NotApplied(Code::kFailedPrecondition,
                           "device " + path + " is not mounted at " + device.Display());
}

Status LocalVolumeMounter::SetUpAt(const SafePath& dir, const MounterArgs& args) {
  ASSIGN_OR_RETURN(const SafePath source, FindSource(args.call));
  ASSIGN_OR_RETURN(
      const bool shared,
      WarnOfOtherGroup(host_, {source, dir, args.fs_group, pod_, spec_.name()}, args.call));
  ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(host_.kernel, dir, args.call));
  if (!mounted) {
    const std::string& device = SourceOf(*spec_.persistent_volume()).path;
    const bool is_directory = source.Display() == HostPath(device).Display();
    // A directory is as its administrator has it.
    if (!read_only_ && !is_directory) {
      RETURN_IF_ERROR(CheckTakesWrites(host_, device, source, args.call));
    }
    StorageObject expected;
    if (is_directory && args.call.approved != nullptr) expected = args.call.approved->object;
    RETURN_IF_ERROR(BindForPod(host_, source, dir, read_only_, args.call, expected));
  }
  // The first user's group it is; and a set-up that was finished once is not walked again. (Kubelet
  // takes any bind that is there for finished, even where its walk had failed.)
  if (read_only_ || shared || (mounted && args.is_remount)) return OkStatus();
  const auto owned = SetVolumeOwnership(host_.kernel, host_.events, host_.clock,
                                        {.dir = dir,
                                         .fs_group = args.fs_group,
                                         .policy = args.fs_group_change_policy,
                                         .read_only = false,
                                         .pod = pod_},
                                        args.call);
  if (!owned.ok()) return owned.error().AsMaybeApplied();  // it is bound
  return OkStatus();
}

}  // namespace volumed
