#include "plugins/iscsi_mounts.h"

#include <optional>
#include <utility>

#include "metrics/metrics_statfs.h"
#include "mounter/mount_refs.h"
#include "mounter/volume_ownership.h"
#include "operation/call_options.h"
#include "volume/unique_name.h"

namespace volumed {

Result<IscsiInitiator*> RequireInitiator(const IscsiParts& parts) {
  if (parts.initiator != nullptr) return parts.initiator;
  return Error::NotApplied(Code::kUnimplemented,
                           "iscsi: nothing finds devices here: no disk is attached");
}

// ---- the disk -----------------------------------------------------------------------------------

// Source: kubernetes pkg/volume/iscsi/iscsi.go@v1.36.2 (createSecretMap),
// pkg/volume/util/util.go (GetSecretForPV, which alone looks at the type).
Result<std::shared_ptr<const SecretObject>> IscsiAttacher::ChapSecret(const IscsiVolume& volume,
                                                                      const Pod& pod) const {
  if (!volume.chap_discovery && !volume.chap_session) return std::shared_ptr<const SecretObject>();
  if (volume.secret_name.empty()) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "iscsi: CHAP enabled but secret name is empty");
  }
  const std::string& ns =
      volume.secret_namespace.empty() ? pod.metadata.name_space : volume.secret_namespace;
  ASSIGN_OR_RETURN(std::shared_ptr<const SecretObject> secret,
                   parts_.host.objects.GetSecret(ns, volume.secret_name));
  if (secret->type != kIscsiChapSecretType && secret->type != kIscsiPluginName) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "iscsi: secret " + ns + "/" + volume.secret_name + " is of type " +
                                 secret->type + ", not " + kIscsiChapSecretType);
  }
  return secret;
}

Result<std::string> IscsiAttacher::WaitForAttach(const VolumeSpec& spec, const std::string&,
                                                 const Pod& pod, const CallOptions& call) {
  ASSIGN_OR_RETURN(IscsiInitiator * initiator, RequireInitiator(parts_));
  ASSIGN_OR_RETURN(const IscsiVolume volume, IscsiVolumeOf(spec));
  ASSIGN_OR_RETURN(const std::shared_ptr<const SecretObject> secret, ChapSecret(volume, pod));
  const KubeletPaths& paths = parts_.host.paths;
  IscsiAttachRequest request;
  request.place =
      IsBlockVolume(spec) ? IscsiMapPlace(paths, volume.disk) : IscsiMountPlace(paths, volume.disk);
  request.volume = volume;
  request.chap_secret = secret.get();
  request.warn = [&](const std::string& reason, const std::string& message) {
    parts_.host.events.RecordPodEvent(pod.uid(), EventType::kWarning, reason, message);
  };
  return initiator->AttachDisk(request, call);
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
  return MountDeviceVolume(parts_.host, parts_.formats, request, args);
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

// ---- a pod's bind -------------------------------------------------------------------------------

IscsiMounter::IscsiMounter(VolumeHost& host, const VolumeSpec& spec, IscsiVolume volume, PodPtr pod)
    : host_(host),
      volume_(std::move(volume)),
      pod_(std::move(pod)),
      place_(host.paths.GetPodVolumeDir(pod_->uid(), kIscsiPluginName, spec.name())),
      read_only_(volume_.read_only || IsReadOnlyVolume(spec.persistent_volume())) {}

Attributes IscsiMounter::GetAttributes() const {
  return {.read_only = read_only_, .managed = !read_only_, .selinux_relabel = true};
}

Result<Metrics> IscsiMounter::GetMetrics(const CallOptions& call) {
  return MetricsStatFs(host_.kernel, host_.clock, place_).GetMetrics(call);
}

Status IscsiMounter::SetUpAt(const SafePath& dir, const MounterArgs& args) {
  const SafePath source = IscsiMountPlace(host_.paths, volume_.disk);
  ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(host_.kernel, dir, args.call));
  if (!mounted) {
    ASSIGN_OR_RETURN(const std::optional<MountEntry> disk,
                     FindMountAt(host_.kernel, source.Display(), args.call));
    if (!disk) {
      return Error::NotApplied(Code::kFailedPrecondition,
                               "LUN " + std::to_string(volume_.disk.lun) + " of target " +
                                   volume_.disk.iqn + " is not mounted at " + source.Display());
    }
    if (!read_only_) {
      RETURN_IF_ERROR(CheckTakesWrites(host_, disk->source, source, args.call));
    }
    RETURN_IF_ERROR(BindForPod(host_, source, dir, read_only_, args.call));
  }
  // A set-up that was finished once is not walked again.
  if (read_only_ || (mounted && args.is_remount)) return OkStatus();
  // A failure fails the set-up: kubelet's diskSetUp does not look at it, and the pod starts with
  // files that it cannot write.
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

Result<Metrics> IscsiUnmounter::GetMetrics(const CallOptions& call) {
  return MetricsStatFs(host_.kernel, host_.clock, place_).GetMetrics(call);
}

}  // namespace volumed
