// hostPath: a path of the node itself, given to a pod as it is.
// Source: kubernetes pkg/volume/hostpath/host_path.go@v1.36.2.
#pragma once

#include <memory>
#include <string>

#include "pluginmgr/volume_plugin.h"

namespace volumed {

inline constexpr char kHostPathPluginName[] = "kubernetes.io/host-path";

// Nothing is mounted and nothing lies below the agent's root: set-up only checks the path's type,
// or makes what is missing (directories 0755, files 0644). Links are followed, as kubelet does. The
// path may lie on a filesystem that hangs: FaultDomain() answers it.
class HostPathPlugin final : public VolumePlugin {
 public:
  Status Init(PluginContext context) override;
  std::string GetPluginName() const override { return kHostPathPluginName; }
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override;
  bool CanSupport(const VolumeSpec& spec) const override;
  bool RequiresRemount(const VolumeSpec&) const override { return false; }
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec& spec, PodPtr pod) override;
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName& spec, const PodUid& pod) override;
  // Nothing on disk tells the path; kubelet answers the volume's name for it, and so do we.
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName& spec, const SafePath& volume_path,
                                                  const CallOptions& call) override;
  bool SupportsMountOption() const override { return false; }
  bool SupportsSELinuxContextMount(const VolumeSpec&) const override { return false; }
  std::string FaultDomain(const VolumeSpec& spec) const override;

 private:
  VolumeHost* host_ = nullptr;
};

}  // namespace volumed
