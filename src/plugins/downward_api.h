// downwardAPI: fields of the pod as files on a tmpfs.
// Source: kubernetes pkg/volume/downwardapi/downwardapi.go@v1.36.2.
#pragma once

#include <string>

#include "plugins/payload_volume.h"

namespace volumed {

inline constexpr char kDownwardApiPluginName[] = "kubernetes.io/downward-api";

// No object is read: the files come from the pod itself and from the node's allocatable resources.
// A volume has the name that the pod gives it; what is found after a restart has no items.
class DownwardApiPlugin final : public PayloadVolumePlugin {
 public:
  std::string GetPluginName() const override { return kDownwardApiPluginName; }
  std::string BackingMedium() const override;
  // Errors: those of CollectDownwardApi. The answer has no freshness.
  Result<CollectedPayload> Collect(const PayloadContext& context,
                                   const VolumeSource& source) const override;

 protected:
  bool IsMine(const VolumeSource& source) const override;
  std::string KindWithArticle() const override { return "a DownwardAPI"; }
  std::string VolumeName(const SpecName& spec, const VolumeSource& source) const override;
  int32_t DefaultMode(const VolumeSource& source) const override;
  VolumeSource SourceFromName(const SpecName& spec) const override;
};

}  // namespace volumed
