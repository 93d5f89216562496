#include "snapshot/claimed_snapshots.h"

#include <string>
#include <utility>
#include <variant>

#include "snapshot/snapshot_tags.h"

namespace volumed {
namespace {

constexpr std::string_view kSnapshotGroup = "snapshot.storage.k8s.io";

}  // namespace

bool IsSnapshotSource(const DataSource& source) {
  return source.api_group == kSnapshotGroup &&
         source.kind == ObjectKindName(ObjectKind::kVolumeSnapshot);
}

Result<std::optional<VolumeContent>> ClaimedSnapshots::Find(
    const PersistentVolumeClaim& claim) const {
  ASSIGN_OR_RETURN(const std::optional<DataSource> source, DataSourceOf(claim.spec));
  if (!source) return std::optional<VolumeContent>();
  if (!IsSnapshotSource(*source)) {
    const std::string group = source->api_group.empty() ? "" : " of " + source->api_group;
    return Error::NotApplied(
        Code::kInvalidArgument,
        "its data source is a " + source->kind + group + ", from which nothing here makes volumes");
  }
  ASSIGN_OR_RETURN(
      VolumeContent content,
      ContentOfSnapshot({ObjectKind::kVolumeSnapshot, claim.metadata.name_space, source->name}));
  return std::optional(std::move(content));
}

Result<VolumeContent> ClaimedSnapshots::ContentOfSnapshot(const ObjectKey& key) const {
  const std::string name = ToString(key) + ", its data source, ";
  const ObjectPtr object = catalog_.FindObject(key);
  if (object == nullptr) return Error::NotApplied(Code::kNotFound, name + "does not exist");
  const VolumeSnapshot snapshot = shown_(std::get<VolumeSnapshot>(*object));
  if (snapshot.metadata.deletion_unix_millis) {
    return Error::NotApplied(Code::kFailedPrecondition, name + "is being deleted");
  }
  const ObjectPtr bound = catalog_.FindObject(
      {ObjectKind::kVolumeSnapshotContent, "", snapshot.status.bound_volume_snapshot_content_name});
  if (bound == nullptr) {
    const auto& error = snapshot.status.error;
    return Error::NotApplied(Code::kUnavailable,
                             name + "is not bound" + (error ? ": " + error->message : ""));
  }
  const auto& content = std::get<VolumeSnapshotContent>(*bound);
  const std::string& handle = content.spec.snapshot_handle.empty() ? content.status.snapshot_handle
                                                                   : content.spec.snapshot_handle;
  const std::optional<SnapshotRecord> record = maker_.Find(handle);
  if (!record || record->phase != SnapshotPhase::kReady) {
    return Error::NotApplied(Code::kUnavailable, name + "is not ready to use");
  }
  // A content of the name may have been applied for another one.
  const SnapshotReference& ref = content.spec.volume_snapshot_ref;
  const bool is_named = !snapshot.spec.volume_snapshot_content_name.empty();
  const bool is_its_own = is_named ? ref.name_space == key.name_space && ref.name == key.name &&
                                         (ref.uid.empty() || ref.uid == snapshot.metadata.uid)
                                   : IsMadeFor(*record, snapshot);
  if (!is_its_own) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             name + "has VolumeSnapshotContent " + content.metadata.name +
                                 ", which is bound to a different snapshot");
  }
  VolumeContent found;
  found.is_snapshot = true;
  found.driver = content.spec.driver;
  found.handle = handle;
  found.volume_mode = content.spec.source_volume_mode.value_or(VolumeMode::kFilesystem);
  found.size = Quantity::FromBytes(record->size_bytes);
  return found;
}

}  // namespace volumed
