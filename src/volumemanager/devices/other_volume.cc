#include "volumemanager/devices/other_volume.h"

#include <algorithm>
#include <variant>

namespace volumed {

bool IsThereForAnother(const ActualDevice& device, const WantedVolume& wanted, bool used) {
  if (!MayBeAtItsPlace(device)) return false;
  if (device.is_block != wanted.is_block) return true;
  // Under which name a device was found that is on no record is a guess.
  if (used || device.unrecorded || device.spec == wanted.spec.name()) return false;
  return device.is_block || !IsMounted(device);
}

bool HasToLeaveFirst(const DesiredStateOfWorld& desired, const ActualStateOfWorld& actual,
                     const UniqueVolumeName& name) {
  const ActualDevice* device = actual.devices().Find(name);
  const std::set<PodUid>& users = desired.UsersOf(name);
  if (device == nullptr || users.empty()) return false;
  const bool used = !actual.UsersOf(name).empty();
  return std::all_of(users.begin(), users.end(), [&](const PodUid& pod) {
    return IsThereForAnother(*device, *desired.FindUse(pod, name), used);
  });
}

std::string StillThereText(const ActualDevice& device) {
  const std::string place =
      device.device_mount_path.empty() ? "" : " at " + device.device_mount_path;
  return "the volume is still " + std::string(VolumeStateName(device.state)) + place +
         " for volume " + device.spec.str() + (device.is_block ? ", a block volume" : "") +
         ", and has to leave that place first";
}

std::string OtherFsTypeText(const VolumeSpec& wanted, const PersistentVolume& there) {
  const auto* const own = wanted.SourceAs<CsiPersistentVolumeSource>();
  const auto* const other = std::get_if<CsiPersistentVolumeSource>(&there.spec.source);
  if (own == nullptr || other == nullptr || own->fs_type.empty() || other->fs_type.empty() ||
      own->fs_type == other->fs_type) {
    return "";
  }
  return "volume " + wanted.name().str() + " asks for fsType " + own->fs_type +
         ", and has what PersistentVolume " + there.metadata.name +
         " of the same storage asks for, which was mounted first: " + other->fs_type;
}

}  // namespace volumed
