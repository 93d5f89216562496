// gitRepo: set-up is refused; what an earlier agent made can still be torn down.
// Source: kubernetes pkg/volume/git_repo/git_repo.go@v1.36.2.
#pragma once

#include <memory>
#include <string>

#include "pluginmgr/plain_volume_plugin.h"

namespace volumed {

inline constexpr char kGitRepoPluginName[] = "kubernetes.io/git-repo";

// Kubernetes has disabled this driver for good: git, run as root on the node with a repository that
// the pod chooses, executes the repository's hooks (CVE-2024-10220) and reads other pods'
// repositories (CVE-2025-1767).
class GitRepoPlugin final : public PlainVolumePlugin {
 public:
  std::string GetPluginName() const override { return kGitRepoPluginName; }
  // "<repository>:<revision>:<directory>". Errors: InvalidArgument, not applied, if the spec is no
  // gitRepo.
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override;
  bool CanSupport(const VolumeSpec& spec) const override;
  // Returns a mounter whose SetUp has no effect and fails with the reason. The error is
  // Unimplemented, not applied, and says what to do instead.
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec& spec,
                                              const VolumeTarget& target) override;
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName& spec, const PodUid& pod) override;
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName& spec, const SafePath& volume_path,
                                                  const CallOptions& call) override;
};

}  // namespace volumed
