#include "plugins/local_mounts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "metrics/metrics_statfs.h"
#include "mounter/host_directory.h"
#include "mounter/mount_options.h"
#include "mounter/mount_refs.h"
#include "mounter/resize_fs.h"
#include "mounter/volume_ownership.h"
#include "plugins/volume_places.h"
#include "volume/unique_name.h"

namespace volumed {
namespace {

// Source: kubernetes pkg/kubelet/events/event.go@v1.36.2 (WarnAlreadyMountedVolume).
constexpr char kAlreadyMountedVolume[] = "AlreadyMountedVolume";
constexpr char kReadOnlyOption[] = "ro";

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

// The volume itself says so, to every pod.
bool IsReadOnlyVolume(const PersistentVolume& volume) {
  const std::vector<std::string> options =
      MountOptionFromSpec(volume.metadata.annotations, volume.spec.mount_options, {});
  return std::find(options.begin(), options.end(), kReadOnlyOption) != options.end();
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
  const DeviceToMount device{
      .key = GetUniqueVolumeName(kLocalVolumePluginName, volume.metadata.name).str(),
      .path = source.path,
      .place = place,
      .fs_type = source.fs_type,
      .options = MountOptionFromSpec(volume.metadata.annotations, volume.spec.mount_options, {}),
      .for_readers = spec.read_only()};
  return FormatAndMountVolume(host_, settings_, spec, device, args).With("local");
}

// ---- expansion ----------------------------------------------------------------------------------

namespace {

Status CheckDeviceSize(const std::string& path, int64_t device_bytes, int64_t target_bytes) {
  if (device_bytes >= target_bytes) return OkStatus();
  return Error::NotApplied(Code::kResourceExhausted,
                           "local: device " + path + " has " + std::to_string(device_bytes) +
                               " bytes, and the volume is to have " + std::to_string(target_bytes) +
                               ": enlarge the device first");
}

// A fresh look: what was opened before may have had another size.
Result<int64_t> DeviceBytes(VolumeHost& host, const std::string& path, const CallOptions& call) {
  ASSIGN_OR_RETURN(const DeviceProbe probe, host.kernel.Call(ProbeDevice{path}, call));
  return probe.identity.size_bytes;
}

}  // namespace

Result<bool> ExpandLocalVolume(VolumeHost& host, const NodeResizeOptions& options,
                               const CallOptions& call) {
  const PersistentVolume& volume = *options.spec.persistent_volume();
  const std::string& path = SourceOf(volume).path;
  const int64_t target = options.new_size.Value();
  const auto note = [&options](const std::string& text) {
    if (options.note) options.note(text);
    return true;
  };
  ASSIGN_OR_RETURN(const FileType type, TypeOf(host, path, call));
  if (type == FileType::kDirectory) {
    return note("a local directory has no size of its own: nothing is to be done");
  }
  ASSIGN_OR_RETURN(const int64_t device_bytes, DeviceBytes(host, path, call));
  RETURN_IF_ERROR(CheckDeviceSize(path, device_bytes, target));
  if (volume.spec.volume_mode == VolumeMode::kBlock) {
    return note("device " + path + " has " + std::to_string(device_bytes) + " bytes");
  }
  ResizeFs resize(host.kernel);
  ASSIGN_OR_RETURN(const std::optional<FilesystemGrowth> growth,
                   resize.Resize({path, options.device_mount_path}, call));
  if (!growth) {
    return Error::NotApplied(Code::kDataLoss, "local: device " + path + " has no filesystem");
  }
  if (ProvesSize(*growth, target)) return note(GrowthText(*growth));
  return Error::MaybeApplied(Code::kInternal, "local: the volume is to have " +
                                                  std::to_string(target) + " bytes, and there is " +
                                                  GrowthText(*growth));
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

LocalVolumeMounter::LocalVolumeMounter(VolumeHost& host, VolumeSpec spec, PodPtr pod)
    : host_(host),
      spec_(std::move(spec)),
      pod_(std::move(pod)),
      place_(host.paths.GetPodVolumeDir(pod_->uid(), kLocalVolumePluginName, spec_.name())),
      read_only_(spec_.read_only() || IsReadOnlyVolume(*spec_.persistent_volume())) {}

Attributes LocalVolumeMounter::GetAttributes() const {
  return {.read_only = read_only_, .managed = !read_only_, .selinux_relabel = true};
}

Result<Metrics> LocalVolumeMounter::GetMetrics(const CallOptions& call) {
  return MetricsStatFs(host_.kernel, host_.clock, place_).GetMetrics(call);
}

// The directory, or the place at which the block device is mounted for the node.
Result<SafePath> LocalVolumeMounter::FindSource(const CallOptions& call) const {
  const std::string& path = SourceOf(*spec_.persistent_volume()).path;
  ASSIGN_OR_RETURN(const FileType type, TypeOf(host_, path, call));
  if (type == FileType::kDirectory) return HostPath(path);
  const SafePath device = host_.paths.GetDeviceMountDir(kLocalVolumePluginName, spec_.name());
  ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(host_.kernel, device, call));
  if (mounted) return device;
  return Error::NotApplied(Code::kFailedPrecondition,
                           "device " + path + " is not mounted at " + device.Display());
}

Status LocalVolumeMounter::WarnOfOtherGroup(const SafePath& source, int64_t fs_group,
                                            const CallOptions& call) const {
  ASSIGN_OR_RETURN(const FileInfo info,
                   host_.kernel.Call(Stat{.path = source, .follow = true}, call));
  if (static_cast<int64_t>(info.gid) == fs_group) return OkStatus();
  host_.events.RecordPodEvent(pod_->uid(), EventType::kWarning, kAlreadyMountedVolume,
                              "The requested fsGroup is " + std::to_string(fs_group) +
                                  ", but the volume " + spec_.name().str() + " has GID " +
                                  std::to_string(info.gid) + ". The volume may not be shareable.");
  return OkStatus();
}

Status LocalVolumeMounter::Bind(const SafePath& source, const SafePath& dir,
                                const CallOptions& call) const {
  RETURN_IF_ERROR(MakePlace(host_.kernel, dir, call));
  const Result<Done> bound =
      host_.kernel.Call(BindMount{.source = source, .target = dir, .read_only = read_only_}, call);
  return OrNothing(host_.kernel, dir, bound.ok() ? OkStatus() : Status(bound.error()), call);
}

Status LocalVolumeMounter::CheckTakesWrites(const SafePath& source, const CallOptions& call) const {
  const std::string& device = SourceOf(*spec_.persistent_volume()).path;
  // A directory is as its administrator has it.
  if (source.Display() == device) return OkStatus();
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountAt(host_.kernel, source.Display(), call));
  if (!mount || !TakesNoWrites(*mount)) return OkStatus();
  const Result<DeviceProbe> probe = host_.kernel.Call(ProbeDevice{device, false, false}, call);
  const bool is_protected = probe.ok() && probe->read_only;
  return Error::NotApplied(
      Code::kFailedPrecondition,
      "device " + device + " is mounted read-only at " + source.Display() +
          (is_protected ? " because it is write-protected"
                        : ", as after an error of its filesystem or by somebody's remount") +
          ": a pod can have it only with readOnly in its claim's reference");
}

Status LocalVolumeMounter::SetUpAt(const SafePath& dir, const MounterArgs& args) {
  ASSIGN_OR_RETURN(const SafePath source, FindSource(args.call));
  ASSIGN_OR_RETURN(std::vector<std::string> users,
                   FindMountRefs(host_.kernel, source.Display(), args.call));
  const std::string pods = host_.paths.GetPodsDir().Display() + "/";
  std::erase_if(users, [&](const std::string& place) {
    return !place.starts_with(pods) || place == dir.Display();
  });
  const bool shared = !users.empty();
  if (args.fs_group && shared) {
    RETURN_IF_ERROR(WarnOfOtherGroup(source, *args.fs_group, args.call));
  }
  ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(host_.kernel, dir, args.call));
  if (!mounted) {
    if (!read_only_) RETURN_IF_ERROR(CheckTakesWrites(source, args.call));
    RETURN_IF_ERROR(Bind(source, dir, args.call));
  }
  // The first user's group it is; and a set-up that was finished once is not walked again. (Kubelet
  // takes any bind that is there for finished, even where its walk had failed.)
  if (read_only_ || shared || (mounted && args.is_remount)) return OkStatus();
  const auto owned = SetVolumeOwnership(host_.kernel, host_.events, host_.clock,
                                        {.dir = dir,
                                         .fs_group = args.fs_group,
                                         .policy = args.fs_group_change_policy,
                                         .read_only = false,
                                         .pod = pod_->uid()},
                                        args.call);
  if (!owned.ok()) return owned.error().AsMaybeApplied();  // it is bound
  return OkStatus();
}

Result<Metrics> LocalVolumeUnmounter::GetMetrics(const CallOptions& call) {
  return MetricsStatFs(host_.kernel, host_.clock, place_).GetMetrics(call);
}

Status LocalVolumeUnmounter::TearDownAt(const SafePath& dir, const CallOptions& call) {
  return UnmountAndRemove(host_.kernel, dir, call);
}

}  // namespace volumed
