#include "pool/pool_record.h"

#include <nlohmann/json.hpp>

#include "base/printable_text.h"
#include "operation/record_codec.h"
#include "pool/pool_id.h"
#include "pool/static_export.h"

namespace volumed {
namespace {

struct Row {
  PoolVolumeState from;
  PoolVolumeEvent event;
  PoolVolumeState to;
};

constexpr size_t kShownNode = 256;  // bytes of a node's id in a message

constexpr PoolVolumeState kNoRow = PoolVolumeState::kNotKnown;
constexpr Row kRows[] = {
    {kNoRow, PoolVolumeEvent::kMake, PoolVolumeState::kMaking},
    {PoolVolumeState::kMaking, PoolVolumeEvent::kMake, PoolVolumeState::kMaking},
    {PoolVolumeState::kMaking, PoolVolumeEvent::kDelete, PoolVolumeState::kDeleting},
    {PoolVolumeState::kMaking, PoolVolumeEvent::kDone, PoolVolumeState::kReady},
    {PoolVolumeState::kMaking, PoolVolumeEvent::kNotApplied, kNoRow},
    {PoolVolumeState::kMaking, PoolVolumeEvent::kMaybeApplied, PoolVolumeState::kMaking},
    {PoolVolumeState::kReady, PoolVolumeEvent::kExpand, PoolVolumeState::kExpanding},
    {PoolVolumeState::kReady, PoolVolumeEvent::kDelete, PoolVolumeState::kDeleting},
    {PoolVolumeState::kExpanding, PoolVolumeEvent::kExpand, PoolVolumeState::kExpanding},
    {PoolVolumeState::kExpanding, PoolVolumeEvent::kDelete, PoolVolumeState::kDeleting},
    {PoolVolumeState::kExpanding, PoolVolumeEvent::kDone, PoolVolumeState::kReady},
    {PoolVolumeState::kExpanding, PoolVolumeEvent::kNotApplied, PoolVolumeState::kExpanding},
    {PoolVolumeState::kExpanding, PoolVolumeEvent::kMaybeApplied, PoolVolumeState::kExpanding},
    {PoolVolumeState::kDeleting, PoolVolumeEvent::kDelete, PoolVolumeState::kDeleting},
    {PoolVolumeState::kDeleting, PoolVolumeEvent::kDone, kNoRow},
    {PoolVolumeState::kDeleting, PoolVolumeEvent::kNotApplied, PoolVolumeState::kDeleting},
    {PoolVolumeState::kDeleting, PoolVolumeEvent::kMaybeApplied, PoolVolumeState::kDeleting},
};

bool IsIdOf(PoolObject object, const std::string& id) {
  const std::optional<PoolId> parsed = ParsePoolId(id);
  return parsed && parsed->object == object;
}

// No text of a caller may end the program by its bytes.
std::string ForPeople(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// Source: CSI spec v1.13.0, csi.proto (VolumeCapability.AccessMode.Mode).
constexpr int32_t kMultiNodeReaderOnly = 3;
constexpr int32_t kMultiNodeSingleWriter = 4;
constexpr int32_t kMultiNodeMultiWriter = 5;

bool IsForSeveralNodes(const PoolLease& lease) {
  return lease.access_mode >= kMultiNodeReaderOnly && lease.access_mode <= kMultiNodeMultiWriter;
}

bool Writes(const PoolLease& lease) {
  return !lease.read_only && lease.access_mode != kMultiNodeReaderOnly;
}

}  // namespace

std::string_view PoolBackendName(PoolBackendKind kind) {
  switch (kind) {
    case PoolBackendKind::kNotKnown:
      return "";
    case PoolBackendKind::kImage:
      return "image";
    case PoolBackendKind::kDirectory:
      return "directory";
    case PoolBackendKind::kSubvolume:
      return "subvolume";
    case PoolBackendKind::kStatic:
      return "static";
    case PoolBackendKind::kExport:
      return "export";
    case PoolBackendKind::kLvm:
      return "lvm";
  }
  __builtin_unreachable();
}

std::optional<PoolBackendKind> PoolBackendOf(std::string_view name) {
  for (const PoolBackendKind kind : {PoolBackendKind::kImage, PoolBackendKind::kDirectory,
                                     PoolBackendKind::kSubvolume, PoolBackendKind::kLvm}) {
    if (name == PoolBackendName(kind)) return kind;
  }
  return std::nullopt;
}

bool IsTree(PoolBackendKind kind) {
  return kind == PoolBackendKind::kDirectory || kind == PoolBackendKind::kSubvolume;
}

bool IsListed(PoolBackendKind kind) {
  return kind == PoolBackendKind::kStatic || kind == PoolBackendKind::kExport;
}

std::string_view PoolVolumeStateName(PoolVolumeState state) {
  switch (state) {
    case PoolVolumeState::kNotKnown:
      return "";
    case PoolVolumeState::kMaking:
      return "Making";
    case PoolVolumeState::kReady:
      return "Ready";
    case PoolVolumeState::kExpanding:
      return "Expanding";
    case PoolVolumeState::kDeleting:
      return "Deleting";
  }
  __builtin_unreachable();
}

std::string_view PoolCutStateName(PoolCutState state) {
  switch (state) {
    case PoolCutState::kNotKnown:
      return "";
    case PoolCutState::kCutting:
      return "Cutting";
    case PoolCutState::kCut:
      return "Cut";
    case PoolCutState::kDiscarding:
      return "Discarding";
  }
  __builtin_unreachable();
}

Status CheckNotInline(const PoolVolumeRecord& volume) {
  const PoolInline& use = volume.inline_use;
  if (use.empty()) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           "volume " + volume.id + " is an inline volume of pod " +
                               use.pod_namespace + "/" + use.pod_name +
                               ": it is made by its NodePublishVolume, ends with its "
                               "NodeUnpublishVolume, and no other call may change or copy it");
}

std::string OtherProject(const PoolVolumeRecord& volume, uint32_t project) {
  if (volume.project_id == 0 || volume.project_id == project) return "";
  const std::string recorded = std::to_string(volume.project_id);
  return "it is of " + (project == 0 ? "no project" : "project " + std::to_string(project)) +
         ", and project " + recorded +
         " is on record, whose limit does not hold for it now: whoever owns a directory can do "
         "that. \"chattr -R -p " +
         recorded + "\" gives it back";
}

bool IsWhole(const PoolCutRecord& cut) {
  return cut.state == PoolCutState::kCut && (!cut.is_copy || cut.copied_bytes >= cut.size_bytes);
}

std::optional<PoolVolumeState> NextState(PoolVolumeState from, PoolVolumeEvent event) {
  for (const Row& row : kRows) {
    if (row.from == from && row.event == event) return row.to;
  }
  return std::nullopt;
}

std::string WhyNotBeside(const PoolLease& there, const PoolLease& wanted) {
  const std::string has = "node " + Quoted(there.node, kShownNode) + " has it";
  if (!IsForSeveralNodes(there) || !IsForSeveralNodes(wanted)) {
    return has + ", and it is not asked for as a volume of several nodes by both";
  }
  const bool is_single =
      there.access_mode == kMultiNodeSingleWriter || wanted.access_mode == kMultiNodeSingleWriter;
  if (is_single && Writes(there) && Writes(wanted)) {
    return has + " to write, and it is to have a single writer";
  }
  return "";
}

Record EncodeRecord(const PoolRecord& record) {
  return EncodeRow(kPoolRecordKind, record.name, record);
}

Record EncodeRecord(const PoolVolumeRecord& record) {
  const bool is_ready =
      record.state == PoolVolumeState::kReady || record.state == PoolVolumeState::kExpanding;
  const bool is_moved = IsTree(record.backend) && !record.source.empty() && !is_ready;
  return EncodeRow(kPoolVolumeRecordKind, record.id, record,
                   is_moved ? kMovedPoolVolumeVersion : kVolumeRecordVersion);
}

Record EncodeRecord(const PoolCutRecord& record) {
  return EncodeRow(kPoolCutRecordKind, record.id, record);
}

Result<PoolRecord> DecodePoolRecord(const Record& row) {
  ASSIGN_OR_RETURN(PoolRecord record, ParseRow<PoolRecord>(row, kPoolRecordKind));
  const bool is_named = !record.name.empty() && !record.path.empty() && !record.uuid.empty();
  RETURN_IF_ERROR(BelongsUnder(record.name, row, is_named));
  return record;
}

Result<PoolVolumeRecord> DecodePoolVolumeRecord(const Record& row) {
  ASSIGN_OR_RETURN(PoolVolumeRecord record,
                   ParseRow<PoolVolumeRecord>(row, kPoolVolumeRecordKind, kMovedPoolVolumeVersion));
  RETURN_IF_ERROR(BelongsUnder(record.id, row, IsIdOf(PoolObject::kVolume, record.id)));
  if (record.state == PoolVolumeState::kNotKnown) {
    return UnreadableRow(row, "has a state that this program does not know");
  }
  if (record.backend == PoolBackendKind::kNotKnown) {
    return UnreadableRow(row, "has a backend that this program does not know");
  }
  const bool is_export = record.backend == PoolBackendKind::kExport;
  const bool has_size = is_export ? record.capacity_bytes == 0 : record.capacity_bytes > 0;
  if (record.pool.empty() || record.name.empty() || !has_size) {
    return UnreadableRow(row, "has no pool, no name or no size");
  }
  const bool is_static = record.backend == PoolBackendKind::kStatic;
  if (is_static && (record.source.empty() || record.source_identity.empty())) {
    return UnreadableRow(row, "has no device, or does not say which");
  }
  if (is_export && (record.is_block || ServerOfExport(record.source).server.empty())) {
    return UnreadableRow(row, "has no export, or is a block volume");
  }
  const PoolInline& use = record.inline_use;
  if (!use.empty() && (use.target_root.empty() || !use.target.starts_with(use.target_root + "/"))) {
    return UnreadableRow(row, "has a target that lies in no directory of targets");
  }
  return record;
}

Result<PoolCutRecord> DecodePoolCutRecord(const Record& row) {
  ASSIGN_OR_RETURN(PoolCutRecord record, ParseRow<PoolCutRecord>(row, kPoolCutRecordKind));
  RETURN_IF_ERROR(BelongsUnder(record.id, row, IsIdOf(PoolObject::kCut, record.id)));
  if (record.state == PoolCutState::kNotKnown) {
    return UnreadableRow(row, "has a state that this program does not know");
  }
  if (record.backend == PoolBackendKind::kNotKnown) {
    return UnreadableRow(row, "has a backend that this program does not know");
  }
  if (record.pool.empty() || record.size_bytes <= 0 ||
      !IsIdOf(PoolObject::kVolume, record.volume)) {
    return UnreadableRow(row, "has no pool, no volume or no size");
  }
  return record;
}

std::string DescriptionOf(const PoolVolumeRecord& record, const std::string& pool_uuid) {
  nlohmann::ordered_json json;
  json["version"] = 1;
  json["id"] = record.id;
  json["pool"] = pool_uuid;
  json["name"] = record.name;
  json["backend"] = PoolBackendName(record.backend);
  json["volumeMode"] = record.is_block ? "Block" : "Filesystem";
  json["capacityBytes"] = record.capacity_bytes;
  json["blockBytes"] = record.block_bytes;
  json["parameters"] = record.parameters;
  json["createdUnixMillis"] = record.created_unix_ms;
  if (!record.from_snapshot.empty()) json["fromSnapshot"] = record.from_snapshot;
  if (!record.from_volume.empty()) json["fromVolume"] = record.from_volume;
  if (!record.inline_use.empty()) {
    json["pod"] = record.inline_use.pod_namespace + "/" + record.inline_use.pod_name;
    json["podUid"] = record.inline_use.pod_uid;
  }
  return ForPeople(json);
}

std::string DescriptionOf(const PoolCutRecord& record, const std::string& pool_uuid) {
  nlohmann::ordered_json json;
  json["version"] = 1;
  json["id"] = record.id;
  json["pool"] = pool_uuid;
  json["volume"] = record.volume;
  json["backend"] = PoolBackendName(record.backend);
  json["volumeMode"] = record.is_block ? "Block" : "Filesystem";
  json["filesystem"] = record.filesystem.type;
  json["cutUnixMillis"] = record.cut_unix_ms;
  return ForPeople(json);
}

}  // namespace volumed
