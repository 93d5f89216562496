#include "kube/volume_sources.h"

#include <type_traits>

namespace volumed {
namespace {

template <typename Source>
std::string KindOfSource(const Source& source) {
  if constexpr (std::is_same_v<Source, RemovedVolumeSource>) {
    return source.kind;
  } else {
    return Source::kKind;
  }
}

}  // namespace

std::string VolumeSourceKind(const VolumeSource& source) {
  return std::visit([](const auto& one) { return KindOfSource(one); }, source);
}

std::string VolumeSourceKind(const PersistentVolumeSource& source) {
  return std::visit([](const auto& one) { return KindOfSource(one); }, source);
}

ObjectNames ObjectsNamedBy(const VolumeSource& source) {
  ObjectNames names;
  std::visit(
      [&names](const auto& one) {
        using Source = std::decay_t<decltype(one)>;
        if constexpr (Source::kFacts.objects == SourceObjects::kNamed) AddObjectsOf(one, names);
      },
      source);
  return names;
}

void AddObjectsOf(const ProjectedVolumeSource& source, ObjectNames& names) {
  for (const VolumeProjection& projection : source.sources) {
    if (const auto* secret = std::get_if<SecretProjection>(&projection)) {
      names.secrets.push_back(secret->name);
    } else if (const auto* config_map = std::get_if<ConfigMapProjection>(&projection)) {
      names.config_maps.push_back(config_map->name);
    }
  }
}

}  // namespace volumed
