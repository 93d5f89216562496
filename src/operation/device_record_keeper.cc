#include <algorithm>
#include <set>
#include <utility>

#include "operation/volume_record_keeper.h"

namespace volumed {
namespace {

Error NotInCall(const DeviceRecord& record) {
  return Error::NotApplied(Code::kFailedPrecondition,
                           "volume " + record.key.str() + " is " +
                               std::string(VolumeStateName(record.state)) +
                               ": no call is made that could find out more of it");
}

// As HasDeviceSetUp, whatever is certain of it: whoever asks has looked at that.
bool IsSetUp(VolumeState state) {
  return state == VolumeState::kDeviceMounted || state == VolumeState::kExpanding;
}

Error NotSetUp(const UniqueVolumeName& device, VolumeState state) {
  return Error::NotApplied(Code::kFailedPrecondition,
                           "volume " + device.str() + " is " + std::string(VolumeStateName(state)) +
                               ": its device is not set up, so no pod may have it");
}

Error NotExpanding(const DeviceRecord& record) {
  return Error::NotApplied(Code::kFailedPrecondition,
                           "volume " + record.key.str() + " is " +
                               std::string(VolumeStateName(record.state)) +
                               ": it is not being expanded");
}

Error HadByPod(const PodUid& pod) {
  return Error::NotApplied(Code::kFailedPrecondition,
                           "volume uses the ReadWriteOncePod access mode and is already in use by "
                           "another pod: " +
                               pod.str());
}

}  // namespace

std::string MountPathTrait(const std::string& device_mount_path) {
  return "path:" + device_mount_path;
}

std::string MappedTrait(uint32_t device_major, uint32_t device_minor) {
  return "mapped:" + std::to_string(device_major) + ":" + std::to_string(device_minor);
}

void DeviceRecordKeeper::Restore(DeviceRecord record) {
  if (!record.only_pod.empty()) {
    const MutexLock lock(mu_);
    only_pods_[record.only_pod].insert(record.key);
  }
  RecordKeeper::Restore(std::move(record));
}

bool DeviceRecordKeeper::IsMountPath(const std::string& path) const {
  const MutexLock lock(mu_);
  for (const UniqueVolumeName& device : KeysOf(MountPathTrait(path))) {
    if (!entries_.at(device).gone) return true;
  }
  return false;
}

// In another boot the number may be another device's, as it may once the volume is unmapped.
std::optional<UniqueVolumeName> DeviceRecordKeeper::FindOtherMapped(
    uint32_t device_major, uint32_t device_minor, const UniqueVolumeName& but) const {
  const MutexLock lock(mu_);
  for (const UniqueVolumeName& key : KeysOf(MappedTrait(device_major, device_minor))) {
    const Entry& entry = entries_.at(key);
    const DeviceRecord& record = entry.record;
    const bool is_set_up = IsSetUp(record.state) || record.state == VolumeState::kUnmountingDevice;
    const bool is_of_now = is_set_up && record.mapped->boot_id == record.boot_id;
    if (!entry.gone && key != but && is_of_now) return key;
  }
  return std::nullopt;
}

Status DeviceRecordKeeper::Forget(const UniqueVolumeName& device) {
  const Entry now = EntryOf(device);
  if (!IsGone(now.record)) {
    return Error::NotApplied(
        Code::kFailedPrecondition,
        "volume " + device.str() + " is still " + std::string(VolumeStateName(now.record.state)));
  }
  if (!now.stored) return OkStatus();
  RETURN_IF_ERROR(store_.Remove(kDeviceRecordKind, RecordKey(device), kDeviceRecordDurability));
  const MutexLock lock(mu_);
  EraseEntry(device);
  return OkStatus();
}

Status DeviceRecordKeeper::SetDevicePath(const UniqueVolumeName& device, const std::string& path) {
  Entry next = EntryOf(device);
  if (!IsInCall(next.record.state)) return NotInCall(next.record);
  if (next.record.device_path == path) return OkStatus();
  next.record.device_path = path;
  return Assign(std::move(next), RowEffect::kPut);
}

Status DeviceRecordKeeper::SetAttachment(const UniqueVolumeName& device, AttachWay way,
                                         const std::string& node_id,
                                         const StringMap& publish_context) {
  Entry next = EntryOf(device);
  if (!IsInCall(next.record.state)) return NotInCall(next.record);
  const Entry now = next;
  next.record.attach_way = way;
  next.record.node_id = node_id;
  next.record.publish_context = publish_context;
  if (next.record == now.record) return OkStatus();
  return Assign(std::move(next), RowEffect::kPut);
}

Status DeviceRecordKeeper::SetStaged(const UniqueVolumeName& device, bool staged) {
  Entry next = EntryOf(device);
  if (!IsInCall(next.record.state)) return NotInCall(next.record);
  const StagedState state = staged ? StagedState::kStaged : StagedState::kNot;
  if (next.record.staged == state) return OkStatus();
  next.record.staged = state;
  return Assign(std::move(next), RowEffect::kPut);
}

Status DeviceRecordKeeper::RememberBeforeGrowth(const UniqueVolumeName& device,
                                                const std::vector<MountBeforeGrowth>& places) {
  Entry next = EntryOf(device);
  if (next.record.state != VolumeState::kExpanding) return NotExpanding(next.record);
  std::vector<MountBeforeGrowth>& known = next.record.before_growth;
  const size_t count = known.size();
  for (const MountBeforeGrowth& place : places) {
    const bool is_known =
        std::any_of(known.begin(), known.end(),
                    [&place](const MountBeforeGrowth& there) { return there.path == place.path; });
    if (!is_known) known.push_back(place);
  }
  if (known.size() == count) return OkStatus();
  return Assign(std::move(next), RowEffect::kPut);
}

// A pod's set-up may ask beside another pod's, and within no call about the device.
Status DeviceRecordKeeper::ForgetBeforeGrowth(const UniqueVolumeName& device,
                                              const std::vector<std::string>& paths) {
  const Turn turn(*this, device, IfTaken::kWait);
  Entry next = EntryOf(device);
  const size_t forgotten = std::erase_if(next.record.before_growth, [&](const auto& there) {
    return std::find(paths.begin(), paths.end(), there.path) != paths.end();
  });
  if (forgotten == 0) return OkStatus();
  return Assign(std::move(next), RowEffect::kPut);
}

Status DeviceRecordKeeper::TakeOnlyPod(const UniqueVolumeName& device, const PodUid& pod) {
  Entry next;
  {
    const MutexLock lock(mu_);
    const auto found = entries_.find(device);
    const bool is_known = found != entries_.end() && !found->second.gone;
    if (!is_known || !IsSetUp(found->second.record.state)) {
      return NotSetUp(device, is_known ? found->second.record.state : VolumeState::kDetached);
    }
    next = found->second;
    if (next.record.only_pod == pod) return OkStatus();
    if (!next.record.only_pod.empty()) return HadByPod(next.record.only_pod);
    const auto [first, is_first] = only_pods_begun_.emplace(device, pod);
    if (!is_first) return HadByPod(first->second);
    // Whatever becomes of the write, the row may say it.
    only_pods_[pod].insert(device);
  }
  next.record.only_pod = pod;
  Status taken = Assign(std::move(next), RowEffect::kPut);
  const MutexLock lock(mu_);
  only_pods_begun_.erase(device);
  return taken;
}

Status DeviceRecordKeeper::ReleaseOnlyPod(const UniqueVolumeName& device, const PodUid& pod) {
  Status released = WriteReleased(device, pod);
  if (released.ok() || !CannotBeWritten(released.error())) return released;
  // A disk that takes no writes stops no teardown; the pod's removal writes it.
  LogTolerated(EntryOf(device).record, released.error());
  Entry next = EntryOf(device);
  next.record.only_pod = PodUid();
  return Assign(std::move(next), RowEffect::kNone);
}

Status DeviceRecordKeeper::WriteReleased(const UniqueVolumeName& device, const PodUid& pod) {
  {
    const MutexLock lock(mu_);
    const auto may_have = only_pods_.find(pod);
    if (may_have == only_pods_.end() || !may_have->second.contains(device)) return OkStatus();
  }
  // Whoever removes a pod has no turn at its devices: the state of one whose call begins meanwhile
  // would be written over.
  const Turn turn(*this, device, IfTaken::kWait);
  Entry next = EntryOf(device);
  if (next.in_call) return BeingWritten(device);
  if (next.record.only_pod == pod) next.record.only_pod = PodUid();
  if (next.stored) {
    const bool is_nothing = IsGone(next.record) && !OutlivesDevice(next.record);
    if (is_nothing) next.gone = false;
    RETURN_IF_ERROR(Assign(std::move(next), is_nothing ? RowEffect::kRemove : RowEffect::kPut));
  }
  const MutexLock lock(mu_);
  const auto had = only_pods_.find(pod);
  if (had == only_pods_.end()) return OkStatus();
  had->second.erase(device);
  if (had->second.empty()) only_pods_.erase(had);
  return OkStatus();
}

Status DeviceRecordKeeper::ReleaseOnlyPods(const PodUid& pod) {
  std::set<UniqueVolumeName> devices;
  {
    const MutexLock lock(mu_);
    const auto has = only_pods_.find(pod);
    if (has != only_pods_.end()) devices = has->second;
  }
  for (const UniqueVolumeName& device : devices) RETURN_IF_ERROR(WriteReleased(device, pod));
  return OkStatus();
}

Status DeviceRecordKeeper::SetFormat(const UniqueVolumeName& device,
                                     std::optional<FormatRecord> format) {
  Entry next = EntryOf(device);
  if (next.record.state != VolumeState::kMountingDevice) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "volume " + device.str() + " is " +
                                 std::string(VolumeStateName(next.record.state)) +
                                 ": it is not being mounted, so nothing of it may be formatted");
  }
  if (next.record.format == format) return OkStatus();
  next.record.format = std::move(format);
  return Assign(std::move(next), RowEffect::kPut);
}

Status DeviceRecordKeeper::SetMapped(const UniqueVolumeName& device, MappedDeviceRecord mapped) {
  Entry next = EntryOf(device);
  if (!IsSetUp(next.record.state)) return NotSetUp(device, next.record.state);
  mapped.boot_id = next.record.boot_id;
  mapped.device.uuid.clear();
  if (next.record.mapped == mapped) return OkStatus();
  next.record.mapped = std::move(mapped);
  return Assign(std::move(next), RowEffect::kPut);
}

Status DeviceRecordKeeper::SetSize(const UniqueVolumeName& device, int64_t size_bytes) {
  Entry next = EntryOf(device);
  if (next.record.state != VolumeState::kExpanding) return NotExpanding(next.record);
  next.record.size_bytes = size_bytes;
  next.record.target_bytes = 0;
  next.record.before_growth.clear();
  return Assign(std::move(next), RowEffect::kPut);
}

}  // namespace volumed
