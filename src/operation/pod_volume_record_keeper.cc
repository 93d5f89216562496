#include <utility>

#include "operation/volume_record_keeper.h"

namespace volumed {

std::vector<PodVolumeRecord> VolumeRecordKeeper::FindOfPod(const PodUid& pod) const {
  std::vector<PodVolumeRecord> found;
  const MutexLock lock(mu_);
  for (auto it = entries_.lower_bound({pod, SpecName()});
       it != entries_.end() && it->first.pod == pod; ++it) {
    if (!it->second.gone) found.push_back(it->second.record);
  }
  return found;
}

std::vector<PodVolumeRecord> VolumeRecordKeeper::FindOfDevice(
    const UniqueVolumeName& device) const {
  std::vector<PodVolumeRecord> found;
  const MutexLock lock(mu_);
  for (const PodVolumeKey& key : KeysOf(device.str())) {
    const Entry& entry = entries_.at(key);
    if (!entry.gone) found.push_back(entry.record);
  }
  return found;
}

Status VolumeRecordKeeper::ForgetPod(const PodUid& pod) {
  std::vector<PodVolumeKey> leftover;
  {
    const MutexLock lock(mu_);
    for (auto it = entries_.lower_bound({pod, SpecName()});
         it != entries_.end() && it->first.pod == pod; ++it) {
      if (!it->second.gone) {
        return Error::NotApplied(Code::kFailedPrecondition,
                                 "volume \"" + it->first.spec.str() + "\" is still " +
                                     std::string(VolumeStateName(it->second.record.state)));
      }
      leftover.push_back(it->first);
    }
  }
  for (const PodVolumeKey& key : leftover) {
    RETURN_IF_ERROR(
        store_.Remove(kPodVolumeRecordKind, RecordKey(key), kPodVolumeRecordDurability));
    const MutexLock lock(mu_);
    EraseEntry(key);
  }
  return OkStatus();
}

}  // namespace volumed
