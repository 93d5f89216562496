// The agent's records of pods, volumes, devices and holds as values, with the fields of their rows
// in the record store, and their conversion. No field holds a secret: volumes and pods have only
// references. A new field takes a member, and a line with a new number in WireFields().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/wire_enum.h"
#include "kube/objects.h"
#include "operation/volume_operations.h"
#include "operation/volume_state.h"
#include "os/device_requests.h"
#include "os/storage_requests.h"
#include "records/record_store.h"
#include "volume/claim_binding.h"
#include "volume/claim_resize.h"

namespace volumed {

inline constexpr const char* kPodVolumeRecordKind = "pod-volume";
inline constexpr const char* kDeviceRecordKind = "volume-device";
inline constexpr const char* kClaimBindingRecordKind = "claim-binding";
inline constexpr const char* kProvisionRecordKind = "provisioned-volume";
inline constexpr const char* kPodRecordKind = "pod";
inline constexpr const char* kHoldRecordKind = "hold";
// The version of a device's row. Version 2 adds what is known of its attachment: a program that
// does not know that would take an attached volume for one that is gone. A row of version 1 belongs
// to a volume that the agent did not attach.
inline constexpr uint32_t kDeviceRecordVersion = 2;
// The version of the row of a volume or of a device at a place that a CO gave (given_place.h). A
// program that does not know such places would take it for one of a pod that nobody wants any more.
inline constexpr uint32_t kGivenPlaceRecordVersion = 3;

// A reboot voids the mounts anyway; the pod's record, which is synced, says that the volume may
// exist.
inline constexpr Durability kPodVolumeRecordDurability = Durability::kProcess;
// The most that a device's row needs: the intent of a format must never be in doubt. DurabilityOf.
inline constexpr Durability kDeviceRecordDurability = Durability::kPowerLoss;
inline constexpr Durability kPodRecordDurability = Durability::kPowerLoss;
// The data of a claim must never be given to another one.
inline constexpr Durability kClaimBindingRecordDurability = Durability::kPowerLoss;
// Only this row says what was made, and what was made must be found again.
inline constexpr Durability kProvisionRecordDurability = Durability::kPowerLoss;
// Processes and cgroups do not outlive a boot.
inline constexpr Durability kHoldRecordDurability = Durability::kProcess;

// Shows a new agent that a volume is as it is wanted, without a question to the kernel.
struct PublishedContent {
  std::string mac{};      // see published_content.h; "": not known
  std::string fs_type{};  // of its own mount: "tmpfs"; "": none
  Freshness tokens{};     // of the tokens in it; zero if there are none
  std::optional<Freshness> freshness() const {
    return tokens.until_unix_ms == 0 ? std::nullopt : std::optional<Freshness>(tokens);
  }
  friend bool operator==(const PublishedContent&, const PublishedContent&) = default;
};

// A volume of a pod. Only the operation layer writes it. Key: "<pod uid>/<spec name>".
struct PodVolumeRecord {
  // A mount of a part of the volume, by the container and the number of the volumeMount in it.
  struct SubPath {
    std::string container;
    int index = 0;
    static void WireFields(auto& v, auto& m) {
      v.Text(1, m.container);
      v(2, m.index);
    }
    friend bool operator==(const SubPath&, const SubPath&) = default;
  };

