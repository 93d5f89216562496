#include "volumemanager/found_unrecorded.h"

#include <map>
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
    mount.is_block = true;
    mount.device_place = map.Display();
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

void AddDevice(const KubeletPaths::DeviceMount& device, const std::string& place,
               std::vector<UnrecordedMount>& mounts) {
  UnrecordedMount mount;
  mount.plugin = device.plugin;
  mount.volume = GetUniqueVolumeName(device.plugin, device.volume.str());
  mount.spec = device.spec.value_or(SpecName());
  mount.is_block = device.is_block;
  mount.device_place = place;
  if (!device.node_place.empty()) {
    mount.places = {device.node_place};
    mounts.push_back(mount);
  }
  mount.is_map = device.is_block;
  mount.places = {place};
  if (!device.pods_place.empty()) mount.places.push_back(device.pods_place);
  mounts.push_back(std::move(mount));
}

// The device is on record, and what this pod has of it is not.
UnrecordedMount LostOf(const DeviceRecord& record, const PodUid& pod,
                       const std::string& pods_place) {
  UnrecordedMount mount;
  mount.plugin = record.plugin_name;
  mount.volume = record.key;
  mount.spec = record.spec;
  mount.pod = pod;
  mount.is_block = true;
  mount.device_place = record.device_mount_path;
  mount.places = {record.device_mount_path + "/" + pod.str()};
  if (!pods_place.empty()) mount.places.push_back(pods_place + "/" + pod.str());
  return mount;
}

using LostBlockVolumes = std::vector<std::pair<const DeviceRecord*, PodUid>>;

LostBlockVolumes LostOfRecordedDevices(const FoundAtStart& found) {
  LostBlockVolumes lost;
  if (found.device_pods.empty()) return lost;
  std::set<PodVolumeKey> recorded;
  for (const PodVolumeRecord& record : found.volumes) recorded.insert(record.key);
  for (const DeviceRecord& record : found.devices) {
    const auto pods = found.device_pods.find(record.device_mount_path);
    if (!record.is_block || pods == found.device_pods.end()) continue;
    for (const PodUid& pod : pods->second) {
      if (!recorded.contains({pod, record.spec})) lost.emplace_back(&record, pod);
    }
  }
  return lost;
}

}  // namespace

std::vector<KubeletPaths::PodVolume> FindLostBlockVolumes(const FoundAtStart& found) {
  std::vector<KubeletPaths::PodVolume> volumes;
  for (const auto& [record, pod] : LostOfRecordedDevices(found)) {
    volumes.push_back({pod, record->plugin_name, record->spec, true});
  }
  return volumes;
}

std::vector<std::string> MountPlacesOf(const KubeletPaths::PodVolume& volume,
                                       const KubeletPaths& paths) {
  return MountOfPod(volume, paths).places;
}

std::vector<std::string> MountPlacesOf(const KubeletPaths::DeviceMount& device,
                                       const KubeletPaths& paths) {
  std::vector<UnrecordedMount> mounts;
  AddDevice(device, DevicePlaceOf(device, paths), mounts);
  std::vector<std::string> places;
  for (const UnrecordedMount& mount : mounts) {
    places.insert(places.end(), mount.places.begin(), mount.places.end());
  }
  return places;
}

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
    mounts.push_back(MountOfPod(volume, paths));
    if (is_known) mounts.back().volume = of->second.unique_name;
    mounts.back().is_pods_own = !is_known && !found.unnamed.contains(key);
  }
  std::set<std::string> recorded_places;
  for (const DeviceRecord& record : found.devices) recorded_places.insert(record.device_mount_path);
  std::map<std::string, std::string> pods_places;  // of devices that are on record
  for (const KubeletPaths::DeviceMount& device : found.device_mounts) {
    const std::string place = DevicePlaceOf(device, paths);
    if (recorded_places.contains(place)) {
      pods_places.emplace(place, device.pods_place);
    } else {
      AddDevice(device, place, mounts);
    }
  }
  for (const auto& [record, pod] : LostOfRecordedDevices(found)) {
    mounts.push_back(LostOf(*record, pod, pods_places[record->device_mount_path]));
  }
  return mounts;
}

}  // namespace volumed
