#include "operation/volume_record.h"

#include <utility>

#include "operation/object_record.h"
#include "operation/record_codec.h"
#include "operation/recorded_volume.h"
#include "volume_record.pb.h"

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

// What tells a device from others is the same in every message that has it; the UUID is not kept.
template <typename Message>
void WriteIdentity(const DeviceIdentity& device, Message& to) {
  to.set_size_bytes(device.size_bytes);
  to.set_device_major(device.device_major);
  to.set_device_minor(device.device_minor);
  to.set_disk_sequence(device.disk_sequence);
  to.set_stable_id(device.stable_id);
}

template <typename Message>
DeviceIdentity ReadIdentity(const Message& from) {
  return {.size_bytes = from.size_bytes(),
          .device_major = from.device_major(),
          .device_minor = from.device_minor(),
          .disk_sequence = from.disk_sequence(),
          .stable_id = from.stable_id(),
          .uuid = ""};
}

}  // namespace

std::string RecordKey(const PodVolumeKey& key) { return key.ToString(); }

std::string RecordKey(const UniqueVolumeName& device) { return device.str(); }

std::string RecordKey(const HoldRecord& hold) {
  return hold.pod.str() +
         (hold.pid != 0 ? "/pid/" + std::to_string(hold.pid) : "/cgroup/" + hold.cgroup);
}

Record EncodeRecord(const PodVolumeRecord& record) {
  record::PodVolumeRecord message;
  message.set_pod_uid(record.key.pod.str());
  message.set_pod_namespace(record.pod_namespace);
  message.set_pod_name(record.pod_name);
  message.set_pod_base_name(record.pod_base_name);
  message.set_spec_name(record.key.spec.str());
  message.set_plugin_name(record.plugin_name);
  message.set_state(static_cast<record::VolumeState>(record.state));
  message.set_uncertain(record.uncertain);
  message.set_boot_id(record.boot_id.str());
  message.set_volume_json(record.volume_json);
  message.set_started_at_unix_ms(record.started_at_unix_ms);
  message.set_attempt(record.attempt);
  for (const PodVolumeRecord::SubPath& sub_path : record.sub_paths) {
    record::SubPath* added = message.add_sub_paths();
    added->set_container(sub_path.container);
    added->set_index(sub_path.index);
  }
  message.set_fault_domain(record.fault_domain);
  message.set_unique_name(record.unique_name.str());
  message.set_has_device(record.has_device);
  message.set_is_block(record.is_block);
  message.set_content_mac(record.published.mac);
  message.set_content_fs_type(record.published.fs_type);
  if (const std::optional<Freshness>& fresh = record.published.freshness) {
    message.set_fresh_from_unix_ms(fresh->from_unix_ms);
    message.set_fresh_until_unix_ms(fresh->until_unix_ms);
  }
  for (const std::string& key : record.storage.own) message.add_storage_own_keys(key);
  for (const std::string& key : record.storage.within) message.add_storage_within_keys(key);
  for (const StorageObject& object : record.storage.objects) {
    record::StorageObjectRecord& to = *message.add_storage_objects();
    to.set_fs_type(object.fs_type);
    to.set_fs_uuid(object.fs_uuid);
    to.set_inode(object.inode);
    to.set_handle(object.handle);
  }
  return EncodeRow(kPodVolumeRecordKind, RecordKey(record.key), message);
}

Record EncodeRecord(const DeviceRecord& record) {
  record::DeviceRecord message;
  message.set_unique_name(record.key.str());
  message.set_plugin_name(record.plugin_name);
  message.set_spec_name(record.spec.str());
  message.set_device_mount_path(record.device_mount_path);
  message.set_fault_domain(record.fault_domain);
  message.set_state(static_cast<record::VolumeState>(record.state));
  message.set_uncertain(record.uncertain);
  message.set_boot_id(record.boot_id.str());
  message.set_volume_json(record.volume_json);
  message.set_started_at_unix_ms(record.started_at_unix_ms);
  message.set_attempt(record.attempt);
  if (record.format) {
    record::FormatIntent* format = message.mutable_format();
    format->set_fs_type(record.format->fs_type);
    format->set_fs_uuid(record.format->fs_uuid);
    format->set_finished(record.format->finished);
    format->set_boot_id(record.format->boot_id.str());
    WriteIdentity(record.format->device, *format);
  }
  message.set_is_block(record.is_block);
  if (record.mapped) {
    record::MappedDevice* mapped = message.mutable_mapped();
    mapped->set_path(record.mapped->path);
    mapped->set_boot_id(record.mapped->boot_id.str());
    WriteIdentity(record.mapped->device, *mapped);
  }
  if (record.source) {
    message.mutable_source()->set_path(record.source->path);
    message.mutable_source()->set_device_major(record.source->device_major);
    message.mutable_source()->set_device_minor(record.source->device_minor);
  }
  message.set_size_bytes(record.size_bytes);
  message.set_target_bytes(record.target_bytes);
  message.set_attachable(record.attachable);
  message.set_device_path(record.device_path);
  message.set_limit_key(record.limit_key);
  return EncodeRow(kDeviceRecordKind, RecordKey(record.key), message, kDeviceRecordVersion);
}

