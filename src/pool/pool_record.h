// The records of pools, of their volumes and of the cuts of these, as values, with the fields of
// their rows and the states that they go through. Only PoolVolumes and Pool write them. A field
// holds no secret.
//
// All functions are pure. Threads: any. Blocks: never.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/wire_fields.h"
#include "kube/object_meta.h"
#include "os/storage_requests.h"
#include "records/record_store.h"

namespace volumed {

inline constexpr const char* kPoolRecordKind = "pool";
inline constexpr const char* kPoolVolumeRecordKind = "pool-volume";
inline constexpr const char* kPoolCutRecordKind = "pool-cut";
// What they say decides which data is whose.
inline constexpr Durability kPoolRecordDurability = Durability::kPowerLoss;

// The numbers of all enums here are stored in records; a number that this program does not know
// makes the row unreadable.
// Of a kStatic one, and of a kExport one, nothing is in the pool: it is a device of the
// administrator's, or an export of an NFS server. Of a kLvm one only the description is in the
// pool's directory.
enum class PoolBackendKind { kNotKnown, kImage, kDirectory, kSubvolume, kStatic, kExport, kLvm };
constexpr WireEnum<PoolBackendKind> WireEnumOf(PoolBackendKind) {
  return {PoolBackendKind::kLvm, PoolBackendKind::kNotKnown};
}
// "image"; "" of kNotKnown.
std::string_view PoolBackendName(PoolBackendKind kind);
// Whether its volumes are files of the pool's own filesystem, in a directory that is bound where
// they are wanted. Others have a device and a filesystem of their own.
bool IsTree(PoolBackendKind kind);
// Whether its volumes are listed in the configuration, and were there before: kStatic and kExport.
bool IsListed(PoolBackendKind kind);
// Nullopt for a name of none that a class can have: kNotKnown has no name, and others are listed.
std::optional<PoolBackendKind> PoolBackendOf(std::string_view name);

// A pool that this agent has used. Key: its name.
struct PoolRecord {
  std::string name{};
  std::string path{};  // of the directory, without links
  std::string uuid{};
  StorageObject root{};  // of the directory
  int64_t created_unix_ms = 0;
  // Volumes or cuts without a row were found in it once: rows alone do not tell whether it has any.
  bool had_lost = false;
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.name);
    v.Text(2, m.path);
    v.Text(3, m.uuid);
    v(4, m.root);
    v(5, m.created_unix_ms);
    v(6, m.had_lost);
  }
  friend bool operator==(const PoolRecord&, const PoolRecord&) = default;
};

// In kMaking, kExpanding and kDeleting a call is being made, or was being made when the agent
// ended: the row is written before its first effect, and again after its last. kNotKnown is no
// state of a row.
enum class PoolVolumeState { kNotKnown, kMaking, kReady, kExpanding, kDeleting };
constexpr WireEnum<PoolVolumeState> WireEnumOf(PoolVolumeState) {
  return {PoolVolumeState::kDeleting, PoolVolumeState::kNotKnown};
}
// A program that passes over the source of a directory would delete it (PoolVolumeRecord::source),
// so the row of one that is not ready has this version.
inline constexpr uint32_t kMovedPoolVolumeVersion = 2;
// "Making"; "" of kNotKnown.
std::string_view PoolVolumeStateName(PoolVolumeState state);
// Intents, which stand for the same call made again too, and the answers to the calls.
enum class PoolVolumeEvent { kMake, kExpand, kDelete, kDone, kNotApplied, kMaybeApplied };

// The state after the event: kNotKnown stands for no row, before it and after it. Nullopt if the
// two cannot meet. A failure leaves every state but one: of a volume that was certainly not made
// the row goes. One that was not grown stays kExpanding, for an earlier call of that may have
// grown it in part.
std::optional<PoolVolumeState> NextState(PoolVolumeState from, PoolVolumeEvent event);

// Which filesystem is on a volume. Empty: it was never mounted, and may be blank.
struct PoolFilesystem {
  std::string type{};
  std::string uuid{};
  // It is a copy whose UUID is to become this one before anything can see it, or has become so:
  // either may be there. Empty: nothing is to be changed.
  std::string new_uuid{};
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.type);
    v.Text(2, m.uuid);
    v.Text(3, m.new_uuid);
  }
  friend bool operator==(const PoolFilesystem&, const PoolFilesystem&) = default;
};

