#include "volume/storage_name.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/strings.h"
#include "kube/digest.h"
#include "volume/csi_translation.h"

namespace volumed {
namespace {

constexpr char kInlinePrefix[] = "csi-";

// Absolute, without empty names and ".". With "..", or relative, it is no place: plugins refuse it.
std::optional<std::string> CleanPath(const std::string& path) {
  if (path.empty() || path[0] != '/') return std::nullopt;
  std::string cleaned;
  for (const std::string& name : SplitNonEmpty(path, '/')) {
    if (name == "..") return std::nullopt;
    if (name != ".") cleaned += "/" + name;
  }
  return cleaned.empty() ? "/" : cleaned;
}

template <typename Source>
std::optional<StorageName> NameOf(const Source& source) {
  if constexpr (Source::kFacts.storage == SourceStorage::kOnNode) {
    std::optional<std::string> path = CleanPath(source.path);
    if (path) return StorageName{*std::move(path)};
  } else if constexpr (Source::kFacts.storage == SourceStorage::kOnServer) {
    return StorageName{source.path, source.server};
  } else if constexpr (Source::kFacts.storage == SourceStorage::kOfDriver) {
    return StorageName{.path = source.volume_handle, .driver = source.driver};
  }
  return std::nullopt;
}

template <typename Source>
void AddIfNamed(std::vector<std::string>& kinds) {
  if constexpr (Source::kFacts.storage != SourceStorage::kUnnamed)
    kinds.emplace_back(Source::kKind);
}

template <typename... Sources>
void AddNamed(std::type_identity<std::variant<Sources...>>, std::vector<std::string>& kinds) {
  (AddIfNamed<Sources>(kinds), ...);
}

std::vector<std::string> ListNamedKinds() {
  std::vector<std::string> kinds;
  AddNamed(std::type_identity<PersistentVolumeSource>(), kinds);
  AddNamed(std::type_identity<VolumeSource>(), kinds);
  std::sort(kinds.begin(), kinds.end());
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  return kinds;
}

}  // namespace

std::optional<StorageName> StorageNameOf(const VolumeSpec& spec) {
  const auto name = [](const auto& source) { return NameOf(source); };
  if (const std::optional<Result<VolumeSpec>> translated = TranslateToCsi(spec, "")) {
    if (!translated->ok()) return std::nullopt;
    return std::visit(name, (*translated)->persistent_volume()->spec.source);
  }
  if (spec.volume() != nullptr) return std::visit(name, spec.volume()->source);
  if (spec.persistent_volume() == nullptr) return std::nullopt;
  return std::visit(name, spec.persistent_volume()->spec.source);
}

std::string CsiInlineHandle(const PodUid& pod, const SpecName& spec) {
  return kInlinePrefix + Sha256Hex(pod.str() + spec.str());
}

bool IsLikeCsiInlineHandle(std::string_view handle) {
  return handle.starts_with(kInlinePrefix) && handle.size() == CsiInlineHandle({}, {}).size();
}

std::optional<StorageName> StorageNameInPod(const PodUid& pod, const VolumeSpec& spec) {
  std::optional<StorageName> name = StorageNameOf(spec);
  const auto* const own = spec.SourceAs<CsiVolumeSource>();
  if (name || own == nullptr) return name;
  return StorageName{
      .path = CsiInlineHandle(pod, spec.name()), .server = "", .driver = own->driver};
}

const std::vector<std::string>& KindsWithStorageName() {
  static const std::vector<std::string> kinds = ListNamedKinds();
  return kinds;
}

}  // namespace volumed