Record EncodeRecord(const PodRecord& record) {
  record::PodRecord message;
  message.set_uid(record.uid.str());
  message.set_namespace_(record.ns);
  message.set_name(record.name);
  message.set_source(record.source);
  message.set_terminating(record.terminating);
  message.set_terminating_since_unix_ms(record.terminating_since_unix_ms);
  message.set_deletion_grace_seconds(record.deletion_grace_seconds);
  message.set_pod_json(record.pod_json);
  message.set_reason(record.reason);
  message.set_file(record.file);
  message.set_left_source(record.left_source);
  message.set_known_since_unix_ms(record.known_since_unix_ms);
  return EncodeRow(kPodRecordKind, record.uid.str(), message);
}

Record EncodeRecord(const HoldRecord& record) {
  record::HoldRecord message;
  message.set_pod_uid(record.pod.str());
  message.set_boot_id(record.boot_id.str());
  message.set_pid(record.pid);
  message.set_pid_start_time(record.pid_start_time);
  message.set_cgroup(record.cgroup);
  return EncodeRow(kHoldRecordKind, RecordKey(record), message);
}

Result<PodVolumeRecord> DecodePodVolumeRecord(const Record& row) {
  ASSIGN_OR_RETURN(const record::PodVolumeRecord message,
                   ParseRow<record::PodVolumeRecord>(row, kPodVolumeRecordKind));
  const std::optional<VolumeState> state = VolumeStateFromNumber(static_cast<int>(message.state()));
  if (!state || IsDeviceState(*state)) {
    return UnreadableRow(row, "has state " + std::to_string(static_cast<int>(message.state())) +
                                  ", which no volume of a pod can have");
  }
  PodVolumeRecord record;
  record.key = {PodUid(message.pod_uid()), SpecName(message.spec_name())};
  record.pod_namespace = message.pod_namespace();
  record.pod_name = message.pod_name();
  record.pod_base_name = message.pod_base_name();
  record.plugin_name = message.plugin_name();
  record.fault_domain = message.fault_domain();
  record.state = *state;
  record.uncertain = message.uncertain();
  record.boot_id = BootId(message.boot_id());
  record.volume_json = message.volume_json();
  record.started_at_unix_ms = message.started_at_unix_ms();
  record.attempt = message.attempt();
  record.unique_name = UniqueVolumeName(message.unique_name());
  record.has_device = message.has_device();
  record.is_block = message.is_block();
  record.published.mac = message.content_mac();
  record.published.fs_type = message.content_fs_type();
  if (message.fresh_until_unix_ms() != 0) {
    record.published.freshness =
        Freshness{message.fresh_from_unix_ms(), message.fresh_until_unix_ms()};
  }
  record.storage.own.assign(message.storage_own_keys().begin(), message.storage_own_keys().end());
  record.storage.within.assign(message.storage_within_keys().begin(),
                               message.storage_within_keys().end());
  for (const record::StorageObjectRecord& from : message.storage_objects()) {
    record.storage.objects.push_back({from.fs_type(), from.fs_uuid(), from.inode(), from.handle()});
  }
  for (const record::SubPath& sub_path : message.sub_paths()) {
    record.sub_paths.push_back({sub_path.container(), sub_path.index()});
  }
  if (record.key.pod.empty() || record.key.spec.empty() || RecordKey(record.key) != row.key) {
    return UnreadableRow(row, "belongs under the key \"" + RecordKey(record.key) + "\"");
  }
  return record;
}

