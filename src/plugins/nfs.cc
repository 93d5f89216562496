#include "plugins/nfs.h"

#include <algorithm>
#include <optional>

#include "metrics/metrics_statfs.h"
#include "mounter/mount_options.h"
#include "mounter/mount_refs.h"
#include "mounter/nfs_mount.h"
#include "mounter/volume_places.h"
#include "operation/call_options.h"
#include "volume/nfs_export.h"

namespace volumed {
namespace {

constexpr char kReadOnlyOption[] = "ro";

const NfsVolumeSource* SourceOf(const VolumeSpec& spec) { return spec.SourceAs<NfsVolumeSource>(); }

Error NotNfs() {
  return Error::NotApplied(Code::kInvalidArgument, "spec does not reference a NFS volume type");
}

// ---- set-up -------------------------------------------------------------------------------------

class NfsMounter final : public Mounter {
 public:
  // REQUIRES: an NFS volume.
  NfsMounter(VolumeHost& host, const VolumeSpec& spec, SafePath place)
      : host_(host),
        source_(*SourceOf(spec)),
        place_(std::move(place)),
        // Kubelet overlooks readOnly in the source of a persistent volume.
        read_only_(source_.read_only || spec.read_only()),
        options_(OptionsOf(spec)) {}

  std::string GetPath() const override { return place_.Display(); }
  SafePath GetSafePath() const override { return place_; }
  Attributes GetAttributes() const override {
    return {.read_only = read_only_, .managed = false, .selinux_relabel = false};
  }
  Result<Metrics> GetMetrics(const CallOptions& call) override {
    return MetricsStatFs(host_.kernel, host_.clock, place_).GetMetrics(call);
  }
  // Source: of the question, the seed's nfs.go (CanMount); v1.36 finds out by the mount.
  Status CanMount(const CallOptions& call) override { return CheckNfsHelper(host_.kernel, call); }
  Status SetUp(const MounterArgs& args) override { return SetUpAt(place_, args); }
  Status SetUpAt(const SafePath& dir, const MounterArgs& args) override;

 private:
  std::vector<std::string> OptionsOf(const VolumeSpec& spec) const;

  VolumeHost& host_;
  const NfsVolumeSource source_;
  const SafePath place_;
  const bool read_only_;
  const std::vector<std::string> options_;
};

std::vector<std::string> NfsMounter::OptionsOf(const VolumeSpec& spec) const {
  std::vector<std::string> own;
  if (read_only_) own.emplace_back(kReadOnlyOption);
  const PersistentVolume* volume = spec.persistent_volume();
  if (volume == nullptr) return own;
  return MountOptionFromSpec(volume->metadata.annotations, volume->spec.mount_options, own);
}

Status NfsMounter::SetUpAt(const SafePath& dir, const MounterArgs& args) {
  ASSIGN_OR_RETURN(const bool mounted, IsNfsMountedAt(host_.kernel, dir, args.call));
  if (mounted) return OkStatus();
  const CallOptions own = OnOwnFilesystem(args.call);
  RETURN_IF_ERROR(MakePlace(host_.kernel, dir, own));
  const Status done = MountNfs(host_.kernel, NfsExport(source_), dir, options_, args.call);
  return OrNothing(host_.kernel, dir, done, own);
}

// ---- teardown -----------------------------------------------------------------------------------

class NfsUnmounter final : public Unmounter {
 public:
  NfsUnmounter(VolumeHost& host, SafePath place, const NfsSettings& settings)
      : host_(host),
        place_(std::move(place)),
        times_{settings.unmount_timeout, settings.force_timeout},
        remove_timeout_(settings.remove_timeout) {}

  std::string GetPath() const override { return place_.Display(); }
  Result<Metrics> GetMetrics(const CallOptions& call) override {
    return MetricsStatFs(host_.kernel, host_.clock, place_).GetMetrics(call);
  }
  Status TearDown(const CallOptions& call) override { return TearDownAt(place_, call); }
  // Blocks: for the timeouts of the settings, whatever the step's deadline.
  Status TearDownAt(const SafePath& dir, const CallOptions& call) override;

 private:
  VolumeHost& host_;
  const SafePath place_;
  const NfsUnmountTimes times_;
  const Duration remove_timeout_;
};

Status NfsUnmounter::TearDownAt(const SafePath& dir, const CallOptions& call) {
  RETURN_IF_ERROR(UnmountNfs(host_.kernel, host_.clock, dir, times_, call));
  CallOptions own = OnOwnFilesystem(call);
  own.deadline = Deadline::After(host_.clock, remove_timeout_);
  const auto removed = host_.kernel.Call(RemoveDirectory{dir}, own);
  if (!removed.ok()) return removed.error().AsMaybeApplied();  // it is unmounted
  return OkStatus();
}

}  // namespace

// ---- the plugin ---------------------------------------------------------------------------------

Result<std::string> NfsPlugin::GetVolumeName(const VolumeSpec& spec) const {
  const NfsVolumeSource* source = SourceOf(spec);
  if (source == nullptr) return NotNfs();
  return source->server + "/" + source->path;
}

bool NfsPlugin::CanSupport(const VolumeSpec& spec) const { return SourceOf(spec) != nullptr; }

Result<std::unique_ptr<Mounter>> NfsPlugin::NewMounter(const VolumeSpec& spec,
                                                       const VolumeTarget& target) {
  if (!CanSupport(spec)) return NotNfs();
  return std::unique_ptr<Mounter>(std::make_unique<NfsMounter>(*host_, spec, target.place));
}

Result<std::unique_ptr<Unmounter>> NfsPlugin::NewUnmounter(const SpecName& spec,
                                                           const PodUid& pod) {
  return std::unique_ptr<Unmounter>(std::make_unique<NfsUnmounter>(
      *host_, host_->paths.GetPodVolumeDir(pod, kNfsPluginName, spec), settings_));
}

Result<ReconstructedVolume> NfsPlugin::ConstructVolumeSpec(const SpecName& spec,
                                                           const SafePath& volume_path,
                                                           const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountAt(host_->kernel, volume_path.Display(), call));
  NfsVolumeSource source;
  source.path = spec.str();
  if (mount && IsNfsType(mount->fs_type)) {
    source = ParseNfsExport(mount->source).value_or(std::move(source));
    source.read_only = TakesNoWrites(*mount);
  }
  return ReconstructedVolume{VolumeSpec::FromVolume(PodVolume{spec.str(), std::move(source)})};
}

std::string NfsPlugin::FaultDomain(const VolumeSpec& spec) const {
  const NfsVolumeSource* source = SourceOf(spec);
  return source == nullptr ? "" : NfsFaultDomain(*source);
}

std::string NfsPlugin::FaultDomainName(const VolumeSpec& spec) const {
  const NfsVolumeSource* source = SourceOf(spec);
  return source == nullptr ? "" : NfsServerName(*source);
}

Status NfsPlugin::Recycle(const std::string& pv_name, const VolumeSpec& spec,
                          const RecycleEventRecorder& recorder, const CallOptions& call) {
  const NfsVolumeSource* source = SourceOf(spec);
  if (spec.persistent_volume() == nullptr || source == nullptr) {
    return Error::NotApplied(Code::kInvalidArgument, "spec.PersistentVolumeSource.NFS is nil");
  }
  return RecycleByPod(settings_.config, settings_.recycler_pods, *spec.persistent_volume(), pv_name,
                      NfsVolumeSource{source->server, source->path, false}, recorder, call);
}

}  // namespace volumed
