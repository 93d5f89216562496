// The agent's records of pods, volumes, devices and holds as values, and their way into and out of
// the record store's rows. No field holds a secret: volumes and pods are kept as references.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
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
// Of a device's. 2 adds what is known of its attachment: a program that does not know of it would
// take a volume that is attached for one that is gone. A row of version 1 is of a volume that was
// not attached by the agent.
inline constexpr uint32_t kDeviceRecordVersion = 2;

// A reboot voids the mounts; and that the volume may exist at all is in the pod's record, synced.
inline constexpr Durability kPodVolumeRecordDurability = Durability::kProcess;
// A device's row may hold the intent of a format, which nobody may ever doubt.
inline constexpr Durability kDeviceRecordDurability = Durability::kPowerLoss;
inline constexpr Durability kPodRecordDurability = Durability::kPowerLoss;
// Data of a claim must never be given to another one.
inline constexpr Durability kClaimBindingRecordDurability = Durability::kPowerLoss;
// What was made is told by nothing else, and must be found again.
inline constexpr Durability kProvisionRecordDurability = Durability::kPowerLoss;
// Processes and cgroups do not outlive a boot.
inline constexpr Durability kHoldRecordDurability = Durability::kProcess;

// By which a new agent knows that a volume is as it is wanted, without asking the kernel.
struct PublishedContent {
  std::string mac{};                     // published_content.h; "": that is not known
  std::string fs_type{};                 // that was mounted for it: "tmpfs"; "": none
  std::optional<Freshness> freshness{};  // of the tokens in it
  friend bool operator==(const PublishedContent&, const PublishedContent&) = default;
};

// Written by the operation layer alone. Key: "<pod uid>/<spec name>".
struct PodVolumeRecord {
  struct SubPath {
    std::string container;
    int index = 0;
    friend bool operator==(const SubPath&, const SubPath&) = default;
  };

  PodVolumeKey key;
  std::string pod_namespace;
  std::string pod_name;
  // Of a static pod: as its manifest names it, without the node's name. "": it is none, or by an
  // older program.
  std::string pod_base_name;
  std::string plugin_name;
  std::string fault_domain;
  VolumeState state = VolumeState::kNotSetUp;
  bool uncertain = false;
  BootId boot_id;
  std::string volume_json;         // volume_snapshot.h; "" for a volume found without a record
  int64_t started_at_unix_ms = 0;  // of the call of this state
  uint64_t attempt = 0;            // the call's number, never used twice; tells a late answer
  std::vector<SubPath> sub_paths;
  UniqueVolumeName unique_name;  // of a persistent volume; else empty
  bool has_device = false;       // it is bound from the device of that name
  bool is_block = false;         // the pod has the device itself
  PublishedContent published{};  // by the last set-up that succeeded, while nothing has begun since
  // What the pod was given of the node's storage; of the boot of boot_id alone. A later set-up adds
  // to it, for the pod may have either.
  GivenStorage storage{};
  friend bool operator==(const PodVolumeRecord&, const PodVolumeRecord&) = default;
};

// That the volume has a filesystem, or that one was begun: what FormatIntents keeps.
struct FormatRecord {
  DeviceIdentity device{};
  std::string fs_type{};
  std::string fs_uuid{};
  bool finished = false;
  BootId boot_id{};  // in which it was begun
  friend bool operator==(const FormatRecord&, const FormatRecord&) = default;
};

// The block device that a device mount was made from, as the mount table had it: the number is its
// filesystem's. Kept while it is unmounted, so that a new agent still asks whether it is let go of.
struct MountedSource {
  std::string path{};
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  friend bool operator==(const MountedSource&, const MountedSource&) = default;
};

// The block device that pods were given as it is. From the first of them to the last it must be the
// same one.
struct MappedDeviceRecord {
  DeviceIdentity device{};  // without a UUID
  std::string path{};       // of its node
  BootId boot_id{};         // in which it was last identified
  friend bool operator==(const MappedDeviceRecord&, const MappedDeviceRecord&) = default;
};

