#include "volumemanager/found_sub_paths.h"

#include <optional>
#include <string>
#include <string_view>

#include "base/strings.h"

namespace volumed {
namespace {

// The volume whose part is at an absolute path, or below it.
std::optional<PodVolumeKey> VolumeOfSubPath(const std::string& path, const KubeletPaths& paths) {
  const std::optional<PodUid> pod = paths.ParsePod(path);
  if (!pod) return std::nullopt;
  const std::optional<std::string_view> below =
      StripPrefix(path, paths.GetPodVolumeSubpathsDir(*pod).Display() + "/");
  if (!below) return std::nullopt;
  return PodVolumeKey{*pod, SpecName(std::string(below->substr(0, below->find('/'))))};
}

}  // namespace

std::set<PodVolumeKey> FindSubPathsAlone(const MountListing& listing, const KubeletPaths& paths,
                                         const FoundAtStart& found) {
  std::set<PodVolumeKey> alone;
  for (const MountEntry& mount : listing.mounts) {
    if (auto volume = VolumeOfSubPath(mount.mount_point, paths)) alone.insert(*std::move(volume));
  }
  for (const PodVolumeRecord& record : found.volumes) alone.erase(record.key);
  for (const KubeletPaths::PodVolume& volume : found.mounted) {
    if (!volume.is_block) alone.erase({volume.pod, volume.spec});
  }
  return alone;
}

std::vector<KubeletPaths::PodVolume> WithPlugins(
    std::set<PodVolumeKey> volumes, const std::vector<KubeletPaths::PodVolume>& directories) {
  std::vector<KubeletPaths::PodVolume> named;
  for (const KubeletPaths::PodVolume& directory : directories) {
    if (directory.is_block) continue;
    if (volumes.erase({directory.pod, directory.spec}) > 0) named.push_back(directory);
  }
  for (const PodVolumeKey& key : volumes) named.push_back({key.pod, "", key.spec, false});
  return named;
}

}  // namespace volumed
