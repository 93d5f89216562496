#include "pool/pool_plugin.h"

#include <optional>
#include <utility>

#include "base/strings.h"
#include "blockmapper/volume_path_handler.h"
#include "mounter/mount_refs.h"
#include "mounter/volume_places.h"
#include "pluginmgr/device_bind.h"
#include "pool/pool_block.h"
#include "pool/pool_mounts.h"
#include "pool/pool_names.h"
#include "pool/pool_places.h"
#include "pool/pool_storage.h"
#include "pool/static_backend.h"
#include "pool/static_export.h"
#include "volume/nfs_export.h"
#include "volume/unique_name.h"

namespace volumed {

std::string PoolTopologyLabel(const std::string& driver) { return "topology." + driver + "/node"; }

bool PoolPlugin::CanSupport(const VolumeSpec& spec) const {
  if (parts_.driver.empty()) return false;
  const auto* const persistent = spec.SourceAs<CsiPersistentVolumeSource>();
  if (persistent != nullptr) return persistent->driver == parts_.driver;
  const auto* const inline_source = spec.SourceAs<CsiVolumeSource>();
  return inline_source != nullptr && inline_source->driver == parts_.driver;
}

Result<std::string> PoolPlugin::GetVolumeName(const VolumeSpec& spec) const {
  return PoolVolumeIdOf(spec, parts_.driver);
}

Result<std::unique_ptr<Mounter>> PoolPlugin::NewMounter(const VolumeSpec& spec,
                                                        const VolumeTarget& target) {
  ASSIGN_OR_RETURN(const std::string id, PoolVolumeIdOf(spec, parts_.driver));
  DeviceBind bind;
  bind.volume = "volume " + id;
  bind.device_mount = target.device_place.value_or(PoolDevicePlace(host_->paths, id));
  bind.place = target.place;
  bind.spec = target.key.spec;
  bind.pod = target.key.pod;
  bind.read_only = IsReadOnlyPoolVolume(spec);
  const Result<PoolVolumeRecord> volume = parts_.volumes.Find(id);
  bind.is_tree = volume.ok() && IsTree(volume->backend);
  bind.keeps_owners = volume.ok() && volume->backend == PoolBackendKind::kExport;
  bind.read_only = bind.read_only || (volume.ok() && volume->source_read_only);
  if (volume.ok()) bind.project_id = volume->project_id;
  // A CO's place is not the agent's own.
  if (target.device_place) {
    bind.check_device = [this, id](const MountEntry& mount, const CallOptions& call) {
      return CheckShowsVolume(parts_.volumes, host_->kernel, id, mount, call);
    };
  }
  // Of what a CO publishes the CO says the pod, and csidriver throttles it.
  if (target.pod != nullptr) {
    bind.before_bind = [&volumes = parts_.volumes, id, pod = bind.pod.str()](
                           const CallOptions& call) { return volumes.Throttle(id, pod, call); };
  }
  return std::unique_ptr<Mounter>(std::make_unique<DeviceBindMounter>(*host_, std::move(bind)));
}

Result<std::unique_ptr<Unmounter>> PoolPlugin::NewUnmounter(const SpecName& spec,
                                                            const PodUid& pod) {
  return std::unique_ptr<Unmounter>(std::make_unique<DeviceBindUnmounter>(
      *host_, host_->paths.GetPodVolumeDir(pod, kPoolPluginName, spec)));
}

// A bind and the device's mount show the same part of one filesystem.
Result<ReconstructedVolume> PoolPlugin::ConstructVolumeSpec(const SpecName& spec,
                                                            const SafePath& volume_path,
                                                            const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<std::string> places,
                   FindMountRefs(host_->kernel, volume_path.Display(), call));
  for (const std::string& place : places) {
    const Result<SafePath> path = host_->paths.BelowRoot(place);
    if (!path.ok()) continue;
    const Result<std::string> id = PoolVolumeIdAt(host_->paths, *path);
    if (!id.ok()) continue;
    return ReconstructedVolume{PoolVolumeSpec(spec, parts_.driver, *id, VolumeMode::kFilesystem)};
  }
  return Error::NotApplied(Code::kFailedPrecondition,
                           "no device of a pool is mounted for " + volume_path.Display());
}