Result<DeviceRecord> DecodeDeviceRecord(const Record& row) {
  ASSIGN_OR_RETURN(const record::DeviceRecord message,
                   ParseRow<record::DeviceRecord>(row, kDeviceRecordKind, kDeviceRecordVersion));
  const std::optional<VolumeState> state = VolumeStateFromNumber(static_cast<int>(message.state()));
  if (!state || !IsDeviceState(*state)) {
    return UnreadableRow(row, "has state " + std::to_string(static_cast<int>(message.state())) +
                                  ", which no device of a volume can have");
  }
  DeviceRecord record;
  record.key = UniqueVolumeName(message.unique_name());
  record.plugin_name = message.plugin_name();
  record.spec = SpecName(message.spec_name());
  record.device_mount_path = message.device_mount_path();
  record.fault_domain = message.fault_domain();
  record.state = *state;
  record.uncertain = message.uncertain();
  record.boot_id = BootId(message.boot_id());
  record.volume_json = message.volume_json();
  record.started_at_unix_ms = message.started_at_unix_ms();
  record.attempt = message.attempt();
  record.size_bytes = message.size_bytes();
  record.target_bytes = message.target_bytes();
  if (message.has_format()) {
    const record::FormatIntent& format = message.format();
    record.format = FormatRecord{.device = ReadIdentity(format),
                                 .fs_type = format.fs_type(),
                                 .fs_uuid = format.fs_uuid(),
                                 .finished = format.finished(),
                                 .boot_id = BootId(format.boot_id())};
  }
  if (message.has_source()) {
    const record::MountedSource& source = message.source();
    record.source = MountedSource{source.path(), source.device_major(), source.device_minor()};
  }
  record.is_block = message.is_block();
  if (message.has_mapped()) {
    const record::MappedDevice& mapped = message.mapped();
    record.mapped =
        MappedDeviceRecord{ReadIdentity(mapped), mapped.path(), BootId(mapped.boot_id())};
  }
  record.attachable = message.attachable();
  record.device_path = message.device_path();
  record.limit_key = message.limit_key();
  if (record.key.empty() || record.spec.empty() || RecordKey(record.key) != row.key) {
    return UnreadableRow(row, "belongs under the key \"" + RecordKey(record.key) + "\"");
  }
  return record;
}

Result<PodRecord> DecodePodRecord(const Record& row) {
  ASSIGN_OR_RETURN(const record::PodRecord message,
                   ParseRow<record::PodRecord>(row, kPodRecordKind));
  PodRecord record;
  record.uid = PodUid(message.uid());
  record.ns = message.namespace_();
  record.name = message.name();
  record.source = message.source();
  record.terminating = message.terminating();
  record.terminating_since_unix_ms = message.terminating_since_unix_ms();
  record.deletion_grace_seconds = message.deletion_grace_seconds();
  record.pod_json = message.pod_json();
  record.file = message.file();
  record.left_source = message.left_source();
  record.known_since_unix_ms = message.known_since_unix_ms();
  record.reason = message.reason();
  if (record.uid.empty() || record.uid.str() != row.key) {
    return UnreadableRow(row, "belongs under the key \"" + record.uid.str() + "\"");
  }
  return record;
}

Result<HoldRecord> DecodeHoldRecord(const Record& row) {
  ASSIGN_OR_RETURN(const record::HoldRecord message,
                   ParseRow<record::HoldRecord>(row, kHoldRecordKind));
  HoldRecord record;
  record.pod = PodUid(message.pod_uid());
  record.boot_id = BootId(message.boot_id());
  record.pid = message.pid();
  record.pid_start_time = message.pid_start_time();
  record.cgroup = message.cgroup();
  if (record.pod.empty() || (record.pid != 0) != record.cgroup.empty()) {
    return UnreadableRow(row, "must name a pod, and either a pid or a cgroup");
  }
  if (RecordKey(record) != row.key) {
    return UnreadableRow(row, "belongs under the key \"" + RecordKey(record) + "\"");
  }
  return record;
}

namespace {

void Write(const ClaimResize& from, record::ClaimResize& to) {
  to.set_capacity(from.capacity.String());
  if (from.allocated) to.set_allocated(from.allocated->String());
  to.set_status(from.status);
  to.set_seen(from.seen);
  for (const ClaimCondition& condition : from.conditions) {
    record::ClaimCondition& added = *to.add_conditions();
    added.set_type(condition.type);
    added.set_status(condition.status);
    added.set_reason(condition.reason);
    added.set_message(condition.message);
    if (condition.last_transition_unix_millis) {
      added.set_last_transition_unix_ms(*condition.last_transition_unix_millis);
    }
  }
}

Result<ClaimResize> ReadResize(const record::ClaimResize& from) {
  ClaimResize resize;
  ASSIGN_OR_RETURN(resize.capacity, Quantity::Parse(from.capacity()));
  if (!from.allocated().empty()) {
    ASSIGN_OR_RETURN(resize.allocated, Quantity::Parse(from.allocated()));
  }
  resize.status = from.status();
  resize.seen = from.seen();
  for (const record::ClaimCondition& condition : from.conditions()) {
    ClaimCondition added{condition.type(), condition.status(), condition.reason(),
                         condition.message(), std::nullopt};
    if (condition.has_last_transition_unix_ms()) {
      added.last_transition_unix_millis = condition.last_transition_unix_ms();
    }
    resize.conditions.push_back(std::move(added));
  }
  return resize;
}

}  // namespace

