#include "plugins/iscsi.h"

#include <utility>

#include "base/strings.h"
#include "blockmapper/volume_path_handler.h"
#include "mounter/mount_refs.h"
#include "mounter/volume_places.h"
#include "pluginmgr/device_bind.h"
#include "plugins/iscsi_block.h"

namespace volumed {
namespace {

// What a place says of its volume, as a spec. Source: iscsi.go (ConstructVolumeSpec).
IscsiVolumeSource SourceOf(const IscsiDisk& disk) {
  IscsiVolumeSource source;
  source.target_portal = disk.portals.front();
  source.portals = disk.portals;
  source.iqn = disk.iqn;
  source.lun = static_cast<int32_t>(disk.lun);
  source.iscsi_interface = disk.iface;
  return source;
}

}  // namespace

Status IscsiPlugin::Init(PluginContext context) {
  RETURN_IF_ERROR(PlainVolumePlugin::Init(context));
  if (settings_.devices != nullptr) {
    initiator_ = std::make_unique<IscsiInitiator>(*host_, *settings_.devices, settings_.options);
  }
  return OkStatus();
}

bool IscsiPlugin::CanSupport(const VolumeSpec& spec) const {
  return spec.SourceAs<IscsiVolumeSource>() != nullptr ||
         spec.SourceAs<IscsiPersistentVolumeSource>() != nullptr;
}

Result<std::string> IscsiPlugin::GetVolumeName(const VolumeSpec& spec) const {
  ASSIGN_OR_RETURN(const IscsiVolume volume, IscsiVolumeOf(spec));
  return GetIscsiVolumeName(volume);
}

std::string IscsiPlugin::FaultDomain(const VolumeSpec& spec) const {
  const Result<IscsiVolume> volume = IscsiVolumeOf(spec);
  return volume.ok() ? "iscsi:" + volume->disk.portals.front() : "";
}

Result<std::unique_ptr<Mounter>> IscsiPlugin::NewMounter(const VolumeSpec& spec,
                                                         const VolumeTarget& target) {
  ASSIGN_OR_RETURN(const IscsiVolume volume, IscsiVolumeOf(spec));
  DeviceBind bind;
  bind.volume = "LUN " + std::to_string(volume.disk.lun) + " of target " + volume.disk.iqn;
  bind.device_mount = IscsiMountPlace(host_->paths, volume.disk);
  bind.place = target.place;
  bind.spec = target.key.spec;
  bind.pod = target.key.pod;
  bind.read_only = volume.read_only || IsReadOnlyVolume(spec.persistent_volume());
  return std::unique_ptr<Mounter>(std::make_unique<DeviceBindMounter>(*host_, std::move(bind)));
}

Result<std::unique_ptr<Unmounter>> IscsiPlugin::NewUnmounter(const SpecName& spec,
                                                             const PodUid& pod) {
  return std::unique_ptr<Unmounter>(std::make_unique<DeviceBindUnmounter>(
      *host_, host_->paths.GetPodVolumeDir(pod, kIscsiPluginName, spec)));
}

Result<ReconstructedVolume> IscsiPlugin::ConstructVolumeSpec(const SpecName& spec,
                                                             const SafePath& volume_path,
                                                             const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<std::string> places,
                   FindMountRefs(host_->kernel, volume_path.Display(), call));
  const std::string ours = host_->paths.GetPluginDir(kIscsiPluginName).Display() + "/";
  for (const std::string& place : places) {
    const std::optional<IscsiDisk> disk = ParseIscsiPlace(place);
    if (!disk || !place.starts_with(ours)) continue;
    return ReconstructedVolume{VolumeSpec::FromVolume(PodVolume{spec.str(), SourceOf(*disk)})};
  }
  return Error::NotApplied(Code::kNotFound, "no iSCSI disk is mounted for the node that shows at " +
                                                volume_path.Display());
}

// ---- attaching ----------------------------------------------------------------------------------

Result<std::unique_ptr<Attacher>> IscsiPlugin::NewAttacher() {
  return std::unique_ptr<Attacher>(std::make_unique<IscsiAttacher>(parts()));
}

