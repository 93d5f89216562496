// virtioFs: a directory of the machine on which this node runs as a guest, shared by its tag.
// Kubernetes has no such source. Source: kernel Documentation/filesystems/virtiofs.rst.
#pragma once

#include <memory>
#include <string>

#include "plugins/plain_volume_plugin.h"

namespace volumed {

inline constexpr char kVirtioFsPluginName[] = "volumed.io/virtio-fs";

// Each pod has a mount of its own; nothing is attached and no ownership is changed. The volumes of
// one tag hang together, with the daemon that shares the directory: FaultDomain() names the tag.
class VirtioFsPlugin final : public PlainVolumePlugin {
 public:
  std::string GetPluginName() const override { return kVirtioFsPluginName; }
  // The tag.
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override;
  bool CanSupport(const VolumeSpec& spec) const override;
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec& spec,
                                              const VolumeTarget& target) override;
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName& spec, const PodUid& pod) override;
  // The spec has the tag of the mount table if the volume is mounted; otherwise the volume's name.
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName& spec, const SafePath& volume_path,
                                                  const CallOptions& call) override;
  std::string FaultDomain(const VolumeSpec& spec) const override;
};

}  // namespace volumed
