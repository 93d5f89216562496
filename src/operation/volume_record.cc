#include "operation/volume_record.h"

#include <optional>
#include <utility>

#include "operation/given_place.h"
#include "operation/object_record.h"
#include "operation/record_codec.h"
#include "operation/record_rows.h"
#include "operation/recorded_volume.h"

namespace volumed {
namespace {

// On the ladder of a volume on the node; else on one of a volume of a pod.
bool IsDeviceState(VolumeState state) {
  switch (state) {
    case VolumeState::kNotSetUp:
    case VolumeState::kSettingUp:
    case VolumeState::kSetUp:
    case VolumeState::kTearingDown:
    case VolumeState::kMapping:
    case VolumeState::kMapped:
    case VolumeState::kUnmapping:
      return false;
    case VolumeState::kDetached:
    case VolumeState::kAttaching:
    case VolumeState::kAttached:
    case VolumeState::kMountingDevice:
    case VolumeState::kDeviceMounted:
    case VolumeState::kUnmountingDevice:
    case VolumeState::kDetaching:
    case VolumeState::kExpanding:
      return true;
  }
  __builtin_unreachable();
}

// What a restart of the agent, or of the node, makes of a state.
template <typename T>
void ApplyRestart(T& record, const BootId& current_boot) {
  if (record.boot_id == current_boot) {
    record.uncertain = record.uncertain || IsInCall(record.state);
    return;
  }
  const std::optional<Transition> row = Next(record.state, VolumeEvent::kReboot);
  // Every state has one: the table's own assertion sees to it. Without: not more certain.
  if (row) record.state = row->to;
  record.uncertain = record.uncertain || !row || row->uncertain;
  record.boot_id = current_boot;
}

// Somebody outside of the node may have done something about the volume, which a reboot does not
// undo.
bool IsDrivers(const DeviceRecord& record) {
  return record.attachable || record.attach_way != AttachWay::kNotKnown ||
         record.staged != StagedState::kNotKnown || record.attach_in_doubt ||
         !record.publish_context.empty() || !record.node_id.empty() || !record.limit_key.empty() ||
         !record.before_growth.empty();
}

bool IsKnown(VolumeState state) {
  return VolumeStateFromNumber(static_cast<int>(state)).has_value();
}

template <typename State>
bool IsUpTo(State last, State state) {
  return static_cast<int>(state) >= 0 && state <= last;
}

template <typename State>
Error NoSuchState(const Record& row, State state, const std::string& of) {
  return UnreadableRow(row, "has state " + std::to_string(static_cast<int>(state)) + ", which no " +
                                of + " can have");
}

// A path that does not lie below its root would be taken for another one.
Status CheckRecordedPlace(const Record& row, const std::optional<SafePath>& place,
                          const std::string& path) {
  if (!place || (CheckGivenPlace(*place).ok() && place->Display() == path)) return OkStatus();
  return UnreadableRow(
      row, "has the place \"" + path + "\", which does not lie below \"" + place->root + "\"");
}

ClaimResizeRow ResizeRowOf(const ClaimResize& resize) {
  const auto text = [](const std::optional<Quantity>& amount) {
    return amount ? amount->String() : "";
  };
  return {resize, resize.capacity.String(), text(resize.allocated), text(resize.volume_capacity)};
}

Result<ClaimResize> ResizeOfRow(ClaimResizeRow row) {
  ASSIGN_OR_RETURN(row.resize.capacity, Quantity::Parse(row.capacity));
  if (!row.allocated.empty()) {
    ASSIGN_OR_RETURN(row.resize.allocated, Quantity::Parse(row.allocated));
  }
  if (!row.volume_capacity.empty()) {
    ASSIGN_OR_RETURN(row.resize.volume_capacity, Quantity::Parse(row.volume_capacity));
  }
  return std::move(row.resize);
}

}  // namespace

std::string RecordKey(const PodVolumeKey& key) { return key.ToString(); }

std::string RecordKey(const UniqueVolumeName& device) { return device.str(); }

std::string RecordKey(const HoldRecord& hold) {
  return hold.pod.str() +
         (hold.pid != 0 ? "/pid/" + std::to_string(hold.pid) : "/cgroup/" + hold.cgroup);
}

Record EncodeRecord(const PodVolumeRecord& record) {
  return EncodeRow(kPodVolumeRecordKind, RecordKey(record.key), record,
                   record.place_root.empty() ? kVolumeRecordVersion : kGivenPlaceRecordVersion);
}

Record EncodeRecord(const DeviceRecord& record) {
  return EncodeRow(kDeviceRecordKind, RecordKey(record.key), record,
                   record.place_root.empty() ? kDeviceRecordVersion : kGivenPlaceRecordVersion);
}

Record EncodeRecord(const PodRecord& record) {
  return EncodeRow(kPodRecordKind, record.uid.str(), record);
}

Record EncodeRecord(const HoldRecord& record) {
  return EncodeRow(kHoldRecordKind, RecordKey(record), record);
}

Record EncodeRecord(const ClaimBindingRecord& record) {
  ClaimBindingRow row{record, std::nullopt};
  if (record.resize) row.resize = ResizeRowOf(*record.resize);
  return EncodeRow(kClaimBindingRecordKind, record.binding.volume_name, row);
}

Record EncodeRecord(const ProvisionRecord& record) {
  return EncodeRow(kProvisionRecordKind, record.volume_name, record);
}

Result<PodVolumeRecord> DecodePodVolumeRecord(const Record& row) {
  ASSIGN_OR_RETURN(PodVolumeRecord record,
                   ParseRow<PodVolumeRecord>(row, kPodVolumeRecordKind, kGivenPlaceRecordVersion));
  if (!IsKnown(record.state) || IsDeviceState(record.state)) {
    return NoSuchState(row, record.state, "volume of a pod");
  }
  RETURN_IF_ERROR(CheckRecordedPlace(row, GivenPlaceOf(record), record.place));
  if (!record.published.freshness()) record.published.tokens = {};
  const bool is_named = !record.key.pod.empty() && !record.key.spec.empty();
  RETURN_IF_ERROR(BelongsUnder(RecordKey(record.key), row, is_named));
  return record;
}

Result<DeviceRecord> DecodeDeviceRecord(const Record& row) {
  ASSIGN_OR_RETURN(DeviceRecord record,
                   ParseRow<DeviceRecord>(row, kDeviceRecordKind, kGivenPlaceRecordVersion));
  if (!IsKnown(record.state) || !IsDeviceState(record.state)) {
    return NoSuchState(row, record.state, "device of a volume");
  }
  RETURN_IF_ERROR(CheckRecordedPlace(row, GivenPlaceOf(record), record.device_mount_path));
  const bool is_named = !record.key.empty() && !record.spec.empty();
  RETURN_IF_ERROR(BelongsUnder(RecordKey(record.key), row, is_named));
  return record;
}

Result<PodRecord> DecodePodRecord(const Record& row) {
  ASSIGN_OR_RETURN(PodRecord record, ParseRow<PodRecord>(row, kPodRecordKind));
  RETURN_IF_ERROR(BelongsUnder(record.uid.str(), row, !record.uid.empty()));
  return record;
}

Result<HoldRecord> DecodeHoldRecord(const Record& row) {
  ASSIGN_OR_RETURN(HoldRecord record, ParseRow<HoldRecord>(row, kHoldRecordKind));
  if (record.pod.empty() || (record.pid != 0) != record.cgroup.empty()) {
    return UnreadableRow(row, "must name a pod, and either a pid or a cgroup");
  }
  RETURN_IF_ERROR(BelongsUnder(RecordKey(record), row));
  return record;
}

Result<ClaimBindingRecord> DecodeClaimBindingRecord(const Record& row) {
  ASSIGN_OR_RETURN(ClaimBindingRow read, ParseRow<ClaimBindingRow>(row, kClaimBindingRecordKind));
  ClaimBindingRecord& record = read.record;
  if (!IsUpTo(BindingState::kReclaimed, record.binding.state)) {
    return NoSuchState(row, record.binding.state, "binding");
  }
  if (read.resize) {
    Result<ClaimResize> resize = ResizeOfRow(std::move(*read.resize));
    if (!resize.ok()) return UnreadableRow(row, resize.error().message());
    record.resize = std::move(*resize);
  }
  const std::string& name = record.binding.volume_name;
  RETURN_IF_ERROR(BelongsUnder(name, row, !name.empty()));
  return std::move(record);
}

Result<ProvisionRecord> DecodeProvisionRecord(const Record& row) {
  ASSIGN_OR_RETURN(ProvisionRecord record, ParseRow<ProvisionRecord>(row, kProvisionRecordKind));
  if (!IsUpTo(ProvisionState::kProvisioned, record.state)) {
    return NoSuchState(row, record.state, "volume");
  }
  RETURN_IF_ERROR(BelongsUnder(record.volume_name, row, !record.volume_name.empty()));
  if (DecodePersistentVolume(record.volume_json) == nullptr) {
    return UnreadableRow(row, "has no readable PersistentVolume");
  }
  return record;
}

bool IsAboutClaims(const std::string& kind) {
  return kind == kClaimBindingRecordKind || kind == kProvisionRecordKind ||
         kind == kObjectUidRecordKind || kind == kKnownObjectRecordKind ||
         kind == kDeletedObjectRecordKind || kind == kLostRowsRecordKind;
}

QuarantinedRecord QuarantineOf(const Record& row, const Error& reason) {
  return {row.kind, row.key, reason.message(), /*key_is_right=*/true};
}

PodVolumeRecord AfterRestart(PodVolumeRecord record, const BootId& current_boot, bool* rebooted) {
  const bool is_another = record.boot_id != current_boot;
  if (rebooted != nullptr) *rebooted = is_another;
  if (is_another) {
    record.published = {};
    record.storage = {};
  }
  ApplyRestart(record, current_boot);
  return record;
}

bool IsGone(const DeviceRecord& record) {
  return record.state == RestingState(record.attachable) && !record.uncertain;
}

bool HasDeviceSetUp(const DeviceRecord& record) {
  const bool is_set_up = record.state == VolumeState::kDeviceMounted && !record.uncertain;
  return is_set_up || record.state == VolumeState::kExpanding;
}

bool OutlivesDevice(const DeviceRecord& record) {
  return record.format.has_value() || !record.only_pod.empty();
}

Durability DurabilityOf(const DeviceRecord* before, const DeviceRecord& after) {
  const DeviceRecord none;
  const DeviceRecord& was = before != nullptr ? *before : none;
  const bool says_the_same =
      // Of another one only the row says which directories the agent has made for it.
      !after.place_root.empty() && !IsDrivers(was) && !IsDrivers(after) &&
      was.format == after.format && was.only_pod == after.only_pod &&
      // Of a row that nobody had, the size is found again by whoever mounts the volume.
      (before == nullptr ||
       (was.size_bytes == after.size_bytes && was.target_bytes == after.target_bytes));
  return says_the_same ? Durability::kProcess : kDeviceRecordDurability;
}

DeviceRecord AfterRestart(DeviceRecord record, const BootId& current_boot) {
  const bool is_another = record.boot_id != current_boot;
  // Numbers and paths of devices are a boot's own.
  if (is_another) {
    record.source.reset();
    record.device_path.clear();
    record.before_growth.clear();
  }
  ApplyRestart(record, current_boot);
  if (is_another && record.attachable && record.state == VolumeState::kAttached) {
    record.rest_of_mount = true;
  }
  if (!record.attachable && record.state == VolumeState::kAttached && record.uncertain) {
    if (const auto found = Next(record.state, VolumeEvent::kFound)) record.state = found->to;
  }
  return record;
}

}  // namespace volumed