  PodVolumeKey key;
  std::string pod_namespace;
  std::string pod_name;
  // For a static pod: the name in its manifest, without the node's name. "" if it is not a static
  // pod, or if an older program wrote the row.
  std::string pod_base_name;
  std::string plugin_name;
  // What the volume may hang with, as its plugin says (CallOptions::domain).
  std::string fault_domain;
  VolumeState state = VolumeState::kNotSetUp;
  // The last call may or may not have had its effect, and what was in call at the end of an agent
  // counts as such.
  bool uncertain = false;
  // The boot in which the state was assigned; of another boot the state falls to what a reboot
  // leaves (AfterRestart).
  BootId boot_id;
  // See recorded_volume.h; "" for a volume that was found without a record.
  std::string volume_json;
  int64_t started_at_unix_ms = 0;  // of the call of this state
  // The call's number, which is never used twice; it shows that an answer is late.
  uint64_t attempt = 0;
  std::vector<SubPath> sub_paths;
  UniqueVolumeName unique_name;  // of a persistent volume; else empty
  bool has_device = false;       // it is bound from the device of that name
  bool is_block = false;         // the pod has the device itself
  // By the last set-up that succeeded, as long as no other call has begun since.
  PublishedContent published{};
  // What the pod was given of the node's storage, in the boot of boot_id. A later set-up adds to
  // it, since the pod may have either.
  GivenStorage storage{};
  // Where the volume is, as an absolute path, and the part of it that can be trusted, if a CO gave
  // the place (GivenPlaceOf); both are empty for a volume of a pod.
  std::string place{};
  std::string place_root{};
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.key.pod);
    v.Text(2, m.pod_namespace);
    v.Text(3, m.pod_name);
    v.Text(4, m.key.spec);
    v.Text(5, m.plugin_name);
    v(6, m.state);
    v(7, m.uncertain);
    v.Text(8, m.boot_id);
    v.Text(9, m.volume_json);
    v(10, m.started_at_unix_ms);
    v(11, m.attempt);
    v(12, m.sub_paths);
    v.Text(13, m.fault_domain);
    v.Text(14, m.unique_name);
    v(15, m.has_device);
    v(16, m.is_block);
    v.Text(17, m.pod_base_name);
    v(18, m.published.mac);
    v(19, m.published.tokens.from_unix_ms);
    v(20, m.published.tokens.until_unix_ms);
    v.Text(21, m.published.fs_type);
    v(22, m.storage.own);
    v(23, m.storage.within);
    v(24, m.storage.objects);
    v(25, m.place);  // a path, whose bytes need not be text
    v(26, m.place_root);
  }
  friend bool operator==(const PodVolumeRecord&, const PodVolumeRecord&) = default;
};

// What tells a device from others has its fields in the message around it. A UUID is not kept.
void DeviceIdentityFields(uint32_t first, auto& v, auto& device) {
  v(first, device.size_bytes);
  v(first + 1, device.device_major);
  v(first + 2, device.device_minor);
  v(first + 3, device.disk_sequence);
  v(first + 4, device.stable_id);  // the device's own bytes, which need not be text
  v.NotSent(device.uuid);
}

// That the volume has a filesystem, or that one was begun; FormatIntents keeps it.
struct FormatRecord {
  DeviceIdentity device{};
  std::string fs_type{};
  std::string fs_uuid{};
  bool finished = false;
  BootId boot_id{};  // the boot in which it was begun
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.fs_type);
    v.Text(2, m.fs_uuid);
    v(3, m.finished);
    v.Text(4, m.boot_id);
    DeviceIdentityFields(5, v, m.device);
  }
  friend bool operator==(const FormatRecord&, const FormatRecord&) = default;
};

// The block device from which a device was mounted, as the mount table had it; the number is the
// filesystem's. It is kept while the device is unmounted, so that a new agent still asks whether
// the device is free.
struct MountedSource {
  std::string path{};
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.device_major);
    v(3, m.device_minor);
  }
  friend bool operator==(const MountedSource&, const MountedSource&) = default;
};

// The block device that pods were given as it is. It must be the same one from the first pod to the
// last.
struct MappedDeviceRecord {
  DeviceIdentity device{};  // without a UUID
  std::string path{};       // of its device node
  BootId boot_id{};         // the boot in which it was last identified
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.path);
    v.Text(2, m.boot_id);
    DeviceIdentityFields(3, v, m.device);
  }
  friend bool operator==(const MappedDeviceRecord&, const MappedDeviceRecord&) = default;
};

// What was mounted at a path of a volume before its driver was first called to make it larger; its
// root is empty if nothing was. It stays what has to be there until the growth has succeeded, or
// until nothing is mounted there before the driver is called to put it there anew: what a growth
// has put in its place is not the volume, however often the driver says so.
struct MountBeforeGrowth {
  std::string path{};
  std::string source{};
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  std::string root{};
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.source);
    v(3, m.device_major);
    v(4, m.device_minor);
    v(5, m.root);
  }
  friend bool operator==(const MountBeforeGrowth&, const MountBeforeGrowth&) = default;
};

