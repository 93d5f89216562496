// downwardAPI: fields of the pod as files on a tmpfs.
// Source: kubernetes pkg/volume/downwardapi/downwardapi.go@v1.36.2.
#pragma once

#include <string>

#include "plugins/payload_volume.h"

namespace volumed {

inline constexpr char kDownwardApiPluginName[] = "kubernetes.io/downward-api";

class DownwardApiPlugin final : public PayloadVolumePlugin {
 public:
  std::string GetPluginName() const override { return kDownwardApiPluginName; }
  std::string BackingMedium() const override;
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
