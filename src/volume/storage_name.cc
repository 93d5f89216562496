#include "volume/storage_name.h"

#include "base/strings.h"

namespace volumed {
namespace {

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

}  // namespace

std::optional<StorageName> StorageNameOf(const VolumeSpec& spec) {
  if (const auto* nfs = spec.SourceAs<NfsVolumeSource>()) {
    return StorageName{nfs->path, nfs->server};
  }
  std::optional<std::string> path;
  if (const auto* host = spec.SourceAs<HostPathVolumeSource>()) path = CleanPath(host->path);
  if (const auto* local = spec.SourceAs<LocalVolumeSource>()) path = CleanPath(local->path);
  if (!path) return std::nullopt;
  return StorageName{*std::move(path)};
}

}  // namespace volumed
