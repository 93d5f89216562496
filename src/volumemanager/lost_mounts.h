// LostMounts: what the start found mounted below the root on no record, of pods and devices that
// were on none either, as after lost records. It is left alone as long as it is mounted. Once a
// pod's mount is gone, what the volume has left in the pod's directory leaves with the pod.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "volumehost/kubelet_paths.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/found_at_start.h"

namespace volumed {

struct ReconstructResult;

// Adds a volume that only the kernel or the disk shows, and no record; `constructed` is what
// plugins say of such volumes. False, and no effect, if the pod has a volume of this name.
// REQUIRES: the pod is in `actual`.
bool AddWithoutRecord(const KubeletPaths::PodVolume& volume,
                      const std::map<PodVolumeKey, FoundVolume>& constructed,
                      ActualStateOfWorld& actual);

// Threads: the control thread. Blocks: never. Errors: none.
class LostMounts {
 public:
  // Both outlive this object.
  LostMounts(ActualStateOfWorld& actual, const KubeletPaths& paths)
      : actual_(actual), paths_(paths) {}
  LostMounts(const LostMounts&) = delete;
  LostMounts& operator=(const LostMounts&) = delete;

  // What is on no record of what was found. Called once. REQUIRES: the result has the texts of its
  // unknown mounts.
  void Restore(const FoundAtStart& found, const ReconstructResult& result);

  // Mounts at these paths went, also before Restore(). Costs one look-up for each path.
  void MountsGone(const std::vector<std::string>& mount_points);

  // The volume was set up, so that it is on record: from now on it leaves as all others do.
  void SetUp(const PodVolumeKey& volume);

  // Adds to the actual state those volumes of the pod of which nothing is mounted any more: a new
  // agent would find what they have left as well. Has no effect for all other pods.
  // REQUIRES: the pod is in the actual state.
  void TakeUp(const PodUid& pod);

  // What TextsOfUnknownMounts() said at the start of what is mounted still, and is on no record
  // now. `is_mounted` says whether anything is mounted at or below a path.
  std::vector<std::string> Describe(
      const std::function<bool(const std::string& place)>& is_mounted) const;

 private:
  struct OfPod {
    KubeletPaths::PodVolume volume;
    std::string text;
    std::set<std::string> mount_points = {};  // that are left of those which the start found
  };
  struct Device {
    KubeletPaths::DeviceMount mount;
    std::string text;
  };
  bool IsOnRecord(const KubeletPaths::DeviceMount& device) const;

  ActualStateOfWorld& actual_;
  const KubeletPaths& paths_;
  std::map<PodVolumeKey, OfPod> of_pods_;
  std::map<PodVolumeKey, FoundVolume> constructed_;  // of those
  std::vector<Device> devices_;
  bool restored_ = false;
  std::set<std::string> gone_while_loading_;
};

}  // namespace volumed
