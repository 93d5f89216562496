#include "plugins/payload_volume.h"

#include <utility>
#include <vector>

#include "metrics/metrics_cached.h"
#include "metrics/metrics_du.h"
#include "mounter/volume_ownership.h"
#include "pluginmgr/wrapper_volumes.h"

namespace volumed {
namespace {

constexpr uint32_t kNestedMountPointMode = 0755;
// The link that every published payload has. Source: atomic_writer.go@v1.36.2 (dataDirName).
constexpr char kDataLink[] = "..data";

class PayloadUnmounter final : public Unmounter {
 public:
  PayloadUnmounter(VolumeHost& host, PayloadVolumePlugin& plugin, PodUid pod, SafePath dir,
                   std::unique_ptr<Unmounter> wrapped)
      : plugin_(plugin),
        pod_(std::move(pod)),
        dir_(std::move(dir)),
        wrapped_(std::move(wrapped)),
        metrics_(NewTimedMetricsDu(host.kernel, host.clock, dir_, host.metrics)) {}

  std::string GetPath() const override { return dir_.Display(); }
  Result<Metrics> GetMetrics(const CallOptions& call) override { return metrics_.GetMetrics(call); }
  Status TearDown(const CallOptions& call) override { return TearDownAt(dir_, call); }
  Status TearDownAt(const SafePath& dir, const CallOptions& call) override {
    plugin_.Forget(pod_);
    return wrapped_->TearDownAt(dir, call);
  }

 private:
  PayloadVolumePlugin& plugin_;
  const PodUid pod_;
  const SafePath dir_;
  const std::unique_ptr<Unmounter> wrapped_;
  MetricsCached metrics_;
};

// The parts that a mounter is made of.
struct MounterParts {
  VolumeHost& host;
  const PayloadVolumePlugin& plugin;
  VolumeSource source;
  int32_t default_mode = kDefaultPayloadMode;
  PodPtr pod;
  SafePath dir;
  std::unique_ptr<Mounter> wrapped;
  std::unique_ptr<Unmounter> wrapped_unmounter;
};

class PayloadMounter final : public Mounter {
 public:
  explicit PayloadMounter(MounterParts parts)
      : parts_(std::move(parts)),
        metrics_(NewTimedMetricsDu(parts_.host.kernel, parts_.host.clock, parts_.dir,
                                   parts_.host.metrics)) {}

  std::string GetPath() const override { return parts_.dir.Display(); }
  SafePath GetSafePath() const override { return parts_.dir; }
  Attributes GetAttributes() const override {
    return {.read_only = true, .managed = true, .selinux_relabel = true};
  }
  Result<Metrics> GetMetrics(const CallOptions& call) override { return metrics_.GetMetrics(call); }
  std::optional<Freshness> freshness() const override { return freshness_; }
  Status SetUp(const MounterArgs& args) override { return SetUpAt(parts_.dir, args); }
  Status SetUpAt(const SafePath& dir, const MounterArgs& args) override;

 private:
  Status Fill(const SafePath& dir, const MounterArgs& args, std::vector<PayloadFile> files);
  Error GiveUp(const SafePath& dir, const MounterArgs& args, const Error& cause);