// Who has attached a volume that a driver works for: a program of the cluster, as a
// VolumeAttachment object says, or the agent, by a call to the driver's controller. The numbers of
// both enums are stored in records; a number that this program does not know is read as kNotKnown.
enum class AttachWay { kNotKnown, kByObjects, kByController };
constexpr WireEnum<AttachWay> WireEnumOf(AttachWay) {
  return {AttachWay::kByController, AttachWay::kNotKnown};
}

// Whether the driver of a volume was called, or is being called, to stage it on the node, which it
// then has to take back; kNot: it has nothing to be staged.
enum class StagedState { kNotKnown, kStaged, kNot };
constexpr WireEnum<StagedState> WireEnumOf(StagedState) {
  return {StagedState::kNot, StagedState::kNotKnown};
}

// The device of a volume, which the pods of the node share. Only the operation layer writes it.
// Key: the unique volume name.
struct DeviceRecord {
  UniqueVolumeName key;
  std::string plugin_name;
  SpecName spec;
  // Where the device is mounted, as an absolute path, also while it is not; see is_block.
  std::string device_mount_path;
  std::string fault_domain;
  // A volume that needs no attach begins, and ends, as attached; any other one as detached.
  VolumeState state = VolumeState::kAttached;
  bool uncertain = false;
  BootId boot_id;
  // As in PodVolumeRecord.
  std::string volume_json;
  int64_t started_at_unix_ms = 0;
  uint64_t attempt = 0;
  std::optional<FormatRecord> format;
  std::optional<MountedSource> source;
  // A block volume: nothing is mounted, and device_mount_path is its global map directory.
  bool is_block = false;
  std::optional<MappedDeviceRecord> mapped;
  int64_t size_bytes = 0;  // proven; 0: not known
  // The size that it is being given, or was to be given; 0: none.
  int64_t target_bytes = 0;
  bool attachable = false;  // the agent attaches and detaches it
  // On the node, as Attach or WaitForAttach answered in this boot; see IsDevicePath.
  std::string device_path;
  // Of the plugin's attach limits: "storage-limits-..."; "" if it has none.
  std::string limit_key;
  // Of a volume that a driver works for. What attaching it has answered, for the calls that stage
  // and publish it; in clear, as in a VolumeAttachment.
  StringMap publish_context;
  AttachWay attach_way = AttachWay::kNotKnown;
  StagedState staged = StagedState::kNotKnown;
  // The pod that alone may have the volume (ReadWriteOncePod), from before it is set up until it is
  // taken from the pod; else empty. It outlives a reboot, and the device.
  PodUid only_pod;
  // What the driver called this node when the volume was attached by its controller.
  std::string node_id;
  // Something of a mount from before a boot, or of one that was found without a record, may be left
  // at device_mount_path, whatever the state says: the device is unmounted before it is detached.
  bool rest_of_mount = false;
  // Of a volume that a driver works for, and whose growth has begun in the boot of boot_id.
  std::vector<MountBeforeGrowth> before_growth{};
  // The device is being unmounted of which nobody knows whether it is attached: once it is
  // unmounted it is in doubt (kAttached, uncertain), and is attached anew before it is mounted.
  bool attach_in_doubt = false;
  // The part of device_mount_path that can be trusted, if a CO gave that place (GivenPlaceOf); else
  // empty. It stays as long as the row does.
  std::string place_root{};
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.key);
    v.Text(2, m.plugin_name);
    v.Text(3, m.spec);
    v.Text(4, m.device_mount_path);
    v.Text(5, m.fault_domain);
    v(6, m.state);
    v(7, m.uncertain);
    v.Text(8, m.boot_id);
    v.Text(9, m.volume_json);
    v(10, m.started_at_unix_ms);
    v(11, m.attempt);
    v(12, m.format);
    v(13, m.source);
    v(14, m.is_block);
    v(15, m.mapped);
    v(16, m.size_bytes);
    v(17, m.target_bytes);
    v(18, m.attachable);
    v.Text(19, m.device_path);
    v.Text(20, m.limit_key);
    v(21, m.publish_context);
    v(22, m.attach_way);
    v(23, m.staged);
    v.Text(24, m.only_pod);
    v.Text(25, m.node_id);
    v(26, m.rest_of_mount);
    v(27, m.before_growth);
    v(28, m.attach_in_doubt);
    v(29, m.place_root);
  }
  friend bool operator==(const DeviceRecord&, const DeviceRecord&) = default;
};

