#include "volumemanager/unknown_mount_texts.h"

#include <set>

#include "base/strings.h"
#include "volumemanager/found_devices.h"
#include "volumemanager/found_unrecorded.h"

namespace volumed {
namespace {

// The mount points at these places and in them. The first place if there is none: a device's node
// that lies there is no mount.
std::string PathsAt(const std::set<std::string>& mount_points,
                    const std::vector<std::string>& places) {
  std::vector<std::string> paths;
  for (const std::string& place : places) {
    if (mount_points.contains(place)) paths.push_back(place);
    const std::string inside = place + "/";
    for (auto at = mount_points.lower_bound(inside);
         at != mount_points.end() && at->starts_with(inside); ++at) {
      paths.push_back(*at);
    }
  }
  return paths.empty() ? places.front() : Join(paths, ", ");
}

// The pods that have a block volume of the device, as far as the paths say it: ", which pod a has".
std::string PodsWith(const FoundAtStart& found, const std::string& place) {
  const auto pods = found.device_pods.find(place);
  if (pods == found.device_pods.end()) return "";
  std::vector<std::string> uids;
  for (const PodUid& pod : pods->second) uids.push_back(pod.str());
  return (uids.size() == 1 ? ", which pod " : ", which pods ") + Join(uids, ", ") +
         (uids.size() == 1 ? " has" : " have");
}

}  // namespace

std::vector<std::string> TextsOfUnknownMounts(
    const FoundAtStart& found, const KubeletPaths& paths,
    const std::vector<KubeletPaths::PodVolume>& of_pods,
    const std::vector<KubeletPaths::DeviceMount>& of_devices) {
  std::vector<std::string> texts;
  if (of_pods.empty() && of_devices.empty()) return texts;
  std::set<std::string> mount_points;
  for (const auto& [mount_point, fs_type] : found.mounts_at) mount_points.insert(mount_point);
  for (const KubeletPaths::PodVolume& mount : of_pods) {
    texts.push_back("volume " + mount.spec.str() + " of pod " + mount.pod.str() + ": " +
                    PathsAt(mount_points, MountPlacesOf(mount, paths)));
  }
  for (const KubeletPaths::DeviceMount& mount : of_devices) {
    texts.push_back("device of volume " + mount.volume.str() + " of " + mount.plugin +
                    PodsWith(found, DevicePlaceOf(mount, paths)) + ": " +
                    PathsAt(mount_points, MountPlacesOf(mount, paths)));
  }
  return texts;
}

}  // namespace volumed