// A node has the volume, or was promised it, by whoever orders the nodes.
struct PoolLease {
  std::string node{};
  bool read_only = false;
  int32_t access_mode = 0;  // the number of a csi.v1 VolumeCapability.AccessMode.Mode
  bool by_stage = false;    // the node took it itself when it staged the volume, and gives it back
  // A controller gave it, and the node has the volume staged: it is the node's own once the
  // controller takes it back.
  bool is_staged = false;
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.node);
    v(2, m.read_only);
    v(3, m.access_mode);
    v(4, m.by_stage);
    v(5, m.is_staged);
  }
  friend bool operator==(const PoolLease&, const PoolLease&) = default;
};

// Why a volume that has the one cannot have the other, which is of another node, too; empty if it
// can: both have to be for several nodes, and only one of them may write if either is for a single
// writer.
std::string WhyNotBeside(const PoolLease& there, const PoolLease& wanted);

// For whom a volume is that a kubelet wants with a pod (an inline volume): no CreateVolume has made
// it, and it ends with its one publication. Empty: it is no such volume.
struct PoolInline {
  std::string target{};       // the path of the publication
  std::string target_root{};  // the configured directory below which that lies
  std::string pod_namespace{};
  std::string pod_name{};
  std::string pod_uid{};
  bool empty() const { return target.empty(); }
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.target);
    v.Text(2, m.target_root);
    v.Text(3, m.pod_namespace);
    v.Text(4, m.pod_name);
    v.Text(5, m.pod_uid);
  }
  friend bool operator==(const PoolInline&, const PoolInline&) = default;
};

// A volume. Key: its id.
struct PoolVolumeRecord {
  std::string id{};
  std::string pool{};
  std::string name{};  // by which whoever asked for it knows it again; unique among all pools
  PoolVolumeState state = PoolVolumeState::kNotKnown;
  PoolBackendKind backend = PoolBackendKind::kNotKnown;
  int64_t capacity_bytes = 0;  // 0 of a kExport one alone
  int64_t target_bytes = 0;    // the size that it is being given; 0: none
  bool is_block = false;
  StringMap parameters{};  // PoolParameters::ToMap(): all, defaults written out
  // PoolTuning, as it was given last for each of its keys; it can be changed.
  StringMap mutable_parameters{};
  // Of its file or directory, or of its logical volume (LogicalVolumeObject); empty until that is
  // known to be made, but for one that is moved.
  StorageObject object{};
  std::string family{};  // id of the first volume of those that share blocks
  PoolFilesystem filesystem{};
  std::vector<PoolLease> leases{};  // one for each node
  bool used = false;                // its content may be somebody's: it was opened at least once
  int64_t created_unix_ms = 0;
  // The sectors of its device, for its whole life, whatever the kernel would choose.
  int64_t block_bytes = 0;
  // What it was made of: the id of a snapshot, or of a volume that was cloned; else both are empty.
  std::string from_snapshot{};
  std::string from_volume{};
  PoolInline inline_use{};
  // Of a kStatic volume: the path of its device, and what that says of itself
  // (DeviceIdentity::stable_id), which need not be UTF-8. Of a kExport one: StaticExport, which is
  // known by its name alone. Of a directory that was moved into the pool: where it was; a volume
  // that is deleted and still has that was never ready: it is moved back there, and nothing of it
  // is deleted.
  std::string source{};
  std::string source_identity{};
  std::vector<std::string> source_options{};
  bool source_read_only = false;
  // By which its directory is bounded and counted on ext4 and xfs. Its owner can give the directory
  // to another one, so that what it has counts only if it is this one. 0: none is on record.
  uint32_t project_id = 0;
  // It was being made by records that were in doubt: what is there may be newer than they are, and
  // somebody's.
  bool doubted = false;
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.id);
    v.Text(2, m.pool);
    v.Text(3, m.name);
    v(4, m.state);
    v(5, m.backend);
    v(6, m.capacity_bytes);
    v(7, m.target_bytes);
    v(8, m.is_block);
    v(10, m.parameters);
    v(11, m.mutable_parameters);
    v(12, m.object);
    v.Text(13, m.source);
    v.Text(14, m.from_snapshot);
    v.Text(15, m.from_volume);
    v.Text(16, m.family);
    v(17, m.filesystem);
    v(18, m.leases);
    v.If(20, m.inline_use, !m.inline_use.empty());
    v(21, m.used);
    v(23, m.created_unix_ms);
    v(24, m.block_bytes);
    v(25, m.source_identity);
    v(26, m.source_options);
    v(27, m.source_read_only);
    v.If(28, m.project_id, m.project_id != 0);
    v.If(29, m.doubted, m.doubted);
  }
  friend bool operator==(const PoolVolumeRecord&, const PoolVolumeRecord&) = default;
};

