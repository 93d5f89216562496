#include "plugins/iscsi_mounts.h"

#include <optional>
#include <utility>

#include "mounter/volume_places.h"
#include "operation/call_options.h"
#include "plugins/device_attachments.h"
#include "volume/unique_name.h"

namespace volumed {

namespace {

SafePath PlaceOf(const KubeletPaths& paths, const VolumeSpec& spec, const IscsiDisk& disk) {
  return IsBlockVolume(spec) ? IscsiMapPlace(paths, disk) : IscsiMountPlace(paths, disk);
}

}  // namespace

Result<IscsiInitiator*> RequireInitiator(const IscsiParts& parts) {
  if (parts.initiator != nullptr) return parts.initiator;
  return Error::NotApplied(Code::kUnimplemented,
                           "iscsi: nothing finds devices here: no disk is attached");
}

// ---- the disk -----------------------------------------------------------------------------------

// A secret of any type. Source: kubernetes pkg/volume/iscsi/iscsi.go@v1.36.2 (createSecretMap),
// which gets the secret itself, for inline and persistent volumes, and not by GetSecretForPV.
Result<std::shared_ptr<const SecretObject>> IscsiAttacher::ChapSecret(const IscsiVolume& volume,
                                                                      const Pod& pod) const {
  if (!volume.chap_discovery && !volume.chap_session) return std::shared_ptr<const SecretObject>();
  if (volume.secret_name.empty()) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "iscsi: CHAP enabled but secret name is empty");
  }
  const std::string& ns =
      volume.secret_namespace.empty() ? pod.metadata.name_space : volume.secret_namespace;
  return parts_.host.objects.GetSecret(ns, volume.secret_name);
}

Result<std::string> IscsiAttacher::WaitForAttach(const VolumeSpec& spec, const std::string&,
                                                 const Pod& pod, const CallOptions& call) {
  ASSIGN_OR_RETURN(IscsiInitiator * initiator, RequireInitiator(parts_));
  ASSIGN_OR_RETURN(const IscsiVolume volume, IscsiVolumeOf(spec));
  ASSIGN_OR_RETURN(const std::shared_ptr<const SecretObject> secret, ChapSecret(volume, pod));
  IscsiAttachRequest request;
  request.place = PlaceOf(parts_.host.paths, spec, volume.disk);
  request.volume = volume;
  request.chap_secret = secret.get();
  request.warn = [&](const std::string& reason, const std::string& message) {
    parts_.host.events.RecordPodEvent(pod.uid(), EventType::kWarning, reason, message);
  };
  return initiator->AttachDisk(request, call);
}

Result<std::vector<bool>> IscsiAttacher::VolumesAreAttached(const std::vector<VolumeSpec>& specs,
                                                            const NodeName& node,
                                                            const CallOptions& call) {
  RETURN_IF_ERROR(CheckIsThisNode(parts_.host, node));
  ASSIGN_OR_RETURN(IscsiInitiator * initiator, RequireInitiator(parts_));
  std::vector<IscsiDisk> disks;
  std::vector<SafePath> places;
  for (const VolumeSpec& spec : specs) {
    ASSIGN_OR_RETURN(IscsiVolume volume, IscsiVolumeOf(spec));
    places.push_back(PlaceOf(parts_.host.paths, spec, volume.disk));
    disks.push_back(std::move(volume.disk));
  }
  return AreDevicesAttached(
      parts_.host, initiator->scsi(), kIscsiPluginName, places,
      [&](size_t volume, const ScsiDisk& disk, const CallOptions& options) {
        return initiator->IsDiskOf(disks[volume], disk, options);
      },
      call);
}

Result<SafePath> IscsiAttacher::GetDeviceMountPath(const VolumeSpec& spec) const {
  ASSIGN_OR_RETURN(const IscsiVolume volume, IscsiVolumeOf(spec));
  return IscsiMountPlace(parts_.host.paths, volume.disk);
}

Status IscsiAttacher::MountDevice(const VolumeSpec& spec, const std::string& device_path,
                                  const SafePath& place, const DeviceMounterArgs& args) {
  ASSIGN_OR_RETURN(const IscsiVolume volume, IscsiVolumeOf(spec));
  ASSIGN_OR_RETURN(IscsiInitiator * initiator, RequireInitiator(parts_));
  ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(parts_.host.kernel, place, args.call));
  if (mounted) return OkStatus();
  // WaitForAttach has made it, with the file in it: it stays until the sessions are ended.
  RETURN_IF_ERROR(MakePlace(parts_.host.kernel, place, OnOwnFilesystem(args.call)));
  DeviceMountRequest request;
  request.plugin = "iscsi";
  request.key = GetUniqueVolumeName(kIscsiPluginName, GetIscsiVolumeName(volume)).str();
  request.volume = spec.persistent_volume();
  request.device = device_path;
  ASSIGN_OR_RETURN(request.expected, initiator->ProveDevice(volume.disk, device_path, args.call));
  request.place = place;
  request.fs_type = volume.fs_type;
  // Source: kubernetes pkg/volume/util/util.go@v1.36.2 (AddSELinuxMountOption).
  if (!args.selinux_label.empty()) {
    request.options.push_back("context=\"" + args.selinux_label + "\"");
  }
  request.for_readers = volume.read_only;
  request.read_only_if_protected = volume.read_only || args.some_pods_only_read;
  RETURN_IF_ERROR(MountDeviceVolume(parts_.host, parts_.formats, request, args));
  return OkStatus();
}

Status IscsiDetacher::UnmountDevice(const SafePath& place, const CallOptions& call) {
  ASSIGN_OR_RETURN(IscsiInitiator * initiator, RequireInitiator(parts_));
  if (!ParseIscsiPlace(place.Display())) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "\"" + place.Display() + "\" is not a place of iSCSI volumes");
  }
  RETURN_IF_ERROR(parts_.host.kernel.Call(Unmount{.target = place}, call));
  const Status detached = initiator->DetachDisk(place, call);
  return detached.ok() ? detached : Status(detached.error().AsMaybeApplied());  // it is unmounted
}

}  // namespace volumed