Result<std::unique_ptr<Detacher>> IscsiPlugin::NewDetacher() {
  return std::unique_ptr<Detacher>(std::make_unique<IscsiDetacher>(parts()));
}

Result<std::unique_ptr<DeviceMounter>> IscsiPlugin::NewDeviceMounter() {
  return std::unique_ptr<DeviceMounter>(std::make_unique<IscsiAttacher>(parts()));
}

Result<std::unique_ptr<DeviceUnmounter>> IscsiPlugin::NewDeviceUnmounter() {
  return std::unique_ptr<DeviceUnmounter>(std::make_unique<IscsiDetacher>(parts()));
}

Result<std::vector<std::string>> IscsiPlugin::GetDeviceMountRefs(const SafePath& place,
                                                                 const CallOptions& call) {
  return FindDeviceMountRefs(host_->kernel, place, call);
}

// ---- block volumes ------------------------------------------------------------------------------

Result<std::unique_ptr<BlockVolumeMapper>> IscsiPlugin::NewBlockVolumeMapper(const VolumeSpec& spec,
                                                                             PodPtr pod) {
  ASSIGN_OR_RETURN(IscsiVolume volume, IscsiVolumeOf(spec));
  return std::unique_ptr<BlockVolumeMapper>(std::make_unique<IscsiMapper>(
      *host_, spec.name(), std::move(volume.disk), pod == nullptr ? PodUid() : pod->uid()));
}

Result<std::unique_ptr<BlockVolumeUnmapper>> IscsiPlugin::NewBlockVolumeUnmapper(
    const SpecName& spec, const PodUid& pod) {
  return std::unique_ptr<BlockVolumeUnmapper>(std::make_unique<IscsiUnmapper>(parts(), spec, pod));
}

Result<VolumeSpec> IscsiPlugin::ConstructBlockVolumeSpec(const PodUid& pod, const SpecName& spec,
                                                         const SafePath& map_path,
                                                         const CallOptions& call) {
  ASSIGN_OR_RETURN(
      const SafePath node,
      VolumePathHandler(host_->kernel)
          .FindGlobalMapPathUUIDFromPod(host_->paths.GetVolumeDevicePluginDir(kIscsiPluginName),
                                        map_path, pod, call));
  const std::string path = node.Display();
  const std::optional<IscsiDisk> disk = ParseIscsiPlace(path.substr(0, path.rfind('/')));
  if (!disk) {
    return Error::NotApplied(Code::kNotFound, path + " is not the node of an iSCSI volume");
  }
  const IscsiVolumeSource found = SourceOf(*disk);
  IscsiPersistentVolumeSource source;
  source.target_portal = found.target_portal;
  source.portals = found.portals;
  source.iqn = found.iqn;
  source.lun = found.lun;
  source.iscsi_interface = found.iscsi_interface;
  PersistentVolume volume;
  volume.metadata.name = spec.str();
  volume.spec.volume_mode = VolumeMode::kBlock;
  volume.spec.source = std::move(source);
  return VolumeSpec::FromPersistentVolume(std::move(volume), false);
}

// ---- expansion ----------------------------------------------------------------------------------

Result<bool> IscsiPlugin::NodeExpand(const NodeResizeOptions& options, const CallOptions& call) {
  ASSIGN_OR_RETURN(const IscsiVolume volume, IscsiVolumeOf(options.spec));
  ASSIGN_OR_RETURN(IscsiInitiator * initiator, RequireInitiator(parts()));
  RETURN_IF_ERROR(initiator->RescanSize(volume.disk, call));
  ASSIGN_OR_RETURN(const std::optional<std::string> device,
                   initiator->FindDevice(volume.disk, call));
  if (!device) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "iscsi: the disk of volume " + options.spec.name().str() + " is gone");
  }
  return GrowDeviceVolume(*host_,
                          {.plugin = "iscsi",
                           .device = *device,
                           .mounted_at = options.device_mount_path,
                           .is_block = IsBlockVolume(options.spec),
                           .target_bytes = options.new_size.Value(),
                           .note = options.note},
                          call);
}

}  // namespace volumed
