#include "plugins/downward_api.h"

#include <optional>
#include <utility>
#include <variant>

#include "plugins/empty_dir.h"

namespace volumed {

std::string DownwardApiPlugin::BackingMedium() const { return kMediumMemory; }

bool DownwardApiPlugin::IsMine(const VolumeSource& source) const {
  return std::holds_alternative<DownwardApiVolumeSource>(source);
}

std::string DownwardApiPlugin::VolumeName(const SpecName& spec, const VolumeSource&) const {
  return spec.str();
}

int32_t DownwardApiPlugin::DefaultMode(const VolumeSource& source) const {
  return std::get<DownwardApiVolumeSource>(source).default_mode;
}

VolumeSource DownwardApiPlugin::SourceFromName(const SpecName&) const {
  return DownwardApiVolumeSource();
}

Result<CollectedPayload> DownwardApiPlugin::Collect(const PayloadContext& context,
                                                    const VolumeSource& source) const {
  const auto& typed = std::get<DownwardApiVolumeSource>(source);
  ASSIGN_OR_RETURN(Payload files, CollectDownwardApi(context, typed.items));
  return CollectedPayload{std::move(files), std::nullopt};
}

}  // namespace volumed
