// configMap: the keys of a ConfigMap as files on the agent's disk.
// Source: kubernetes pkg/volume/configmap/configmap.go@v1.36.2.
#pragma once

#include <string>

#include "plugins/payload_volume.h"

namespace volumed {

inline constexpr char kConfigMapPluginName[] = "kubernetes.io/configmap";

// The ConfigMap is one of the pod's namespace, and its files lie on an emptyDir without a medium. A
// volume is named "<volume>/<ConfigMap>". What is found after a restart does not tell its
// ConfigMap: the name of the volume stands for it.
class ConfigMapPlugin final : public PayloadVolumePlugin {
 public:
  std::string GetPluginName() const override { return kConfigMapPluginName; }
  std::string BackingMedium() const override;
  // Errors: those of CollectConfigMap. The answer has no freshness: only the object says when it is
  // old.
  Result<CollectedPayload> Collect(const PayloadContext& context,
                                   const VolumeSource& source) const override;

 protected:
  bool IsMine(const VolumeSource& source) const override;
  std::string KindWithArticle() const override { return "a ConfigMap"; }
  std::string VolumeName(const SpecName& spec, const VolumeSource& source) const override;
  int32_t DefaultMode(const VolumeSource& source) const override;
  VolumeSource SourceFromName(const SpecName& spec) const override;
};

}  // namespace volumed
