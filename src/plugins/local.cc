#include "plugins/local.h"

#include <optional>
#include <utility>

#include "mounter/mount_refs.h"
#include "mounter/volume_places.h"
#include "pluginmgr/device_bind.h"
#include "plugins/local_block.h"
#include "plugins/local_mounts.h"

namespace volumed {
namespace {

Error NotLocal() {
  return Error::NotApplied(Code::kInvalidArgument, "Spec does not reference a local volume type");
}

}  // namespace

bool LocalVolumePlugin::CanSupport(const VolumeSpec& spec) const {
  return spec.SourceAs<LocalVolumeSource>() != nullptr;
}

Result<std::string> LocalVolumePlugin::GetVolumeName(const VolumeSpec& spec) const {
  if (!CanSupport(spec)) return NotLocal();
  return spec.name().str();
}

Result<std::unique_ptr<Mounter>> LocalVolumePlugin::NewMounter(const VolumeSpec& spec,
                                                               const VolumeTarget& target) {
  if (!CanSupport(spec)) return NotLocal();
  return std::unique_ptr<Mounter>(std::make_unique<LocalVolumeMounter>(*host_, spec, target));
}

Result<std::unique_ptr<Unmounter>> LocalVolumePlugin::NewUnmounter(const SpecName& spec,
                                                                   const PodUid& pod) {
  return std::unique_ptr<Unmounter>(std::make_unique<DeviceBindUnmounter>(
      *host_, host_->paths.GetPodVolumeDir(pod, kLocalVolumePluginName, spec)));
}

Result<ReconstructedVolume> LocalVolumePlugin::ConstructVolumeSpec(const SpecName& spec,
                                                                   const SafePath&,
                                                                   const CallOptions& call) {
  const std::string device = host_->paths.GetDeviceMountDir(kLocalVolumePluginName, spec).Display();
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount, FindMountAt(host_->kernel, device, call));
  LocalVolumeSource source;
  if (mount) source.path = mount->source;
  PersistentVolume volume;
  volume.metadata.name = spec.str();
  volume.spec.source = std::move(source);
  return ReconstructedVolume{VolumeSpec::FromPersistentVolume(std::move(volume), false)};
}

std::string LocalVolumePlugin::FaultDomain(const VolumeSpec& spec) const {
  const auto* source = spec.SourceAs<LocalVolumeSource>();
  return source == nullptr ? "" : source->path;
}

std::vector<std::string> LocalVolumePlugin::DevicePaths(const VolumeSpec& spec) const {
  const auto* source = spec.SourceAs<LocalVolumeSource>();
  if (source == nullptr) return {};
  return {source->path};
}

Result<std::unique_ptr<DeviceMounter>> LocalVolumePlugin::NewDeviceMounter() {
  return std::unique_ptr<DeviceMounter>(std::make_unique<LocalDeviceMounter>(*host_, settings_));
}

Result<std::unique_ptr<DeviceUnmounter>> LocalVolumePlugin::NewDeviceUnmounter() {
  return std::unique_ptr<DeviceUnmounter>(std::make_unique<LocalDeviceUnmounter>(*host_));
}

Result<std::vector<std::string>> LocalVolumePlugin::GetDeviceMountRefs(const SafePath& place,
                                                                       const CallOptions& call) {
  return FindDeviceMountRefs(host_->kernel, place, call);
}

Result<bool> LocalVolumePlugin::CanDeviceMount(const VolumeSpec& spec) const {
  return CanSupport(spec);
}

Result<std::unique_ptr<BlockVolumeMapper>> LocalVolumePlugin::NewBlockVolumeMapper(
    const VolumeSpec& spec, PodPtr pod) {
  if (!CanSupport(spec)) return NotLocal();
  return std::unique_ptr<BlockVolumeMapper>(
      std::make_unique<LocalVolumeMapper>(*host_, spec, pod == nullptr ? PodUid() : pod->uid()));
}

Result<std::unique_ptr<BlockVolumeUnmapper>> LocalVolumePlugin::NewBlockVolumeUnmapper(
    const SpecName& spec, const PodUid& pod) {
  return std::unique_ptr<BlockVolumeUnmapper>(
      std::make_unique<LocalVolumeUnmapper>(*host_, spec, pod));
}

Result<VolumeSpec> LocalVolumePlugin::ConstructBlockVolumeSpec(const PodUid&, const SpecName& spec,
                                                               const SafePath& map_path,
                                                               const CallOptions& call) {
  ASSIGN_OR_RETURN(const FileContent target, host_->kernel.Call(ReadLink{map_path}, call));
  LocalVolumeSource source;
  source.path = target.bytes;
  PersistentVolume volume;
  volume.metadata.name = spec.str();
  volume.spec.volume_mode = VolumeMode::kBlock;
  volume.spec.source = std::move(source);
  return VolumeSpec::FromPersistentVolume(std::move(volume), false);
}

Result<bool> LocalVolumePlugin::NodeExpand(const NodeResizeOptions& options,
                                           const CallOptions& call) {
  if (!CanSupport(options.spec)) return NotLocal();
  return ExpandLocalVolume(*host_, options, call);
}

}  // namespace volumed
