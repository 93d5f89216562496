#include "plugins/secret.h"

#include <optional>
#include <utility>
#include <variant>

#include "plugins/empty_dir.h"

namespace volumed {

std::string SecretPlugin::BackingMedium() const { return kMediumMemory; }

bool SecretPlugin::IsMine(const VolumeSource& source) const {
  return std::holds_alternative<SecretVolumeSource>(source);
}

std::string SecretPlugin::VolumeName(const SpecName&, const VolumeSource& source) const {
  return std::get<SecretVolumeSource>(source).secret_name;
}

int32_t SecretPlugin::DefaultMode(const VolumeSource& source) const {
  return std::get<SecretVolumeSource>(source).default_mode;
}

VolumeSource SecretPlugin::SourceFromName(const SpecName& spec) const {
  SecretVolumeSource source;
  source.secret_name = spec.str();
  return source;
}

Result<CollectedPayload> SecretPlugin::Collect(const PayloadContext& context,
                                               const VolumeSource& source) const {
  const auto& typed = std::get<SecretVolumeSource>(source);
  ASSIGN_OR_RETURN(Payload files,
                   CollectSecret(context, typed.secret_name, typed.items, typed.optional));
  return CollectedPayload{std::move(files), std::nullopt};
}

}  // namespace volumed