std::string PoolPlugin::FaultDomain(const VolumeSpec& spec) const {
  const Result<std::string> id = PoolVolumeIdOf(spec, parts_.driver);
  return id.ok() ? parts_.volumes.DomainOf(*id) : "";
}

std::string PoolPlugin::FaultDomainName(const VolumeSpec& spec) const {
  const Result<std::string> id = PoolVolumeIdOf(spec, parts_.driver);
  if (!id.ok()) return "";
  const Result<PoolVolumeRecord> volume = parts_.volumes.Find(*id);
  const bool is_export = volume.ok() && volume->backend == PoolBackendKind::kExport;
  return is_export ? NfsServerName(ServerOfExport(volume->source)) : "";
}

std::vector<std::string> PoolPlugin::DevicePaths(const VolumeSpec& spec) const {
  std::string pool = FaultDomain(spec);
  if (!pool.starts_with('/')) return {};
  return {std::move(pool)};
}

ProvisionableVolumePlugin* PoolPlugin::AsProvisionerOf(const std::string& provisioner) {
  return !parts_.driver.empty() && provisioner == parts_.driver ? this : nullptr;
}

std::vector<AccessMode> PoolPlugin::GetAccessModes() const {
  return {AccessMode::kReadWriteOnce, AccessMode::kReadWriteOncePod};
}

UniqueVolumeName PoolPlugin::DeviceOfContent(const VolumeOptions& options) const {
  const Result<std::optional<VolumeContent>> content = PoolContentOf(options);
  if (!content.ok() || !*content || (*content)->is_snapshot) return {};
  return GetUniqueVolumeName(kPoolPluginName, (*content)->handle);
}

Result<std::unique_ptr<Provisioner>> PoolPlugin::NewProvisioner(const VolumeOptions& options) {
  return MakePoolProvisioner(*host_, parts_, options);
}

std::string HowDataIsDeleted(const PoolVolumes& volumes, const std::string& id) {
  const Result<PoolVolumeRecord> volume = volumes.Find(id);
  if (volume.ok() && IsListed(volume->backend)) {
    return "it is " + ShownSource(*volume) +
           ", which was there before it was listed: volumed never deletes that";
  }
  return "`volumectl pool delete " + id + "` deletes it";
}

// One that somebody has written down by hand stays, as in a cluster.
// Source: sig-storage-lib-external-provisioner@v11 controller.go (shouldDelete).
Result<std::unique_ptr<Deleter>> PoolPlugin::NewDeleter(const VolumeSpec& spec) {
  ASSIGN_OR_RETURN(const std::string id, PoolVolumeIdOf(spec, parts_.driver));
  const StringMap& annotations = spec.persistent_volume()->metadata.annotations;
  const auto maker = annotations.find(kProvisionedBy);
  if (maker == annotations.end() || maker->second != parts_.driver) {
    return Error::NotApplied(
        Code::kFailedPrecondition,
        "its annotation " + std::string(kProvisionedBy) + " does not say that " + parts_.driver +
            " has made it for a claim, so its storage is not deleted with it; once "
            "no PersistentVolume names it, " +
            HowDataIsDeleted(parts_.volumes, id));
  }
  return MakePoolDeleter(*host_, parts_, id);
}

Result<Quantity> PoolPlugin::ExpandVolumeDevice(const VolumeSpec& spec, const Quantity& new_size,
                                                const Quantity&, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::string id, PoolVolumeIdOf(spec, parts_.driver));
  ASSIGN_OR_RETURN(const PoolVolumeRecord volume, parts_.volumes.Find(id));
  RETURN_IF_ERROR(CheckListedSize(volume, new_size.Value()));
  RETURN_IF_ERROR(
      CheckGrowsWhereItIs(*host_, parts_.volumes, id, PoolDevicePlace(host_->paths, id), call));
  ASSIGN_OR_RETURN(const int64_t bytes, parts_.volumes.Expand(id, new_size.Value(), call));
  return Quantity::FromBytes(bytes);
}

