#include "plugins/fc.h"

#include <optional>
#include <utility>

#include "blockmapper/volume_path_handler.h"
#include "mounter/mount_refs.h"
#include "pluginmgr/device_bind.h"
#include "plugins/fc_block.h"
#include "plugins/fc_mounts.h"

namespace volumed {
namespace {

VolumeSpec SpecOf(const SpecName& spec, const FcNames& names, VolumeMode mode) {
  FcVolumeSource source;
  source.target_wwns = names.target_wwns;
  source.lun = names.lun;
  source.wwids = names.wwids;
  PersistentVolume volume;
  volume.metadata.name = spec.str();
  volume.spec.volume_mode = mode;
  volume.spec.source = std::move(source);
  return VolumeSpec::FromPersistentVolume(std::move(volume), false);
}

}  // namespace

Status FcPlugin::Init(PluginContext context) {
  RETURN_IF_ERROR(PlainVolumePlugin::Init(context));
  disks_ = std::make_unique<FcDisks>(host_->kernel, settings_.devices, host_->clock,
                                     settings_.places, settings_.looks);
  return OkStatus();
}

bool FcPlugin::CanSupport(const VolumeSpec& spec) const {
  return spec.SourceAs<FcVolumeSource>() != nullptr;
}

Result<std::string> FcPlugin::GetVolumeName(const VolumeSpec& spec) const {
  ASSIGN_OR_RETURN(const FcNames names, FcNamesOf(spec));
  return FcVolumeName(names);
}

std::string FcPlugin::FaultDomain(const VolumeSpec& spec) const {
  const Result<FcNames> names = FcNamesOf(spec);
  if (!names.ok()) return "fc:";
  return "fc:" + (names->target_wwns.empty() ? names->wwids.front() : names->target_wwns.front());
}

Result<std::unique_ptr<Mounter>> FcPlugin::NewMounter(const VolumeSpec& spec,
                                                      const VolumeTarget& target) {
  ASSIGN_OR_RETURN(const FcNames names, FcNamesOf(spec));
  DeviceBind bind;
  bind.volume = "fc volume " + FcVolumeName(names);
  bind.device_mount = FcDevicePlace(*host_, names);
  bind.place = target.place;
  bind.spec = target.key.spec;
  bind.pod = target.key.pod;
  bind.read_only = IsReadOnlyFc(spec) || IsReadOnlyVolume(spec.persistent_volume());
  return std::unique_ptr<Mounter>(std::make_unique<DeviceBindMounter>(*host_, std::move(bind)));
}

Result<std::unique_ptr<Unmounter>> FcPlugin::NewUnmounter(const SpecName& spec, const PodUid& pod) {
  return std::unique_ptr<Unmounter>(std::make_unique<DeviceBindUnmounter>(
      *host_, host_->paths.GetPodVolumeDir(pod, kFcPluginName, spec)));
}

// A bind and the device's mount show the same part of one filesystem.
Result<ReconstructedVolume> FcPlugin::ConstructVolumeSpec(const SpecName& spec,
                                                          const SafePath& volume_path,
                                                          const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<std::string> places,
                   FindMountRefs(host_->kernel, volume_path.Display(), call));
  for (const std::string& place : places) {
    const Result<SafePath> path = host_->paths.BelowRoot(place);
    if (!path.ok()) continue;
    const Result<FcNames> names = FcNamesAt(*host_, *path);
    if (names.ok()) return ReconstructedVolume{SpecOf(spec, *names, VolumeMode::kFilesystem)};
  }
  return Error::NotApplied(Code::kFailedPrecondition,
                           "no device of fc is mounted for " + volume_path.Display());
}

Result<std::unique_ptr<Attacher>> FcPlugin::NewAttacher() {
  return std::unique_ptr<Attacher>(std::make_unique<FcAttacher>(*host_, *disks_, settings_.device));
}

Result<std::unique_ptr<Detacher>> FcPlugin::NewDetacher() {
  return std::unique_ptr<Detacher>(std::make_unique<FcDetacher>(*host_, *disks_));
}

Result<std::unique_ptr<DeviceMounter>> FcPlugin::NewDeviceMounter() {
  return std::unique_ptr<DeviceMounter>(
      std::make_unique<FcAttacher>(*host_, *disks_, settings_.device));
}

Result<std::unique_ptr<DeviceUnmounter>> FcPlugin::NewDeviceUnmounter() {
  return std::unique_ptr<DeviceUnmounter>(std::make_unique<FcDetacher>(*host_, *disks_));
}

Result<std::vector<std::string>> FcPlugin::GetDeviceMountRefs(const SafePath& place,
                                                              const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountAt(host_->kernel, place.Display(), call));
  // Where nothing is mounted, what shows elsewhere is the agent's own disk.
  if (!mount) return std::vector<std::string>();
  return FindMountRefs(host_->kernel, place.Display(), call);
}

Result<bool> FcPlugin::NodeExpand(const NodeResizeOptions& options, const CallOptions& call) {
  ASSIGN_OR_RETURN(const FcNames names, FcNamesOf(options.spec));
  ASSIGN_OR_RETURN(const FoundDevice device, disks_->WaitFor(names, call));
  RETURN_IF_ERROR(disks_->scsi().RescanSize(device.node, call));
  DeviceGrowth growth;
  growth.plugin = "fc";
  growth.device = device.node;
  growth.mounted_at = options.device_mount_path;
  growth.is_block = IsBlockVolume(options.spec);
  growth.target_bytes = options.new_size.Value();
  growth.note = options.note;
  return GrowDeviceVolume(*host_, growth, call);
}

Result<std::unique_ptr<BlockVolumeMapper>> FcPlugin::NewBlockVolumeMapper(const VolumeSpec& spec,
                                                                          PodPtr pod) {
  RETURN_IF_ERROR(FcNamesOf(spec));
  return std::unique_ptr<BlockVolumeMapper>(
      std::make_unique<FcMapper>(*host_, spec, pod == nullptr ? PodUid() : pod->uid()));
}

Result<std::unique_ptr<BlockVolumeUnmapper>> FcPlugin::NewBlockVolumeUnmapper(const SpecName& spec,
                                                                              const PodUid& pod) {
  return std::unique_ptr<BlockVolumeUnmapper>(
      std::make_unique<FcUnmapper>(*host_, *disks_, spec, pod));
}

Result<VolumeSpec> FcPlugin::ConstructBlockVolumeSpec(const PodUid& pod, const SpecName& spec,
                                                      const SafePath& map_path,
                                                      const CallOptions& call) {
  ASSIGN_OR_RETURN(
      const SafePath node,
      VolumePathHandler(host_->kernel)
          .FindGlobalMapPathUUIDFromPod(host_->paths.GetVolumeDevicePluginDir(kFcPluginName),
                                        map_path, pod, call));
  SafePath place = node;
  place.relative.erase(place.relative.rfind('/'));  // its last name is the pod's uid
  ASSIGN_OR_RETURN(const FcNames names, FcNamesAt(*host_, place));
  return SpecOf(spec, names, VolumeMode::kBlock);
}

}  // namespace volumed
