#include "plugins/payload_volume.h"

#include <utility>
#include <vector>

#include "metrics/metrics_cached.h"
#include "metrics/metrics_du.h"
#include "mounter/volume_ownership.h"
#include "pluginmgr/wrapper_volumes.h"

namespace volumed {
namespace {

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
  std::optional<RemoveVolume> PlanTearDownAt(const SafePath& dir) override {
    plugin_.Forget(pod_);
    return wrapped_->PlanTearDownAt(dir);
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
  std::optional<MetricsPlan> PlanMetrics() override { return metrics_.PlanMetrics(); }
  std::optional<Freshness> freshness() const override { return freshness_; }
  Status SetUp(const MounterArgs& args) override { return SetUpAt(parts_.dir, args); }
  Status SetUpAt(const SafePath& dir, const MounterArgs& args) override;
  Result<std::optional<EnsureVolume>> PlanSetUpAt(const SafePath& dir,
                                                  const MounterArgs& args) override;
  void SetUpDone(const EnsuredVolume& answer) override {
    parts_.wrapped->SetUpDone(answer);
    ObserveOwnership(parts_.host.metrics, parts_.plugin.GetPluginName(), answer.owned_filled_ns);
    freshness_ = planned_freshness_;
  }

 private:
  MounterParts parts_;
  MetricsCached metrics_;
  std::optional<Freshness> planned_freshness_;
  std::optional<Freshness> freshness_;
};

Result<std::optional<EnsureVolume>> PayloadMounter::PlanSetUpAt(const SafePath& dir,
                                                                const MounterArgs& args) {
  const PayloadContext context{.objects = parts_.host.objects,
                               .tokens = parts_.host.tokens,
                               .node = parts_.host.node,
                               .pod = *parts_.pod,
                               .default_mode = parts_.default_mode,
                               .fs_user = args.fs_user,
                               .fs_group = args.fs_group,
                               .issue_tokens = args.issue_tokens};
  ASSIGN_OR_RETURN(CollectedPayload payload, parts_.plugin.Collect(context, parts_.source));
  ASSIGN_OR_RETURN(std::optional<EnsureVolume> effect, parts_.wrapped->PlanSetUpAt(dir, args));
  if (!effect) {
    return Error::NotApplied(Code::kInternal, "the volume that " + parts_.plugin.GetPluginName() +
                                                  " fills cannot be made by one effect");
  }
  effect->payload = VolumePayload{.files = FilesOf(std::move(payload.files)),
                                  .nested_mount_points = args.nested_mount_points,
                                  .is_refresh = args.is_remount};
  planned_freshness_ = payload.freshness;
  return effect;
}

Status PayloadMounter::SetUpAt(const SafePath& dir, const MounterArgs& args) {
  ASSIGN_OR_RETURN(const std::optional<EnsureVolume> effect, PlanSetUpAt(dir, args));
  ASSIGN_OR_RETURN(const EnsuredVolume done, parts_.host.kernel.Call(*effect, args.call));
  SetUpDone(done);
  return OkStatus();
}

}  // namespace

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
                                                                 const VolumeTarget& target) {
  RETURN_IF_ERROR(GetVolumeName(spec));
  if (target.pod == nullptr) return NoPod(KindWithArticle() + " volume", target);
  const VolumeSource backing = EmptyDirVolumeSource{.medium = BackingMedium(), .size_limit = {}};
  ASSIGN_OR_RETURN(auto wrapped, wrapper_volumes_->NewWrapperMounter(spec.name(), backing, target));
  const VolumeSource& source = spec.volume()->source;
  return std::unique_ptr<Mounter>(
      std::make_unique<PayloadMounter>(MounterParts{.host = *host_,
                                                    .plugin = *this,
                                                    .source = source,
                                                    .default_mode = DefaultMode(source),
                                                    .pod = target.pod,
                                                    .dir = target.place,
                                                    .wrapped = std::move(wrapped)}));
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
