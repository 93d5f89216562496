// SnapshotObjects: the end of VolumeSnapshots and of contents, which are deleted by command.
#include <optional>
#include <utility>

#include "kube/data_source.h"
#include "snapshot/claimed_snapshots.h"
#include "snapshot/snapshot_objects.h"
#include "snapshot/snapshot_tags.h"

namespace volumed {
namespace {

constexpr const char* kSnapshotDeletePending = "SnapshotDeletePending";
constexpr const char* kSnapshotDeleteError = "SnapshotDeleteError";

}  // namespace

void SnapshotObjects::LookAtDeleted(const VolumeSnapshot& snapshot) {
  const ObjectKey key = SnapshotKey(snapshot);
  const std::string& uid = snapshot.metadata.uid;
  Entry& entry = entries_.at(key);
  if (!hooks_.why_not_yet().empty()) return RetryLater(key);
  entry.held_by = WhoRestores(snapshot);
  if (!entry.held_by.empty()) {
    return Tell(key, entry, EventType::kWarning, kSnapshotDeletePending,
                "Snapshot is being used to restore a PVC: " + entry.held_by);
  }
  const bool is_static = !snapshot.spec.volume_snapshot_content_name.empty();
  std::optional<SnapshotRecord> record =
      is_static ? std::nullopt : parts_.maker.FindByName(ObjectSnapshotName(uid));
  // It is that of another object, with all that goes with it.
  if (record && !IsMadeFor(*record, snapshot)) return hooks_.let_go(key, uid);
  if (!is_static && !record && creating_.contains(uid)) return;  // it is told how that ends
  const SnapshotBindingRecord* const binding = bindings_.OfSnapshot(uid);
  const bool is_its_own =
      binding != nullptr && binding->name_space == key.name_space && binding->name == key.name;
  const ContentPtr content = is_its_own ? FindContent(binding->content) : nullptr;
  const bool has_content = content != nullptr && content->metadata.uid == binding->content_uid;
  const std::optional<SnapshotTags> tags = record ? SnapshotTagsOf(*record) : std::nullopt;
  const bool goes_with_it =
      tags ? tags->policy == SnapshotDeletionPolicy::kDelete
           : has_content && content->spec.deletion_policy == SnapshotDeletionPolicy::kDelete;
  // What has no point in time is of use to nobody, whatever the policy.
  const bool is_begun = record && !IsCut(record->phase);
  if (!goes_with_it && !is_begun) return hooks_.let_go(key, uid);
  const std::string id = record ? record->id : has_content ? HandleOf(*content) : "";
  if (!id.empty()) return DeleteSnapshot(key, id);
  if (!has_content) return hooks_.let_go(key, uid);
  // It goes before its VolumeSnapshot does, so that it is never left without one.
  const ObjectKey its_content = SnapshotContentKey(*content);
  hooks_.deleted_since(its_content) ? Mark(its_content) : hooks_.delete_object(its_content);
  RetryLater(key);
}

void SnapshotObjects::DeleteSnapshot(const ObjectKey& for_object, const std::string& id) {
  if (deleting_.contains(id) || IsBackingOff(for_object)) return;
  if (const std::optional<ObjectKey> other = WhoElseHas(for_object, id)) {
    return Hold(for_object, "snapshot " + id + " is that of " + ToString(*other) + ", too");
  }
  deleting_.insert(id);
  parts_.maker.Delete(id, alive_.Guarded([this, for_object, id](const Status& deleted) {
    deleting_.erase(id);
    changed_.insert(id);
    if (deleted.ok()) return Mark(for_object);
    const Error error = deleted.error().With("Failed to delete snapshot");
    if (for_object.kind == ObjectKind::kVolumeSnapshotContent) {
      contents_held_[for_object] = error.message();
      return RetryLater(for_object);
    }
    const auto entry = entries_.find(for_object);
    if (entry == entries_.end()) return;
    entry->second.held_by = error.message();
    Fail(for_object, {kSnapshotDeleteError, error});
  }));
}

// One that is deleted keeps nothing; else two of them would keep each other.
std::optional<ObjectKey> SnapshotObjects::WhoElseHas(const ObjectKey& object,
                                                     const std::string& id) const {
  for (const ObjectKey& key : OwnersOf(id)) {
    if (key != object && !hooks_.deleted_since(key)) return key;
  }
  return std::nullopt;
}

void SnapshotObjects::Hold(const ObjectKey& object, const std::string& why) {
  if (object.kind == ObjectKind::kVolumeSnapshotContent) {
    contents_held_[object] = why;
  } else if (const auto entry = entries_.find(object); entry != entries_.end()) {
    entry->second.held_by = why;
    Tell(object, entry->second, EventType::kWarning, kSnapshotDeletePending, why);
  }
  RetryLater(object);
}

void SnapshotObjects::LookAtDeletedContent(const VolumeSnapshotContent& content) {
  const ObjectKey key = SnapshotContentKey(content);
  if (!hooks_.why_not_yet().empty()) return RetryLater(key);
  const bool goes = content.spec.deletion_policy == SnapshotDeletionPolicy::kDelete;
  const std::string id = HandleOf(content);
  const SnapshotPtr owner = OwnerOf(content);
  const bool owner_goes = owner != nullptr && hooks_.deleted_since(SnapshotKey(*owner)).has_value();
  // Its own deletion deletes the snapshot, and then lets the content go.
  const bool waits = owner != nullptr && (!owner_goes || !goes || !id.empty());
  if (waits) {
    contents_held_[key] = "VolumeSnapshot " + owner->metadata.name_space + "/" +
                          owner->metadata.name + " is bound to it";
    return;
  }
  if (goes && !id.empty()) return DeleteSnapshot(key, id);
  contents_held_.erase(key);
  hooks_.let_go(key, content.metadata.uid);
}

SnapshotObjects::SnapshotPtr SnapshotObjects::OwnerOf(const VolumeSnapshotContent& content) const {
  const SnapshotBindingRecord* const binding = bindings_.Find(content.metadata.name);
  if (binding == nullptr || binding->content_uid != content.metadata.uid) return nullptr;
  SnapshotPtr owner =
      FindSnapshot({ObjectKind::kVolumeSnapshot, binding->name_space, binding->name});
  return owner != nullptr && owner->metadata.uid == binding->uid ? owner : nullptr;
}

std::string SnapshotObjects::HandleOf(const VolumeSnapshotContent& content) const {
  if (content.spec.driver != parts_.maker.driver()) return "";
  const std::string& id = content.spec.snapshot_handle.empty() ? content.status.snapshot_handle
                                                               : content.spec.snapshot_handle;
  return parts_.maker.Find(id) ? id : "";
}

// A claim that has no volume yet, and is to get one that is made of the snapshot.
std::string SnapshotObjects::WhoRestores(const VolumeSnapshot& snapshot) const {
  const std::string& name_space = snapshot.metadata.name_space;
  for (const ObjectKey& key :
       parts_.catalog.KeysOf(ObjectKind::kPersistentVolumeClaim, name_space)) {
    const auto claim = parts_.catalog.FindPersistentVolumeClaim(key.name_space, key.name);
    const auto source = DataSourceOf(claim->spec);
    const bool is_of_it = source.ok() && *source && IsSnapshotSource(**source) &&
                          (*source)->name == snapshot.metadata.name;
    const bool waits = is_of_it && hooks_.volume_of(key).empty() && !hooks_.deleted_since(key);
    if (waits) return ToString(key);
  }
  return "";
}

}  // namespace volumed