// Whether the volume has nothing on the node.
bool IsGone(const DeviceRecord& record);
// Whether its device is mounted, or set up, for certain. A growth that was cut off leaves it so; it
// is tried again, but a kubelet publishes the volume before that.
bool HasDeviceSetUp(const DeviceRecord& record);
// Whether the row stays then, for what it says of a filesystem, or of the pod that alone may have
// the volume.
bool OutlivesDevice(const DeviceRecord& record);

// A pod that the node has, or one that a command has deleted and that a source may still have. The
// volume manager writes it, RemovePod removes it. Key: the pod's uid.
struct PodRecord {
  PodUid uid{};
  std::string ns{};
  std::string name{};
  std::string source{};  // the source that has it
  // A command has deleted the pod, or has put another one in its place, or the agent has evicted
  // it: a source that still has it does not bring it back.
  bool terminating = false;
  // When it began to leave, also without a command; 0: it was not leaving.
  int64_t terminating_since_unix_ms = 0;
  // How long a pod without consumers keeps its volumes, from when it began to leave.
  int64_t deletion_grace_seconds = 0;
  // The pod as EncodeObjectJson writes it; "" if it is not known.
  std::string pod_json{};
  // For an eviction: why the pod leaves.
  std::string reason{};
  std::string file{};  // in its source; "" in a record of the former release
  // It had left its source when the record was last written.
  bool left_source = false;
  // When an agent first had it; 0 in a record of the former release.
  int64_t known_since_unix_ms = 0;
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.uid);
    v.Text(2, m.ns);
    v.Text(3, m.name);
    v.Text(4, m.source);
    v(5, m.terminating);
    v(6, m.terminating_since_unix_ms);
    v(7, m.deletion_grace_seconds);
    v.Text(8, m.pod_json);
    v.Text(9, m.reason);
    v.Text(10, m.file);
    v(11, m.left_source);
    v(12, m.known_since_unix_ms);
  }
  friend bool operator==(const PodRecord&, const PodRecord&) = default;
};

// Which claim has a persistent volume. It is written before any pod may use the volume, by the
// volume manager, and goes when nobody has to know of the binding any more. Key: the volume's name.
// Fields: ClaimBindingRow in operation/record_rows.h.
struct ClaimBindingRecord {
  ClaimBinding binding{};
  std::string volume_json{};  // the PersistentVolume
  bool deleted = false;       // its storage is gone
  // The size of the claim to which it is bound; it replaces the status of the claim's object for as
  // long.
  std::optional<ClaimResize> resize{};
  // The pod for whose generic ephemeral volume the claim was made, and with which it ends; else
  // empty.
  PodUid pod_uid{};
  friend bool operator==(const ClaimBindingRecord&, const ClaimBindingRecord&) = default;
};

// kProvisioning: the volume may exist, wholly or in part, and nobody has used it. The numbers are
// stored in records.
enum class ProvisionState { kProvisioning, kProvisioned };

