#include "agent/object_columns.h"

#include <variant>

#include "base/strings.h"
#include "kube/enum_names.h"
#include "kube/field_rules.h"
#include "kube/storage_enums.h"

namespace volumed {
namespace {

using Cells = std::vector<std::string>;

struct ColumnsRow {
  ObjectKind kind;
  std::vector<std::string_view> heads;
  Cells (*cells)(const Object& object);
};

std::string Truth(bool value) { return value ? "true" : "false"; }

// An API server writes what an empty list means.
std::string ModesText(const CsiDriverObject& driver) {
  Cells modes;
  for (const VolumeLifecycleMode mode : driver.volume_lifecycle_modes) {
    modes.emplace_back(EnumText(mode));
  }
  return modes.empty() ? std::string(EnumText(VolumeLifecycleMode::kPersistent)) : Join(modes, ",");
}

std::string AudiencesText(const CsiDriverObject& driver) {
  Cells audiences;
  for (const CsiTokenRequest& request : driver.token_requests) {
    audiences.push_back(request.audience);
  }
  return audiences.empty() ? "<unset>" : Join(audiences, ",");
}

Cells DriverCells(const Object& object) {
  const auto& driver = std::get<CsiDriverObject>(object);
  return {Truth(driver.attach_required),    Truth(driver.pod_info_on_mount),
          Truth(driver.storage_capacity),   AudiencesText(driver),
          Truth(driver.requires_republish), ModesText(driver)};
}

Cells NodeCells(const Object& object) {
  return {std::to_string(std::get<CsiNodeObject>(object).drivers.size())};
}

// Of an inline volume the column of the PersistentVolume is empty.
Cells AttachmentCells(const Object& object) {
  const auto& attachment = std::get<VolumeAttachment>(object);
  return {attachment.attacher, attachment.persistent_volume_name, attachment.node_name,
          Truth(attachment.attached)};
}

// As kubectl shows what is not known.
std::string TruthOrNone(const std::optional<bool>& value) { return value ? Truth(*value) : ""; }

Cells SnapshotCells(const Object& object) {
  const auto& snapshot = std::get<VolumeSnapshot>(object);
  const VolumeSnapshotStatus& status = snapshot.status;
  return {TruthOrNone(status.ready_to_use),
          snapshot.spec.persistent_volume_claim_name,
          snapshot.spec.volume_snapshot_content_name,
          status.restore_size ? status.restore_size->String() : "",
          snapshot.spec.volume_snapshot_class_name.value_or(""),
          status.bound_volume_snapshot_content_name,
          status.creation_unix_millis ? FormatTimestamp(*status.creation_unix_millis) : ""};
}

Cells ContentCells(const Object& object) {
  const auto& content = std::get<VolumeSnapshotContent>(object);
  const VolumeSnapshotContentSpec& spec = content.spec;
  return {TruthOrNone(content.status.ready_to_use),
          content.status.restore_size ? std::to_string(*content.status.restore_size) : "",
          std::string(EnumText(spec.deletion_policy)),
          spec.driver,
          spec.volume_snapshot_class_name.value_or(""),
          spec.volume_snapshot_ref.name,
          spec.volume_snapshot_ref.name_space};
}

Cells SnapshotClassCells(const Object& object) {
  const auto& one = std::get<VolumeSnapshotClass>(object);
  return {one.driver, std::string(EnumText(one.deletion_policy))};
}

const std::vector<ColumnsRow>& KindColumns() {
  static const std::vector<ColumnsRow> table = {
      {ObjectKind::kCsiDriver,
       {"ATTACHREQUIRED", "PODINFOONMOUNT", "STORAGECAPACITY", "TOKENREQUESTS", "REQUIRESREPUBLISH",
        "MODES"},
       &DriverCells},
      {ObjectKind::kCsiNode, {"DRIVERS"}, &NodeCells},
      {ObjectKind::kVolumeAttachment, {"ATTACHER", "PV", "NODE", "ATTACHED"}, &AttachmentCells},
      {ObjectKind::kVolumeSnapshot,
       {"READYTOUSE", "SOURCEPVC", "SOURCESNAPSHOTCONTENT", "RESTORESIZE", "SNAPSHOTCLASS",
        "SNAPSHOTCONTENT", "CREATIONTIME"},
       &SnapshotCells},
      {ObjectKind::kVolumeSnapshotContent,
       {"READYTOUSE", "RESTORESIZE", "DELETIONPOLICY", "DRIVER", "VOLUMESNAPSHOTCLASS",
        "VOLUMESNAPSHOT", "VOLUMESNAPSHOTNAMESPACE"},
       &ContentCells},
      {ObjectKind::kVolumeSnapshotClass, {"DRIVER", "DELETIONPOLICY"}, &SnapshotClassCells},
  };
  return table;
}

}  // namespace

std::vector<std::string_view> ColumnsOf(ObjectKind kind) {
  for (const ColumnsRow& row : KindColumns()) {
    if (row.kind == kind) return row.heads;
  }
  return {};
}

std::vector<std::string> CellsOf(const Object& object) {
  for (const ColumnsRow& row : KindColumns()) {
    if (row.kind == KindOf(object)) return row.cells(object);
  }
  return {};
}

}  // namespace volumed
