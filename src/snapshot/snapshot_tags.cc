#include "snapshot/snapshot_tags.h"

#include <utility>

#include "kube/storage_enums.h"

namespace volumed {
namespace {

// The first three are those that a csi-snapshotter gives a driver with --extra-create-metadata.
constexpr const char* kNameTag = "csi.storage.k8s.io/volumesnapshot/name";
constexpr const char* kNamespaceTag = "csi.storage.k8s.io/volumesnapshot/namespace";
constexpr const char* kContentTag = "csi.storage.k8s.io/volumesnapshotcontent/name";
constexpr const char* kUidTag = "volumed.io/volumesnapshot-uid";
constexpr const char* kPolicyTag = "volumed.io/deletion-policy";
constexpr const char* kClassTag = "volumed.io/volumesnapshotclass";
constexpr const char* kModeTag = "volumed.io/volume-mode";
constexpr int64_t kNanosPerMilli = 1'000'000;

std::string TagOf(const SnapshotRecord& record, const char* tag) {
  const auto found = record.tags.find(tag);
  return found == record.tags.end() ? "" : found->second;
}

std::optional<SnapshotError> ErrorOf(const SnapshotRecord& record) {
  if (record.error.empty()) return std::nullopt;
  return SnapshotError{record.updated_unix_ms, record.error};
}

}  // namespace

std::string SnapshotContentName(const std::string& uid) { return "snapcontent-" + uid; }

std::string ObjectSnapshotName(const std::string& uid) { return "snapshot-" + uid; }

ObjectKey SnapshotKey(const VolumeSnapshot& snapshot) {
  return {ObjectKind::kVolumeSnapshot, snapshot.metadata.name_space, snapshot.metadata.name};
}

ObjectKey SnapshotContentKey(const VolumeSnapshotContent& content) {
  return {ObjectKind::kVolumeSnapshotContent, "", content.metadata.name};
}

StringMap TagsOf(const SnapshotTags& tags) {
  return {{kNameTag, tags.snapshot.name},
          {kNamespaceTag, tags.snapshot.name_space},
          {kContentTag, SnapshotContentName(tags.snapshot.uid)},
          {kUidTag, tags.snapshot.uid},
          {kPolicyTag, std::string(EnumText(tags.policy))},
          {kClassTag, tags.class_name},
          {kModeTag, std::string(EnumText(tags.mode))}};
}

std::optional<SnapshotTags> SnapshotTagsOf(const SnapshotRecord& record) {
  SnapshotTags tags;
  tags.snapshot = {TagOf(record, kNamespaceTag), TagOf(record, kNameTag), TagOf(record, kUidTag)};
  if (tags.snapshot.uid.empty() || record.name != ObjectSnapshotName(tags.snapshot.uid)) {
    return std::nullopt;
  }
  tags.class_name = TagOf(record, kClassTag);
  // Of two policies the one that keeps data stands for one that is not known.
  tags.policy = TagOf(record, kPolicyTag) == EnumText(SnapshotDeletionPolicy::kDelete)
                    ? SnapshotDeletionPolicy::kDelete
                    : SnapshotDeletionPolicy::kRetain;
  tags.mode = TagOf(record, kModeTag) == EnumText(VolumeMode::kBlock) ? VolumeMode::kBlock
                                                                      : VolumeMode::kFilesystem;
  return tags;
}

bool IsMadeFor(const SnapshotRecord& record, const VolumeSnapshot& snapshot) {
  const std::optional<SnapshotTags> tags = SnapshotTagsOf(record);
  const ObjectMeta& meta = snapshot.metadata;
  return tags && tags->snapshot == SnapshotReference{meta.name_space, meta.name, meta.uid};
}

VolumeSnapshotContentStatus ContentStatusOf(const SnapshotRecord& record) {
  VolumeSnapshotContentStatus status;
  status.snapshot_handle = record.id;
  if (record.cut_unix_ms > 0) status.creation_unix_nanos = record.cut_unix_ms * kNanosPerMilli;
  if (record.size_bytes > 0) status.restore_size = record.size_bytes;
  status.ready_to_use = record.phase == SnapshotPhase::kReady;
  status.error = ErrorOf(record);
  status.volume_group_snapshot_handle = record.group;
  return status;
}

VolumeSnapshotStatus SnapshotStatusOf(const SnapshotRecord& record, const std::string& content) {
  VolumeSnapshotStatus status;
  status.bound_volume_snapshot_content_name = content;
  // In seconds, as an object has it.
  if (record.cut_unix_ms > 0) {
    status.creation_unix_millis = record.cut_unix_ms - record.cut_unix_ms % 1000;
  }
  if (record.size_bytes > 0) status.restore_size = Quantity::FromBytes(record.size_bytes);
  status.ready_to_use = record.phase == SnapshotPhase::kReady;
  status.error = ErrorOf(record);
  return status;
}

std::optional<VolumeSnapshotContent> ContentOf(const SnapshotRecord& record,
                                               const std::string& driver) {
  std::optional<SnapshotTags> tags = SnapshotTagsOf(record);
  if (!tags || !IsCut(record.phase)) return std::nullopt;
  VolumeSnapshotContent content;
  content.metadata.name = SnapshotContentName(tags->snapshot.uid);
  content.metadata.uid = record.id;
  content.metadata.creation_unix_millis = record.cut_unix_ms - record.cut_unix_ms % 1000;
  content.metadata.finalizers = {std::string(kSnapshotContentBoundProtection)};
  content.spec.volume_snapshot_ref = std::move(tags->snapshot);
  content.spec.deletion_policy = tags->policy;
  content.spec.driver = driver;
  content.spec.volume_snapshot_class_name = tags->class_name;
  content.spec.volume_handle = record.volume;
  content.spec.source_volume_mode = tags->mode;
  content.status = ContentStatusOf(record);
  return content;
}

}  // namespace volumed
