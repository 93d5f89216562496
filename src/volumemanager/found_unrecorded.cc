#include "volumemanager/found_unrecorded.h"

#include <set>
#include <string>
#include <utility>

#include "volume/unique_name.h"
#include "volumemanager/found_devices.h"

namespace volumed {
namespace {

UnrecordedMount MountOfPod(const KubeletPaths::PodVolume& volume, const KubeletPaths& paths) {
  UnrecordedMount mount;
  mount.plugin = volume.plugin;
  mount.spec = volume.spec;
  mount.pod = volume.pod;
  if (volume.is_block) {
    const SafePath map = paths.GetBlockMapDir(volume.plugin, volume.spec);
    mount.places = {map.Below(volume.pod.str()).Display()};
  } else {
    // A container may have a part of the volume after the whole was unmounted.
    if (!volume.plugin.empty()) {
      mount.places = {paths.GetPodVolumeDir(volume.pod, volume.plugin, volume.spec).Display()};
    }
    mount.places.push_back(
        paths.GetPodVolumeSubpathsDir(volume.pod).Below(volume.spec.str()).Display());
  }
  return mount;
}

}  // namespace

std::vector<UnrecordedMount> FindUnrecordedMounts(const FoundAtStart& found,
                                                  const KubeletPaths& paths) {
  std::vector<UnrecordedMount> mounts;
  std::set<PodVolumeKey> recorded;
  for (const PodVolumeRecord& record : found.volumes) recorded.insert(record.key);
  std::vector<KubeletPaths::PodVolume> volumes = found.mounted;
  volumes.insert(volumes.end(), found.sub_paths_alone.begin(), found.sub_paths_alone.end());
  for (const KubeletPaths::PodVolume& volume : volumes) {
    const PodVolumeKey key{volume.pod, volume.spec};
    if (recorded.contains(key)) continue;
    const auto of = found.constructed.find(key);
    const bool is_known = of != found.constructed.end() && !of->second.unique_name.empty();
    if (!is_known && !found.unnamed.contains(key)) continue;
    mounts.push_back(MountOfPod(volume, paths));
    if (is_known) mounts.back().volume = of->second.unique_name;
  }
  std::set<std::string> recorded_places;
  for (const DeviceRecord& record : found.devices) recorded_places.insert(record.device_mount_path);
  for (const KubeletPaths::DeviceMount& device : found.device_mounts) {
    std::string place = DevicePlaceOf(device, paths);
    if (recorded_places.contains(place)) continue;
    UnrecordedMount mount;
    mount.plugin = device.plugin;
    mount.volume = GetUniqueVolumeName(device.plugin, device.volume.str());
    mount.spec = device.spec.value_or(SpecName());
    mount.places = {std::move(place)};
    mount.is_map = device.is_block;
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

}  // namespace volumed
