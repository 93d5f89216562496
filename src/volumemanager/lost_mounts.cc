#include "volumemanager/lost_mounts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "volume/unique_name.h"
#include "volumemanager/found_devices.h"
#include "volumemanager/found_unrecorded.h"
#include "volumemanager/reconstructor.h"

namespace volumed {

bool AddWithoutRecord(const KubeletPaths::PodVolume& volume,
                      const std::map<PodVolumeKey, FoundVolume>& constructed,
                      ActualStateOfWorld& actual) {
  const PodVolumeKey key{volume.pod, volume.spec};
  if (actual.FindVolume(key) != nullptr) return false;
  ActualVolume& added =
      actual.AddReconstructed(key, volume.plugin, VolumeState::kNotSetUp, true, volume.is_block);
  if (const auto of = constructed.find(key); of != constructed.end()) {
    actual.SetUniqueName(key, of->second.unique_name);
    added.has_device = of->second.has_device;  // so that it is removed after the volume
    added.constructed = of->second.spec;
    added.driver_domain = of->second.driver_domain;
  }
  return true;
}

void LostMounts::Restore(const FoundAtStart& found, const ReconstructResult& result) {
  auto text = result.unknown_mount_texts.begin();  // of the pods' mounts, then of the devices'
  for (const KubeletPaths::PodVolume& volume : result.unknown_mounts) {
    const PodVolumeKey key{volume.pod, volume.spec};
    of_pods_.emplace(key, OfPod{volume, *text++});
    const auto of = found.constructed.find(key);
    if (of != found.constructed.end()) constructed_.insert(*of);
  }
  for (const KubeletPaths::DeviceMount& device : result.unknown_device_mounts) {
    devices_.push_back({device, *text++});
  }
  if (!of_pods_.empty()) {
    for (const auto& [mount_point, fs_type] : found.mounts_at) {
      const auto volume = paths_.ParsePodVolume(mount_point);
      if (!volume) continue;
      const auto lost = of_pods_.find({volume->pod, volume->spec});
      if (lost != of_pods_.end()) lost->second.mount_points.insert(mount_point);
    }
  }
  restored_ = true;
  const std::set<std::string> gone = std::exchange(gone_while_loading_, {});
  MountsGone({gone.begin(), gone.end()});
}

void LostMounts::MountsGone(const std::vector<std::string>& mount_points) {
  if (!restored_) gone_while_loading_.insert(mount_points.begin(), mount_points.end());
  if (of_pods_.empty()) return;
  for (const std::string& mount_point : mount_points) {
    const auto volume = paths_.ParsePodVolume(mount_point);
    if (!volume) continue;
    const auto lost = of_pods_.find({volume->pod, volume->spec});
    if (lost != of_pods_.end()) lost->second.mount_points.erase(mount_point);
  }
}

void LostMounts::SetUp(const PodVolumeKey& volume) {
  constructed_.erase(volume);
  of_pods_.erase(volume);
}

void LostMounts::TakeUp(const PodUid& pod) {
  for (auto at = of_pods_.lower_bound({pod, SpecName()});
       at != of_pods_.end() && at->first.pod == pod;) {
    const OfPod& lost = at->second;
    // What but a container's part of a volume shows has no directory of a plugin.
    const bool is_left = lost.mount_points.empty() && !lost.volume.plugin.empty();
    if (!is_left) {
      ++at;
      continue;
    }
    AddWithoutRecord(lost.volume, constructed_, actual_);
    constructed_.erase(at->first);
    at = of_pods_.erase(at);
  }
}

bool LostMounts::IsOnRecord(const KubeletPaths::DeviceMount& device) const {
  const ActualDevice* const now =
      actual_.devices().Find(GetUniqueVolumeName(device.plugin, device.volume.str()));
  return now != nullptr && MayBeAtItsPlace(*now) &&
         now->device_mount_path == DevicePlaceOf(device, paths_);
}

std::vector<std::string> LostMounts::Describe(
    const std::function<bool(const std::string& place)>& is_mounted) const {
  std::vector<std::string> texts;
  const auto any_is_mounted = [&is_mounted](const std::vector<std::string>& places) {
    return std::any_of(places.begin(), places.end(), is_mounted);
  };
  for (const auto& [key, lost] : of_pods_) {
    const ActualVolume* const now = actual_.FindVolume(key);
    const bool is_on_record = now != nullptr && MayBePresent(*now);
    if (is_on_record || !any_is_mounted(MountPlacesOf(lost.volume, paths_))) continue;
    texts.push_back(lost.text);
  }
  for (const Device& device : devices_) {
    if (IsOnRecord(device.mount) || !any_is_mounted(MountPlacesOf(device.mount, paths_))) continue;
    texts.push_back(device.text);
  }
  return texts;
}

}  // namespace volumed
