// PayloadVolumePlugin: what secret, configMap, downwardAPI and projected share: an emptyDir with
// files made from objects, which are replaced as a whole when the objects change.
// Source: kubernetes pkg/volume/{secret,configmap,downwardapi,projected}@v1.36.2.
#pragma once

#include <memory>
#include <string>

#include "pluginmgr/plain_volume_plugin.h"
#include "plugins/payload.h"

namespace volumed {

// Set-up reads the objects first, so that a missing object leaves no effect at all. Then it makes
// the emptyDir, the directories for nested mounts, and the files as one atomic change.
//
// If the first set-up fails, the empty volume is removed again. If a later one fails, the volume
// keeps its content. (Kubelet tears down the volume of a running pod in that case, and its
// containers see an empty directory.) The Attributes of a volume are always read-only, and it is
// set up again each time that one of its objects changes (RequiresRemount).
class PayloadVolumePlugin : public PlainVolumePlugin {
 public:
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override;
  bool CanSupport(const VolumeSpec& spec) const override;
  bool RequiresRemount(const VolumeSpec&) const override { return true; }
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec& spec,
                                              const VolumeTarget& target) override;
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName& spec, const PodUid& pod) override;
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName& spec, const SafePath& volume_path,
                                                  const CallOptions& call) override;

  // The following differ between the types.
  //
  // The medium of the emptyDir that is filled: "" for the agent's disk, "Memory" for a tmpfs.
  virtual std::string BackingMedium() const = 0;
  // Makes the files of `source`, which is of the plugin's own kind. It changes nothing on the node.
  // Threads: any. Blocks: never, but for the issue of a token.
  virtual Result<CollectedPayload> Collect(const PayloadContext& context,
                                           const VolumeSource& source) const = 0;
  // Called when the pod's volume is about to be removed, and also when its removal is planned.
  // Threads: any.
  virtual void Forget(const PodUid&) {}

 protected:
  // REQUIRES, of the three below that take a source: it is of the kind that IsMine() accepts.
  virtual bool IsMine(const VolumeSource& source) const = 0;
  // The name for error texts: "a Secret".
  virtual std::string KindWithArticle() const = 0;
  // What GetVolumeName() answers.
  virtual std::string VolumeName(const SpecName& spec, const VolumeSource& source) const = 0;
  // The permission bits of files whose item has none.
  virtual int32_t DefaultMode(const VolumeSource& source) const = 0;
  // The source with all that can be known of a volume from its name alone.
  virtual VolumeSource SourceFromName(const SpecName& spec) const = 0;
};

}  // namespace volumed
