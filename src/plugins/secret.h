// secret: the keys of a Secret as files on a tmpfs.
// Source: kubernetes pkg/volume/secret/secret.go@v1.36.2.
#pragma once

#include <string>

#include "plugins/payload_volume.h"

namespace volumed {

inline constexpr char kSecretPluginName[] = "kubernetes.io/secret";

// The Secret is one of the pod's namespace, of any type, and its files lie in memory alone. A
// volume is named as its Secret. What is found after a restart does not tell its Secret: the name
// of the volume stands for it.
class SecretPlugin final : public PayloadVolumePlugin {
 public:
  std::string GetPluginName() const override { return kSecretPluginName; }
  std::string BackingMedium() const override;
  // Errors: those of CollectSecret. The answer has no freshness: only the object says when it is
  // old.
  Result<CollectedPayload> Collect(const PayloadContext& context,
                                   const VolumeSource& source) const override;

 protected:
  bool IsMine(const VolumeSource& source) const override;
  std::string KindWithArticle() const override { return "a Secret"; }
  std::string VolumeName(const SpecName& spec, const VolumeSource& source) const override;
  int32_t DefaultMode(const VolumeSource& source) const override;
  VolumeSource SourceFromName(const SpecName& spec) const override;
};

}  // namespace volumed
