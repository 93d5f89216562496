#include "plugins/nfs.h"

#include <algorithm>
#include <optional>

#include "metrics/metrics_statfs.h"
#include "mounter/host_directory.h"
#include "mounter/mount_options.h"
#include "mounter/mount_refs.h"
#include "mounter/volume_places.h"
#include "operation/call_options.h"
#include "volume/nfs_export.h"

namespace volumed {
namespace {

constexpr char kFsType[] = "nfs";
constexpr char kHelper[] = "/sbin/mount.nfs";
constexpr char kReadOnlyOption[] = "ro";
// What is forced must not wait behind what hangs: a lane of its own, which is bounded as well.
constexpr char kForceLane[] = " force";

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
  Status CanMount(const CallOptions& call) override;
  Status SetUp(const MounterArgs& args) override { return SetUpAt(place_, args); }
  Status SetUpAt(const SafePath& dir, const MounterArgs& args) override;

 private:
  std::vector<std::string> OptionsOf(const VolumeSpec& spec) const;
  // Whether it is mounted at `dir`; FailedPrecondition when something else is.
  Result<bool> IsMounted(const SafePath& dir, const CallOptions& call) const;
  Status MountAt(const SafePath& dir, const CallOptions& call) const;

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

Status NfsMounter::CanMount(const CallOptions& call) {
  ASSIGN_OR_RETURN(
      const FileInfo helper,
      host_.kernel.Call(Stat{.path = HostPath(kHelper), .follow = true}, OnOwnFilesystem(call)));
  if (helper.type == FileType::kRegular) return OkStatus();
  return Error::NotApplied(Code::kNotFound,
                           std::string(kHelper) + " is missing: install the package nfs-common");
}

Result<bool> NfsMounter::IsMounted(const SafePath& dir, const CallOptions& call) const {
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountAt(host_.kernel, dir.Display(), call));
  if (!mount) return false;
  if (IsNfsType(mount->fs_type)) return true;
  return Error::NotApplied(Code::kFailedPrecondition, "something else than NFS is mounted at " +
                                                          dir.Display() + ": " + mount->fs_type +
                                                          " of " + mount->source);
}

Status NfsMounter::MountAt(const SafePath& dir, const CallOptions& call) const {
  RETURN_IF_ERROR(host_.kernel.Call(
      Mount{.fs_type = kFsType, .source = NfsExport(source_), .target = dir, .options = options_},
      call));
  // With the option "bg", mount.nfs says that all is well and goes on trying: a pod would write
  // into the directory below.
  const Result<bool> mounted = IsMounted(dir, call);
  if (!mounted.ok()) return mounted.error().AsMaybeApplied();
  if (*mounted) return OkStatus();
  return Error::MaybeApplied(Code::kUnavailable,
                             "mount.nfs has ended well, and " + NfsExport(source_) +
                                 " is not mounted (the option bg is of no use to a pod)");
}

Status NfsMounter::SetUpAt(const SafePath& dir, const MounterArgs& args) {
  ASSIGN_OR_RETURN(const bool mounted, IsMounted(dir, args.call));
  if (mounted) return OkStatus();
  const CallOptions own = OnOwnFilesystem(args.call);
  RETURN_IF_ERROR(MakePlace(host_.kernel, dir, own));
  return OrNothing(host_.kernel, dir, MountAt(dir, args.call), own);
}

// ---- teardown -----------------------------------------------------------------------------------

class NfsUnmounter final : public Unmounter {
 public:
  NfsUnmounter(VolumeHost& host, SafePath place, const NfsSettings& settings)
      : host_(host),
        place_(std::move(place)),
        unmount_timeout_(settings.unmount_timeout()),
        force_timeout_(settings.force_timeout),
        remove_timeout_(settings.remove_timeout) {}

  std::string GetPath() const override { return place_.Display(); }
  Result<Metrics> GetMetrics(const CallOptions& call) override {
    return MetricsStatFs(host_.kernel, host_.clock, place_).GetMetrics(call);
  }
  Status TearDown(const CallOptions& call) override { return TearDownAt(place_, call); }
  // Blocks: for the timeouts of the settings, whatever the step's deadline.
  Status TearDownAt(const SafePath& dir, const CallOptions& call) override;

 private:
  Status UnmountAt(const SafePath& dir, const CallOptions& call) const;
  Status ForceUnmount(const SafePath& dir, const Error& why, const CallOptions& call) const;
  // Another place that shows the same filesystem; "" when there is none.
  Result<std::string> OtherPlace(const MountEntry& mount, const CallOptions& call) const;

  VolumeHost& host_;
  const SafePath place_;
  const Duration unmount_timeout_;
  const Duration force_timeout_;
  const Duration remove_timeout_;
};

Result<std::string> NfsUnmounter::OtherPlace(const MountEntry& mount,
                                             const CallOptions& call) const {
  // All of the table: an export and a directory of it may be one filesystem to the kernel.
  ASSIGN_OR_RETURN(const MountListing all, host_.kernel.Call(ListMounts{}, call));
  for (const MountEntry& other : all.mounts) {
    if (other.device_major == mount.device_major && other.device_minor == mount.device_minor &&
        other.mount_point != mount.mount_point) {
      return other.mount_point;
    }
  }
  return std::string();
}

Status NfsUnmounter::ForceUnmount(const SafePath& dir, const Error& why,
                                  const CallOptions& call) const {
  CallOptions forced = call;
  forced.domain += kForceLane;
  // The worker that hangs may still hold the volume's key: this is what sets it free.
  forced.key.clear();
  forced.deadline = Deadline::After(host_.clock, force_timeout_);
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountAt(host_.kernel, dir.Display(), forced));
  // It is out of the way already; what is left is the server's end of it.
  if (!mount) return OkStatus();
  ASSIGN_OR_RETURN(const std::string other, OtherPlace(*mount, forced));
  if (!other.empty()) {
    return why.With("not forced, as its requests are those of " + other + ", too");
  }
  RETURN_IF_ERROR(host_.kernel.Call(Unmount{.target = dir, .force = true}, forced));
  return OkStatus();
}

Status NfsUnmounter::UnmountAt(const SafePath& dir, const CallOptions& call) const {
  CallOptions plain = call;
  plain.deadline = Deadline::After(host_.clock, unmount_timeout_);
  const Result<Changed> unmounted = host_.kernel.Call(Unmount{.target = dir}, plain);
  if (unmounted.ok()) return OkStatus();
  const Error& error = unmounted.error();
  // Only one that was tried and hung is forced; one that waited for a worker was not tried.
  if (error.code() != Code::kDeadlineExceeded || !error.maybe_applied()) return error;
  return ForceUnmount(dir, error, call);
}

Status NfsUnmounter::TearDownAt(const SafePath& dir, const CallOptions& call) {
  RETURN_IF_ERROR(UnmountAt(dir, call));
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
  return source == nullptr || source->server.empty() ? "" : "NFS server " + source->server;
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
