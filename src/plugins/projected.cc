#include "plugins/projected.h"

#include <variant>

#include "plugins/empty_dir.h"

namespace volumed {

std::string ProjectedPlugin::BackingMedium() const { return kMediumMemory; }

bool ProjectedPlugin::IsMine(const VolumeSource& source) const {
  return std::holds_alternative<ProjectedVolumeSource>(source);
}

std::string ProjectedPlugin::VolumeName(const SpecName& spec, const VolumeSource&) const {
  return spec.str();
}

int32_t ProjectedPlugin::DefaultMode(const VolumeSource& source) const {
  return std::get<ProjectedVolumeSource>(source).default_mode;
}

VolumeSource ProjectedPlugin::SourceFromName(const SpecName&) const {
  return ProjectedVolumeSource();
}

Result<CollectedPayload> ProjectedPlugin::Collect(const PayloadContext& context,
                                                  const VolumeSource& source) const {
  return CollectProjected(context, std::get<ProjectedVolumeSource>(source));
}

void ProjectedPlugin::Forget(const PodUid& pod) { host_->tokens.DeleteServiceAccountTokens(pod); }

}  // namespace volumed
