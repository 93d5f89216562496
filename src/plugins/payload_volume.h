// PayloadVolumePlugin: what secret, configMap, downwardAPI and projected have in common: an
// emptyDir filled with files made from objects, replaced as a whole when the objects change.
// Source: kubernetes pkg/volume/{secret,configmap,downwardapi,projected}@v1.36.2.
#pragma once

#include <memory>
#include <string>

#include "pluginmgr/volume_plugin.h"
#include "plugins/payload.h"

namespace volumed {

// Set-up: the objects are read first, so that a missing one has no effect at all; then the
// emptyDir, directories for nested mounts, and the files as one atomic change.
//
// A set-up that fails for the first time takes the empty volume away again. One that fails on a
// volume with content leaves the content as it was. (kubelet tears the volume of a running pod down
// in that case, and its containers see an empty directory.)
class PayloadVolumePlugin : public VolumePlugin {
 public:
  Status Init(PluginContext context) override;
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override;
  bool CanSupport(const VolumeSpec& spec) const override;
  bool RequiresRemount(const VolumeSpec&) const override { return true; }
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec& spec,
                                              const VolumeTarget& target) override;
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName& spec, const PodUid& pod) override;
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName& spec, const SafePath& volume_path,
                                                  const CallOptions& call) override;
  bool SupportsMountOption() const override { return false; }
  bool SupportsSELinuxContextMount(const VolumeSpec&) const override { return false; }
  std::string FaultDomain(const VolumeSpec&) const override { return ""; }

  // What the types differ in.
  // The medium of the backing emptyDir: "" or "Memory".
  virtual std::string BackingMedium() const = 0;
  virtual Result<CollectedPayload> Collect(const PayloadContext& context,
                                           const VolumeSource& source) const = 0;
  // The pod's volume is about to go.
  virtual void Forget(const PodUid&) {}

 protected:
  virtual bool IsMine(const VolumeSource& source) const = 0;
  // As an error text names it: "a Secret".
  virtual std::string KindWithArticle() const = 0;
  virtual std::string VolumeName(const SpecName& spec, const VolumeSource& source) const = 0;
  virtual int32_t DefaultMode(const VolumeSource& source) const = 0;
  // All that can be known of a volume from its name alone.
  virtual VolumeSource SourceFromName(const SpecName& spec) const = 0;

  VolumeHost* host_ = nullptr;
  WrapperVolumes* wrapper_volumes_ = nullptr;
};

}  // namespace volumed