Record EncodeRecord(const ClaimBindingRecord& record) {
  record::ClaimBindingRecord message;
  message.set_volume_name(record.binding.volume_name);
  message.set_claim_namespace(record.binding.claim.name_space);
  message.set_claim_name(record.binding.claim.name);
  message.set_claim_uid(record.binding.claim_uid);
  message.set_state(static_cast<record::BindingState>(record.binding.state));
  message.set_volume_json(record.volume_json);
  message.set_deleted(record.deleted);
  if (record.resize) Write(*record.resize, *message.mutable_resize());
  message.set_pod_uid(record.pod_uid.str());
  return EncodeRow(kClaimBindingRecordKind, record.binding.volume_name, message);
}

Result<ClaimBindingRecord> DecodeClaimBindingRecord(const Record& row) {
  ASSIGN_OR_RETURN(const record::ClaimBindingRecord message,
                   ParseRow<record::ClaimBindingRecord>(row, kClaimBindingRecordKind));
  const int state = static_cast<int>(message.state());
  if (state < 0 || state > static_cast<int>(BindingState::kReclaimed)) {
    return UnreadableRow(row, "has state " + std::to_string(state) + ", which no binding can have");
  }
  ClaimBindingRecord record;
  record.binding = {{message.claim_namespace(), message.claim_name()},
                    message.claim_uid(),
                    message.volume_name(),
                    static_cast<BindingState>(state)};
  record.volume_json = message.volume_json();
  record.deleted = message.deleted();
  if (message.has_resize()) {
    const Result<ClaimResize> resize = ReadResize(message.resize());
    if (!resize.ok()) return UnreadableRow(row, resize.error().message());
    record.resize = *resize;
  }
  record.pod_uid = PodUid(message.pod_uid());
  if (record.binding.volume_name.empty() || record.binding.volume_name != row.key) {
    return UnreadableRow(row, "belongs under the key \"" + record.binding.volume_name + "\"");
  }
  return record;
}

bool IsAboutClaims(const std::string& kind) {
  return kind == kClaimBindingRecordKind || kind == kProvisionRecordKind ||
         kind == kObjectUidRecordKind || kind == kKnownObjectRecordKind ||
         kind == kDeletedObjectRecordKind || kind == kLostRowsRecordKind;
}

Record EncodeRecord(const ProvisionRecord& record) {
  record::ProvisionRecord message;
  message.set_volume_name(record.volume_name);
  message.set_claim_namespace(record.claim.name_space);
  message.set_claim_name(record.claim.name);
  message.set_claim_uid(record.claim_uid);
  message.set_plugin_name(record.plugin_name);
  message.set_state(static_cast<record::ProvisionState>(record.state));
  message.set_volume_json(record.volume_json);
  return EncodeRow(kProvisionRecordKind, record.volume_name, message);
}

Result<ProvisionRecord> DecodeProvisionRecord(const Record& row) {
  ASSIGN_OR_RETURN(const record::ProvisionRecord message,
                   ParseRow<record::ProvisionRecord>(row, kProvisionRecordKind));
  const int state = static_cast<int>(message.state());
  if (state < 0 || state > static_cast<int>(ProvisionState::kProvisioned)) {
    return UnreadableRow(row, "has state " + std::to_string(state) + ", which no volume can have");
  }
  ProvisionRecord record;
  record.volume_name = message.volume_name();
  record.claim = {message.claim_namespace(), message.claim_name()};
  record.claim_uid = message.claim_uid();
  record.plugin_name = message.plugin_name();
  record.state = static_cast<ProvisionState>(state);
  record.volume_json = message.volume_json();
  if (record.volume_name.empty() || record.volume_name != row.key) {
    return UnreadableRow(row, "belongs under the key \"" + record.volume_name + "\"");
  }
  if (DecodePersistentVolume(record.volume_json) == nullptr) {
    return UnreadableRow(row, "has no readable PersistentVolume");
  }
  return record;
}

QuarantinedRecord QuarantineOf(const Record& row, const Error& reason) {
  return {row.kind, row.key, reason.message()};
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

DeviceRecord AfterRestart(DeviceRecord record, const BootId& current_boot) {
  // Numbers and paths of devices are a boot's own.
  if (record.boot_id != current_boot) {
    record.source.reset();
    record.device_path.clear();
  }
  ApplyRestart(record, current_boot);
  if (!record.attachable && record.state == VolumeState::kAttached && record.uncertain) {
    if (const auto found = Next(record.state, VolumeEvent::kFound)) record.state = found->to;
  }
  return record;
}

}  // namespace volumed