// A volume that this node makes, or has made, for a claim. The volume manager writes it before
// anything is made; it goes when the storage is gone, or when its PersistentVolume was deleted by
// command. Key: the volume's name.
struct ProvisionRecord {
  std::string volume_name{};
  ClaimKey claim{};
  std::string claim_uid{};
  std::string plugin_name{};
  ProvisionState state = ProvisionState::kProvisioning;
  // The PersistentVolume: as planned, and then as it was made.
  std::string volume_json{};
  // Provisioner::PlanText(), so that the same volume is asked for again.
  std::string plan{};
  // The PersistentVolume that it is made a clone of; "": none.
  std::string cloned_volume{};
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.volume_name);
    v.Text(2, m.claim.name_space);
    v.Text(3, m.claim.name);
    v.Text(4, m.claim_uid);
    v.Text(5, m.plugin_name);
    v(6, m.state);
    v.Text(7, m.volume_json);
    v.Text(8, m.plan);
    v.Text(9, m.cloned_volume);
  }
  friend bool operator==(const ProvisionRecord&, const ProvisionRecord&) = default;
};

// A consumer of a pod's mounts: it stays until the process or the cgroup is gone. Key: "<pod
// uid>/pid/<pid>" or "<pod uid>/cgroup/<cgroup>".
struct HoldRecord {
  PodUid pod{};
  BootId boot_id{};
  int64_t pid = 0;              // 0: a cgroup
  uint64_t pid_start_time = 0;  // field 22 of /proc/PID/stat, which tells a reused pid
  std::string cgroup{};
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.pod);
    v.Text(2, m.boot_id);
    v(3, m.pid);
    v(4, m.pid_start_time);
    v.Text(5, m.cgroup);
  }
  friend bool operator==(const HoldRecord&, const HoldRecord&) = default;
};

// All functions: Threads: any. Blocks: never.

// Whether rows of this kind decide what a claim has: if one of them cannot be read, nothing new may
// be decided about any claim.
bool IsAboutClaims(const std::string& kind);

std::string RecordKey(const PodVolumeKey& key);
std::string RecordKey(const UniqueVolumeName& device);
std::string RecordKey(const HoldRecord& hold);

Record EncodeRecord(const PodVolumeRecord& record);
Record EncodeRecord(const DeviceRecord& record);
Record EncodeRecord(const PodRecord& record);
Record EncodeRecord(const HoldRecord& record);
Record EncodeRecord(const ClaimBindingRecord& record);
Record EncodeRecord(const ProvisionRecord& record);

// Errors, not applied, each a reason to set the row aside and leave its paths alone: DataLoss if it
// is unreadable, has an unknown state, or belongs under another key; FailedPrecondition if a later
// program wrote it; InvalidArgument for a row of another kind.
Result<PodVolumeRecord> DecodePodVolumeRecord(const Record& row);
Result<DeviceRecord> DecodeDeviceRecord(const Record& row);
Result<PodRecord> DecodePodRecord(const Record& row);
Result<HoldRecord> DecodeHoldRecord(const Record& row);
Result<ClaimBindingRecord> DecodeClaimBindingRecord(const Record& row);
Result<ProvisionRecord> DecodeProvisionRecord(const Record& row);

// How a row that could not be decoded is shown and counted.
QuarantinedRecord QuarantineOf(const Record& row, const Error& reason);

// The record as a new agent must take it over. If it is of another boot, the reboot transition is
// applied; a call that was being made when the last agent ended is uncertain. The state is never
// assumed to be more than the record says; it has still to be compared with what the kernel has.
PodVolumeRecord AfterRestart(PodVolumeRecord record, const BootId& current_boot,
                             bool* rebooted = nullptr);
// What a change of a device's row has to survive, whether it is written or removed; `before` is
// null if there was no row. A reboot voids the mounts: of a device at a place that a CO gave an
// older row, or none, will do then, as long as both say the same of what a reboot does not void:
// the filesystem, which pod alone has the volume, its size, and all of an attached or a driver's
// volume. Rows are lost from the last one backwards alone: who answers for good after such a change
// syncs it by the next row that is synced.
Durability DurabilityOf(const DeviceRecord* before, const DeviceRecord& after);
// The same for a device. A device of another boot that needs no attach may have left its mount
// point, so it counts as found. Of an attachable device it is not known whether it is attached, nor
// under which path, and something of its mount may be left.
DeviceRecord AfterRestart(DeviceRecord record, const BootId& current_boot);

}  // namespace volumed