Result<bool> PoolPlugin::NodeExpand(const NodeResizeOptions& options, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::string id, PoolVolumeIdOf(options.spec, parts_.driver));
  ASSIGN_OR_RETURN(const PoolVolumeRecord volume, parts_.volumes.Find(id));
  // What bounds it was raised with the volume.
  if (IsTree(volume.backend)) return true;
  if (volume.backend == PoolBackendKind::kExport) return WhyNoSize(volume);
  ASSIGN_OR_RETURN(const OpenedVolume opened, parts_.volumes.Open(id, /*read_only=*/false, call));
  DeviceGrowth growth;
  growth.plugin = "pool";
  growth.device = opened.device;
  growth.mounted_at = options.device_mount_path;
  growth.is_block = IsBlockVolume(options.spec);
  growth.target_bytes = options.new_size.Value();
  growth.note = options.note;
  return GrowDeviceVolume(*host_, growth, call);
}

Result<std::unique_ptr<DeviceMounter>> PoolPlugin::NewDeviceMounter() {
  return std::unique_ptr<DeviceMounter>(std::make_unique<PoolDeviceMounter>(*host_, parts_));
}

Result<std::unique_ptr<DeviceUnmounter>> PoolPlugin::NewDeviceUnmounter() {
  return std::unique_ptr<DeviceUnmounter>(std::make_unique<PoolDeviceUnmounter>(*host_, parts_));
}

Result<std::vector<std::string>> PoolPlugin::GetDeviceMountRefs(const SafePath& device_mount_path,
                                                                const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountAt(host_->kernel, device_mount_path.Display(), call));
  if (mount && IsNfsType(mount->fs_type)) return std::vector<std::string>();
  return FindDeviceMountRefs(host_->kernel, device_mount_path, call);
}

Result<bool> PoolPlugin::CanDeviceMount(const VolumeSpec& spec) const {
  return spec.persistent_volume() != nullptr;
}

Result<std::unique_ptr<BlockVolumeMapper>> PoolPlugin::NewBlockVolumeMapper(const VolumeSpec& spec,
                                                                            PodPtr pod) {
  ASSIGN_OR_RETURN(std::string id, PoolVolumeIdOf(spec, parts_.driver));
  return std::unique_ptr<BlockVolumeMapper>(std::make_unique<PoolVolumeMapper>(
      *host_, parts_, spec, std::move(id), pod == nullptr ? PodUid() : pod->uid()));
}

Result<std::unique_ptr<BlockVolumeUnmapper>> PoolPlugin::NewBlockVolumeUnmapper(
    const SpecName& spec, const PodUid& pod) {
  return std::unique_ptr<BlockVolumeUnmapper>(
      std::make_unique<PoolVolumeUnmapper>(*host_, parts_, spec, pod, /*id=*/""));
}

Result<std::unique_ptr<BlockVolumeUnmapper>> PoolPlugin::NewBlockVolumeUnmapperOf(
    const VolumeSpec& recorded, const PodUid& pod) {
  const Result<std::string> id = RecordedPoolVolumeId(recorded);
  return std::unique_ptr<BlockVolumeUnmapper>(std::make_unique<PoolVolumeUnmapper>(
      *host_, parts_, recorded.name(), pod, id.ok() ? *id : ""));
}

Result<VolumeSpec> PoolPlugin::ConstructBlockVolumeSpec(const PodUid& pod, const SpecName& spec,
                                                        const SafePath& map_path,
                                                        const CallOptions& call) {
  const SafePath all = host_->paths.GetVolumeDevicePluginDir(EscapeQualifiedName(kPoolPluginName));
  ASSIGN_OR_RETURN(
      const SafePath node,
      VolumePathHandler(host_->kernel).FindGlobalMapPathUUIDFromPod(all, map_path, pod, call));
  SafePath place = node;
  place.relative.erase(place.relative.rfind('/'));  // its last name is the pod's uid
  ASSIGN_OR_RETURN(const std::string id, PoolVolumeIdAt(host_->paths, place));
  return PoolVolumeSpec(spec, parts_.driver, id, VolumeMode::kBlock);
}

}  // namespace volumed