// Written by the operation layer alone. Key: the unique volume name.
struct DeviceRecord {
  UniqueVolumeName key;
  std::string plugin_name;
  SpecName spec;
  std::string device_mount_path;
  std::string fault_domain;
  // A volume that needs no attach begins, and ends, as attached; another one as detached.
  VolumeState state = VolumeState::kAttached;
  bool uncertain = false;
  BootId boot_id;
  std::string volume_json;
  int64_t started_at_unix_ms = 0;
  uint64_t attempt = 0;
  std::optional<FormatRecord> format;
  std::optional<MountedSource> source;
  // A block volume's: nothing is mounted, and device_mount_path is its global map directory.
  bool is_block = false;
  std::optional<MappedDeviceRecord> mapped;
  int64_t size_bytes = 0;    // that it has, as far as is proven; 0: not known
  int64_t target_bytes = 0;  // that it is being made as large as, or was to be; 0: nothing is meant
  bool attachable = false;   // the agent attaches it, and detaches it
  std::string device_path;   // on the node, as Attach or WaitForAttach answered it in this boot
  std::string limit_key;     // of the plugin's attach limits: "storage-limits-..."; "": has none
  friend bool operator==(const DeviceRecord&, const DeviceRecord&) = default;
};

// Its row, if there is one, is left for what it tells of a filesystem.
bool IsGone(const DeviceRecord& record);

// Written by the volume manager, removed by RemovePod. Key: the pod's uid.
struct PodRecord {
  PodUid uid{};
  std::string ns{};
  std::string name{};
  std::string source{};  // that has it
  bool terminating = false;
  int64_t terminating_since_unix_ms = 0;
  int64_t deletion_grace_seconds = 0;
  std::string pod_json{};
  std::string reason{};             // of an eviction: why it leaves
  std::string file{};               // of its source; "" in a record of the former release
  bool left_source = false;         // it had left its source when it was last written
  int64_t known_since_unix_ms = 0;  // when an agent first had it; 0 in a record of a former release
  friend bool operator==(const PodRecord&, const PodRecord&) = default;
};

// Which claim has a persistent volume. Written by the volume manager. Key: the volume's name.
struct ClaimBindingRecord {
  ClaimBinding binding{};
  std::string volume_json{};  // the PersistentVolume
  bool deleted = false;       // its storage is gone
  // Of the claim that it is bound to: in place of its object's status, for as long.
  std::optional<ClaimResize> resize{};
  // For whose generic ephemeral volume the claim was made, and with which it ends; else empty.
  PodUid pod_uid{};
  friend bool operator==(const ClaimBindingRecord&, const ClaimBindingRecord&) = default;
};

// kProvisioning: the volume may be there, wholly or in part, and nobody has used it.
enum class ProvisionState { kProvisioning, kProvisioned };

// A volume that this node makes, or has made, for a claim. Written by the volume manager. Key: the
// volume's name.
struct ProvisionRecord {
  std::string volume_name{};
  ClaimKey claim{};
  std::string claim_uid{};
  std::string plugin_name{};
  ProvisionState state = ProvisionState::kProvisioning;
  std::string volume_json{};  // the PersistentVolume: as planned, then as it was made
  friend bool operator==(const ProvisionRecord&, const ProvisionRecord&) = default;
};

// Key: "<pod uid>/pid/<pid>" or "<pod uid>/cgroup/<cgroup>".
struct HoldRecord {
  PodUid pod{};
  BootId boot_id{};
  int64_t pid = 0;  // 0: a cgroup
  uint64_t pid_start_time = 0;
  std::string cgroup{};
  friend bool operator==(const HoldRecord&, const HoldRecord&) = default;
};

// All functions: Threads: any. Blocks: never.

// Whether what a claim has depends on such rows: with one that cannot be read, nothing new may be
// decided about any claim.
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

// Errors, not applied, all reasons to set the row aside and leave its paths alone: DataLoss when it
// is unreadable, has an unknown state, or belongs under another key; FailedPrecondition when a
// later program wrote it; InvalidArgument for a row of another kind.
Result<PodVolumeRecord> DecodePodVolumeRecord(const Record& row);
Result<DeviceRecord> DecodeDeviceRecord(const Record& row);
Result<PodRecord> DecodePodRecord(const Record& row);
Result<HoldRecord> DecodeHoldRecord(const Record& row);
Result<ClaimBindingRecord> DecodeClaimBindingRecord(const Record& row);
Result<ProvisionRecord> DecodeProvisionRecord(const Record& row);

// How a row that could not be decoded is shown and counted.
QuarantinedRecord QuarantineOf(const Record& row, const Error& reason);

// The record as a new agent must take it: of another boot, the reboot transition is applied; a call
// that was being made when the last agent ended is uncertain. The state is never assumed to be more
// than the record says; what the kernel has is still to be compared.
PodVolumeRecord AfterRestart(PodVolumeRecord record, const BootId& current_boot,
                             bool* rebooted = nullptr);
// The same of a device. One of another boot that needs no attach may have left its mount point: it
// is as one that was found. Of an attachable one nobody knows whether it is attached, nor under
// which path.
DeviceRecord AfterRestart(DeviceRecord record, const BootId& current_boot);

}  // namespace volumed
