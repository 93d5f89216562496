// projected: several objects, and service account tokens, as files in one directory on a tmpfs.
// Source: kubernetes pkg/volume/projected/projected.go@v1.36.2.
#pragma once

#include <string>

#include "plugins/payload_volume.h"

namespace volumed {

inline constexpr char kProjectedPluginName[] = "kubernetes.io/projected";

// A volume has the name that the pod gives it; what is found after a restart has no sources.
class ProjectedPlugin final : public PayloadVolumePlugin {
 public:
  std::string GetPluginName() const override { return kProjectedPluginName; }
  std::string BackingMedium() const override;
  // Errors: those of CollectProjected. The freshness is that of all tokens in the volume together;
  // without a token there is none.
  Result<CollectedPayload> Collect(const PayloadContext& context,
                                   const VolumeSource& source) const override;
  // Drops all tokens of the pod, also those of its other projected volumes, so that they are not
  // handed out again; whoever still needs one is issued a new one.
  void Forget(const PodUid& pod) override;

 protected:
  bool IsMine(const VolumeSource& source) const override;
  std::string KindWithArticle() const override { return "a projected"; }
  std::string VolumeName(const SpecName& spec, const VolumeSource& source) const override;
  int32_t DefaultMode(const VolumeSource& source) const override;
  VolumeSource SourceFromName(const SpecName& spec) const override;
};

}  // namespace volumed