  MounterParts parts_;
  MetricsCached metrics_;
  std::optional<Freshness> freshness_;
};

Status PayloadMounter::SetUpAt(const SafePath& dir, const MounterArgs& args) {
  const PayloadContext context{.objects = parts_.host.objects,
                               .tokens = parts_.host.tokens,
                               .node = parts_.host.node,
                               .pod = *parts_.pod,
                               .default_mode = parts_.default_mode,
                               .fs_user = args.fs_user,
                               .fs_group = args.fs_group};
  ASSIGN_OR_RETURN(CollectedPayload payload, parts_.plugin.Collect(context, parts_.source));
  RETURN_IF_ERROR(parts_.wrapped->SetUpAt(dir, args));
  const Status filled = Fill(dir, args, FilesOf(std::move(payload.files)));
  if (!filled.ok()) return GiveUp(dir, args, filled.error());
  freshness_ = payload.freshness;
  return OkStatus();
}

Status PayloadMounter::Fill(const SafePath& dir, const MounterArgs& args,
                            std::vector<PayloadFile> files) {
  Kernel& kernel = parts_.host.kernel;
  bool changed = false;
  for (const std::string& nested : args.nested_mount_points) {
    ASSIGN_OR_RETURN(const Changed made,
                     kernel.Call(MakeDirectory{.path = dir.Below(nested),
                                               .mode = kNestedMountPointMode,
                                               .parent_mode = kNestedMountPointMode},
                                 args.call));
    changed = changed || made.changed;
  }
  WriteAtomicPayload write{.target = dir, .files = std::move(files), .gid = std::nullopt};
  if (args.fs_group) {
    ASSIGN_OR_RETURN(write.gid, GroupId(*args.fs_group));
  }
  ASSIGN_OR_RETURN(const Changed written, kernel.Call(write, args.call));
  changed = changed || written.changed;
  // The files had their group before they could be seen; this is for the links and directories
  // around them. A refresh without a change has none that are new.
  if (args.is_remount && !changed) return OkStatus();
  RETURN_IF_ERROR(SetVolumeOwnership(kernel, parts_.host.events, parts_.host.clock,
                                     {.dir = dir,
                                      .fs_group = args.fs_group,
                                      .policy = FsGroupChangePolicy::kAlways,
                                      .read_only = true,
                                      .pod = parts_.pod->uid(),
                                      .metrics = &parts_.host.metrics,
                                      .plugin_name = parts_.plugin.GetPluginName()},
                                     args.call));
  return OkStatus();
}

// Takes a volume that never had content away again, and keeps any other.
Error PayloadMounter::GiveUp(const SafePath& dir, const MounterArgs& args, const Error& cause) {
  // A worker that may still be writing is not to be worked against.
  if (args.is_remount || cause.maybe_applied()) return cause;
  const auto data = parts_.host.kernel.Call(Stat{.path = dir.Below(kDataLink)}, args.call);
  if (!data.ok() || data->type != FileType::kMissing) return cause.AsMaybeApplied();
  const Status removed = parts_.wrapped_unmounter->TearDownAt(dir, args.call);
  if (removed.ok()) return cause;
  return cause.With("cleaning up failed too (" + removed.error().message() + ")").AsMaybeApplied();
}

}  // namespace

Status PayloadVolumePlugin::Init(PluginContext context) {
  host_ = &context.host;
  wrapper_volumes_ = &context.wrapper_volumes;
  return OkStatus();
}

bool PayloadVolumePlugin::CanSupport(const VolumeSpec& spec) const {
  return spec.volume() != nullptr && IsMine(spec.volume()->source);
}

Result<std::string> PayloadVolumePlugin::GetVolumeName(const VolumeSpec& spec) const {
  if (!CanSupport(spec)) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "Spec does not reference " + KindWithArticle() + " volume type");
  }
  return VolumeName(spec.name(), spec.volume()->source);
}

Result<std::unique_ptr<Mounter>> PayloadVolumePlugin::NewMounter(const VolumeSpec& spec,
                                                                 PodPtr pod) {
  RETURN_IF_ERROR(GetVolumeName(spec));
  const VolumeSource backing = EmptyDirVolumeSource{.medium = BackingMedium(), .size_limit = {}};
  ASSIGN_OR_RETURN(auto wrapped, wrapper_volumes_->NewWrapperMounter(spec.name(), backing, pod));
  ASSIGN_OR_RETURN(auto unmounter,
                   wrapper_volumes_->NewWrapperUnmounter(spec.name(), backing, pod->uid()));
  const VolumeSource& source = spec.volume()->source;
  SafePath dir = host_->paths.GetPodVolumeDir(pod->uid(), GetPluginName(), spec.name());
  return std::unique_ptr<Mounter>(
      std::make_unique<PayloadMounter>(MounterParts{.host = *host_,
                                                    .plugin = *this,
                                                    .source = source,
                                                    .default_mode = DefaultMode(source),
                                                    .pod = std::move(pod),
                                                    .dir = std::move(dir),
                                                    .wrapped = std::move(wrapped),
                                                    .wrapped_unmounter = std::move(unmounter)}));
}

Result<std::unique_ptr<Unmounter>> PayloadVolumePlugin::NewUnmounter(const SpecName& spec,
                                                                     const PodUid& pod) {
  const VolumeSource backing = EmptyDirVolumeSource{.medium = BackingMedium(), .size_limit = {}};
  ASSIGN_OR_RETURN(auto wrapped, wrapper_volumes_->NewWrapperUnmounter(spec, backing, pod));
  SafePath dir = host_->paths.GetPodVolumeDir(pod, GetPluginName(), spec);
  return std::unique_ptr<Unmounter>(
      std::make_unique<PayloadUnmounter>(*host_, *this, pod, std::move(dir), std::move(wrapped)));
}

Result<ReconstructedVolume> PayloadVolumePlugin::ConstructVolumeSpec(const SpecName& spec,
                                                                     const SafePath&,
                                                                     const CallOptions&) {
  return ReconstructedVolume{VolumeSpec::FromVolume(PodVolume{spec.str(), SourceFromName(spec)})};
}

}  // namespace volumed
