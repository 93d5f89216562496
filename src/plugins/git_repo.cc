#include "plugins/git_repo.h"

#include <utility>
#include <variant>

#include "metrics/metrics_nil.h"
#include "pluginmgr/wrapper_volumes.h"

namespace volumed {
namespace {

const GitRepoVolumeSource* SourceOf(const VolumeSpec& spec) {
  return spec.volume() == nullptr ? nullptr
                                  : std::get_if<GitRepoVolumeSource>(&spec.volume()->source);
}

Status Refusal() {
  return Error::NotApplied(
      Code::kUnimplemented,
      "git-repo volume plugin has been disabled: git would run as root on a repository of the "
      "pod's "
      "choosing (CVE-2024-10220, CVE-2025-1767); clone into an emptyDir from an init container "
      "instead");
}

class GitRepoMounter final : public Mounter {
 public:
  explicit GitRepoMounter(SafePath dir) : dir_(std::move(dir)) {}

  std::string GetPath() const override { return dir_.Display(); }
  SafePath GetSafePath() const override { return dir_; }
  Attributes GetAttributes() const override {
    return {.read_only = false, .managed = true, .selinux_relabel = true};
  }
  Result<Metrics> GetMetrics(const CallOptions& call) override { return metrics_.GetMetrics(call); }
  Status SetUp(const MounterArgs&) override { return Refusal(); }
  Status SetUpAt(const SafePath&, const MounterArgs&) override { return Refusal(); }

 private:
  const SafePath dir_;
  MetricsNil metrics_;
};

class GitRepoUnmounter final : public Unmounter {
 public:
  GitRepoUnmounter(Kernel& kernel, SafePath dir, SafePath own_marker,
                   std::unique_ptr<Unmounter> wrapped)
      : kernel_(kernel),
        dir_(std::move(dir)),
        own_marker_(std::move(own_marker)),
        wrapped_(std::move(wrapped)) {}

  std::string GetPath() const override { return dir_.Display(); }
  Result<Metrics> GetMetrics(const CallOptions& call) override { return metrics_.GetMetrics(call); }
  Status TearDown(const CallOptions& call) override { return TearDownAt(dir_, call); }
  Status TearDownAt(const SafePath& dir, const CallOptions& call) override {
    RETURN_IF_ERROR(kernel_.Call(RemoveTree{own_marker_}, call));
    return wrapped_->TearDownAt(dir, call);
  }

 private:
  Kernel& kernel_;
  const SafePath dir_;
  const SafePath own_marker_;
  const std::unique_ptr<Unmounter> wrapped_;
  MetricsNil metrics_;
};

}  // namespace

Result<std::string> GitRepoPlugin::GetVolumeName(const VolumeSpec& spec) const {
  const GitRepoVolumeSource* source = SourceOf(spec);
  if (source == nullptr) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "Spec does not reference a Git repo volume type");
  }
  return source->repository + ":" + source->revision + ":" + source->directory;
}

bool GitRepoPlugin::CanSupport(const VolumeSpec& spec) const { return SourceOf(spec) != nullptr; }

Result<std::unique_ptr<Mounter>> GitRepoPlugin::NewMounter(const VolumeSpec& spec,
                                                           const VolumeTarget& target) {
  RETURN_IF_ERROR(GetVolumeName(spec));
  return std::unique_ptr<Mounter>(std::make_unique<GitRepoMounter>(target.place));
}

Result<std::unique_ptr<Unmounter>> GitRepoPlugin::NewUnmounter(const SpecName& spec,
                                                               const PodUid& pod) {
  ASSIGN_OR_RETURN(auto wrapped,
                   wrapper_volumes_->NewWrapperUnmounter(spec, EmptyDirVolumeSource(), pod));
  return std::unique_ptr<Unmounter>(std::make_unique<GitRepoUnmounter>(
      host_->kernel, host_->paths.GetPodVolumeDir(pod, kGitRepoPluginName, spec),
      host_->paths.GetPodPluginDir(pod, kGitRepoPluginName, spec), std::move(wrapped)));
}

Result<ReconstructedVolume> GitRepoPlugin::ConstructVolumeSpec(const SpecName& spec,
                                                               const SafePath&,
                                                               const CallOptions&) {
  return ReconstructedVolume{VolumeSpec::FromVolume(PodVolume{spec.str(), GitRepoVolumeSource()})};
}

}  // namespace volumed