// kCutting is the intent to cut, and what is found in it after a restart counts for nothing;
// kDiscarding is the intent to take the cut away. kNotKnown is no state of a row.
enum class PoolCutState { kNotKnown, kCutting, kCut, kDiscarding };
constexpr WireEnum<PoolCutState> WireEnumOf(PoolCutState) {
  return {PoolCutState::kDiscarding, PoolCutState::kNotKnown};
}

// What a volume was at one moment. Key: its id.
struct PoolCutRecord {
  std::string id{};
  std::string pool{};
  std::string volume{};
  PoolCutState state = PoolCutState::kNotKnown;
  PoolBackendKind backend = PoolBackendKind::kNotKnown;
  int64_t size_bytes = 0;       // of the volume then
  int64_t allocated_bytes = 0;  // what is promised for it
  int64_t copied_bytes = 0;     // of a cut that is a copy: so much is on the disk for certain
  bool is_copy = false;         // its bytes are copied one after the other
  bool is_block = false;
  PoolFilesystem filesystem{};  // as the source had it
  StorageObject object{};       // as a volume's
  std::string family{};         // likewise
  bool was_frozen = false;
  int64_t cut_unix_ms = 0;
  // Of the device of its volume, and of those that are made of it; 0: kPoolBlockBytes, as an
  // earlier program knew no others.
  int64_t block_bytes = 0;
  // What the source was to be formatted with, of one that was blank: what is made of the cut is,
  // too. Empty: it was not blank, or an earlier program has cut it.
  std::string first_fs_type{};
  // Of a copied device, IdentifiedDevice::writes when it was cut; empty of an earlier program's.
  std::string source_writes{};
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.id);
    v.Text(2, m.pool);
    v.Text(3, m.volume);
    v(4, m.state);
    v(5, m.backend);
    v(6, m.size_bytes);
    v(7, m.allocated_bytes);
    v(8, m.copied_bytes);
    v(9, m.is_copy);
    v(10, m.is_block);
    v(11, m.filesystem);
    v(12, m.object);
    v.Text(13, m.family);
    v(14, m.was_frozen);
    v(15, m.cut_unix_ms);
    v(16, m.block_bytes);
    v.Text(17, m.first_fs_type);
    v.Text(18, m.source_writes);
  }
  friend bool operator==(const PoolCutRecord&, const PoolCutRecord&) = default;
};

// "Cutting"; "" of kNotKnown.
std::string_view PoolCutStateName(PoolCutState state);
// Whether all of its bytes are there, so that volumes can be made of it. Until then nobody is to
// write to its volume.
bool IsWhole(const PoolCutRecord& cut);

// Whether others than its pod's kubelet may do something about the volume. Errors, not applied:
// FailedPrecondition for an inline one, which says whose it is: it comes and goes with its pod, and
// what the pod has in it is nobody else's.
Status CheckNotInline(const PoolVolumeRecord& volume);

// In what the project of its directory differs from the one on record, for people; empty if it does
// not, and if none is on record.
std::string OtherProject(const PoolVolumeRecord& volume, uint32_t project);

Record EncodeRecord(const PoolRecord& record);
Record EncodeRecord(const PoolVolumeRecord& record);
Record EncodeRecord(const PoolCutRecord& record);
// Errors, not applied: as DecodePodVolumeRecord (operation/volume_record.h); DataLoss also for an
// id that is none or is of another object, and for a volume or a cut without a size.
Result<PoolRecord> DecodePoolRecord(const Record& row);
Result<PoolVolumeRecord> DecodePoolVolumeRecord(const Record& row);
Result<PoolCutRecord> DecodePoolCutRecord(const Record& row);

// What the volume, or the cut, is, as JSON: for people, beside its data.
std::string DescriptionOf(const PoolVolumeRecord& record, const std::string& pool_uuid);
std::string DescriptionOf(const PoolCutRecord& record, const std::string& pool_uuid);

}  // namespace volumed
