#include "plugins/config_map.h"

#include <optional>
#include <utility>
#include <variant>

namespace volumed {

std::string ConfigMapPlugin::BackingMedium() const { return ""; }

bool ConfigMapPlugin::IsMine(const VolumeSource& source) const {
  return std::holds_alternative<ConfigMapVolumeSource>(source);
}

std::string ConfigMapPlugin::VolumeName(const SpecName& spec, const VolumeSource& source) const {
  return spec.str() + "/" + std::get<ConfigMapVolumeSource>(source).name;
}

int32_t ConfigMapPlugin::DefaultMode(const VolumeSource& source) const {
  return std::get<ConfigMapVolumeSource>(source).default_mode;
}

VolumeSource ConfigMapPlugin::SourceFromName(const SpecName& spec) const {
  ConfigMapVolumeSource source;
  source.name = spec.str();
  return source;
}

Result<CollectedPayload> ConfigMapPlugin::Collect(const PayloadContext& context,
                                                  const VolumeSource& source) const {
  const auto& typed = std::get<ConfigMapVolumeSource>(source);
  ASSIGN_OR_RETURN(Payload files,
                   CollectConfigMap(context, typed.name, typed.items, typed.optional));
  return CollectedPayload{std::move(files), std::nullopt};
}

}  // namespace volumed
