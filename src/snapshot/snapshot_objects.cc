#include "snapshot/snapshot_objects.h"

#include <utility>
#include <variant>

#include "snapshot/snapshot_tags.h"

namespace volumed {
namespace {

constexpr const char* kTry = "try";
constexpr Backoff::Options kObjectBackoff{.initial = std::chrono::seconds(1),
                                          .max = std::chrono::minutes(5)};

// The pointer shares the object's reference count.
template <typename T>
std::shared_ptr<const T> TypedObject(const ObjectPtr& object) {
  if (object == nullptr) return nullptr;
  return std::shared_ptr<const T>(object, &std::get<T>(*object));
}

}  // namespace

SnapshotObjects::SnapshotObjects(Parts parts, Hooks hooks)
    : parts_(parts),
      hooks_(std::move(hooks)),
      bindings_(parts.rows),
      backoff_(parts.rows.scheduler.clock(), kObjectBackoff) {
  parts_.catalog.AddListener(
      alive_.Guarded([this](const std::vector<ObjectChange>& changes) { Follow(changes); }));
  parts_.maker.AddListener(alive_.Guarded([this](const SnapshotRecord& record) {
    changed_.insert(record.id);
    const std::optional<SnapshotTags> tags = SnapshotTagsOf(record);
    if (tags) {
      Mark({ObjectKind::kVolumeSnapshot, tags->snapshot.name_space, tags->snapshot.name});
    } else {
      MarkAll("");  // those that name a content with it
    }
  }));
}

void SnapshotObjects::Start() {
  started_ = true;
  PublishAll();
  ObjectChanged(std::nullopt);
}

// ---- what has changed ---------------------------------------------------------------------------

void SnapshotObjects::Follow(const std::vector<ObjectChange>& changes) {
  for (const ObjectChange& change : changes) {
    switch (change.key.kind) {
      case ObjectKind::kVolumeSnapshot:
      case ObjectKind::kVolumeSnapshotContent:
        purge_ = purge_ || change.what == ObjectChange::What::kRemoved;
        backoff_.Reset(ToString(change.key));
        Mark(change.key);
        if (change.key.kind == ObjectKind::kVolumeSnapshotContent) MarkAll("");
        break;
      case ObjectKind::kPersistentVolumeClaim:
        MarkAll(change.key.name_space);
        break;
      case ObjectKind::kVolumeSnapshotClass:
      case ObjectKind::kPersistentVolume:
        MarkAll("");
        break;
      case ObjectKind::kPod:
      case ObjectKind::kSecret:
      case ObjectKind::kConfigMap:
      case ObjectKind::kNode:
      case ObjectKind::kStorageClass:
      case ObjectKind::kCsiDriver:
      case ObjectKind::kCsiNode:
      case ObjectKind::kVolumeAttachment:
        break;
    }
  }
}

void SnapshotObjects::ObjectChanged(const std::optional<ObjectKey>& object) {
  if (object && object->kind == ObjectKind::kPersistentVolumeClaim) {
    return MarkAll(object->name_space);
  }
  const bool is_snapshot = object && (object->kind == ObjectKind::kVolumeSnapshot ||
                                      object->kind == ObjectKind::kVolumeSnapshotContent);
  if (object && !is_snapshot) return;
  object ? Mark(*object) : MarkAll("");
  // A content stays as long as its VolumeSnapshot does.
  for (const ObjectKey& key : parts_.catalog.KeysOf(ObjectKind::kVolumeSnapshotContent, "")) {
    Mark(key);
  }
}

// Whatever it waits for may be there now.
void SnapshotObjects::MarkAll(const std::string& name_space) {
  for (const ObjectKey& key : parts_.catalog.KeysOf(ObjectKind::kVolumeSnapshot, name_space)) {
    const auto entry = entries_.find(key);
    const bool is_settled = entry != entries_.end() && entry->second.status.ready_to_use == true &&
                            !hooks_.deleted_since(key);
    if (is_settled) continue;
    backoff_.Reset(ToString(key));
    Mark(key);
  }
}

void SnapshotObjects::Mark(const ObjectKey& object) {
  dirty_.insert(object);
  if (std::exchange(is_queued_, true)) return;
  parts_.rows.scheduler.Post(alive_.Guarded([this] { Run(); }));
}

void SnapshotObjects::Run() {
  is_queued_ = false;
  if (!started_) return;
  for (const std::string& id : std::exchange(changed_, {})) Publish(id);
  for (const ObjectKey& object : std::exchange(dirty_, {})) Look(object);
  Purge();
}

void SnapshotObjects::Look(const ObjectKey& object) {
  if (object.kind == ObjectKind::kVolumeSnapshotContent) {
    const ContentPtr content = FindContent(object.name);
    if (content == nullptr || !hooks_.deleted_since(object)) {
      contents_held_.erase(object);
    } else if (hooks_.uid_on_record(object)) {
      LookAtDeletedContent(*content);
    }
    return;
  }
  const SnapshotPtr snapshot = FindSnapshot(object);
  if (snapshot == nullptr) {
    entries_.erase(object);
    return;
  }
  if (!hooks_.uid_on_record(object)) return;
  EntryOf(*snapshot);
  hooks_.deleted_since(object) ? LookAtDeleted(*snapshot) : LookAtSnapshot(*snapshot);
}

void SnapshotObjects::RetryLater(const ObjectKey& object) {
  if (IsBackingOff(object)) return;  // its timer runs
  parts_.rows.scheduler.PostAfter(backoff_.RecordFailure(ToString(object), kTry, ""),
                                  alive_.Guarded([this, object] { Mark(object); }));
}

bool SnapshotObjects::IsBackingOff(const ObjectKey& object) const {
  return backoff_.BlockedUntil(ToString(object), kTry).has_value();
}

SnapshotObjects::SnapshotPtr SnapshotObjects::FindSnapshot(const ObjectKey& key) const {
  return TypedObject<VolumeSnapshot>(parts_.catalog.FindObject(key));
}

SnapshotObjects::ContentPtr SnapshotObjects::FindContent(const std::string& name) const {
  return TypedObject<VolumeSnapshotContent>(
      parts_.catalog.FindObject({ObjectKind::kVolumeSnapshotContent, "", name}));
}

SnapshotObjects::Entry& SnapshotObjects::EntryOf(const VolumeSnapshot& snapshot) {
  Entry& entry = entries_[SnapshotKey(snapshot)];
  if (entry.uid != snapshot.metadata.uid) entry = Entry{snapshot.metadata.uid, {}, "", ""};
  return entry;
}

// ---- what is told -------------------------------------------------------------------------------

void SnapshotObjects::Tell(const ObjectKey& key, Entry& entry, EventType type, const char* reason,
                           const std::string& text) {
  if (std::exchange(entry.told, reason + (": " + text)) == entry.told) return;
  parts_.events.RecordObjectEvent(key, type, reason, text);
}

void SnapshotObjects::Fail(const ObjectKey& key, const Trouble& trouble) {
  Entry& entry = entries_[key];
  const std::string& text = trouble.error.message();
  const bool is_new = !entry.status.error || entry.status.error->message != text;
  if (is_new) {
    const int64_t now = parts_.rows.scheduler.clock().WallUnixMillis();
    entry.status.error = SnapshotError{now - now % 1000, text};
  }
  entry.status.ready_to_use = false;
  Tell(key, entry, EventType::kWarning, trouble.reason, text);
  RetryLater(key);
}

VolumeSnapshot SnapshotObjects::Shown(const VolumeSnapshot& snapshot) const {
  VolumeSnapshot shown = snapshot;
  const ObjectKey key = SnapshotKey(snapshot);
  shown.metadata.deletion_unix_millis = hooks_.deleted_since(key);
  const auto entry = entries_.find(key);
  if (entry == entries_.end() || entry->second.uid != snapshot.metadata.uid) return shown;
  shown.status = entry->second.status;
  shown.metadata.finalizers.emplace_back(kSnapshotAsSourceProtection);
  const ContentPtr content = FindContent(shown.status.bound_volume_snapshot_content_name);
  const bool goes_with_it =
      content != nullptr && content->spec.deletion_policy == SnapshotDeletionPolicy::kDelete;
  if (goes_with_it) shown.metadata.finalizers.emplace_back(kSnapshotBoundProtection);
  return shown;
}

VolumeSnapshotContent SnapshotObjects::Shown(const VolumeSnapshotContent& content) const {
  VolumeSnapshotContent shown = content;
  const ObjectKey key = SnapshotContentKey(content);
  shown.metadata.deletion_unix_millis = hooks_.deleted_since(key);
  const std::string& handle = content.spec.snapshot_handle;
  if (handle.empty() || content.spec.driver != parts_.maker.driver()) return shown;
  if (const std::optional<SnapshotRecord> record = parts_.maker.Find(handle)) {
    shown.status = ContentStatusOf(*record);
  }
  const SnapshotBindingRecord* const binding = bindings_.Find(content.metadata.name);
  if (binding == nullptr || binding->content_uid != content.metadata.uid) return shown;
  shown.spec.volume_snapshot_ref.uid = binding->uid;
  shown.metadata.finalizers.emplace_back(kSnapshotContentBoundProtection);
  return shown;
}

std::optional<ObjectKey> SnapshotObjects::WhoHas(const std::string& id) const {
  for (const auto& [key, entry] : entries_) {
    const ContentPtr content = FindContent(entry.status.bound_volume_snapshot_content_name);
    if (content != nullptr && HandleOf(*content) == id) return key;
  }
  return std::nullopt;
}

Status SnapshotObjects::CheckNotHad(const std::string& id) const {
  if (const std::string why = hooks_.why_not_yet(); !why.empty()) {
    return Error::NotApplied(Code::kUnavailable, why);
  }
  const std::optional<ObjectKey> owner = WhoHas(id);
  if (!owner) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           "snapshot " + id + " is that of " + ToString(*owner) +
                               ": delete that, and it goes by its deletion policy");
}

std::string SnapshotObjects::HeldBy(const ObjectKey& object) const {
  if (object.kind == ObjectKind::kVolumeSnapshotContent) {
    const auto held = contents_held_.find(object);
    return held == contents_held_.end() ? "" : held->second;
  }
  const auto entry = entries_.find(object);
  return entry == entries_.end() ? "" : entry->second.held_by;
}

// ---- the contents of snapshots that are made here -----------------------------------------------

void SnapshotObjects::PublishAll() {
  ObjectList list;
  list.source = kSnapshotSource;
  list.complete = true;
  for (const SnapshotRecord& record : parts_.maker.List({})) {
    std::optional<VolumeSnapshotContent> content = ContentOf(record, parts_.maker.driver());
    if (!content) continue;
    auto object = std::make_shared<const Object>(*std::move(content));
    list.objects.push_back({object, "", 0});
    published_[record.id] = std::move(object);
  }
  parts_.catalog.Update(std::move(list));
}

void SnapshotObjects::Publish(const std::string& id) {
  const std::optional<SnapshotRecord> record = parts_.maker.Find(id);
  const std::optional<VolumeSnapshotContent> content =
      record ? ContentOf(*record, parts_.maker.driver()) : std::nullopt;
  const auto before = published_.find(id);
  ObjectDelta delta;
  delta.source = kSnapshotSource;
  if (content) {
    auto object = std::make_shared<const Object>(*content);
    if (before != published_.end() && *before->second == *object) return;
    delta.objects.push_back({object, "", 0});
    published_[id] = std::move(object);
  } else {
    if (before == published_.end()) return;
    delta.removed.push_back({KeyOf(*before->second), ""});
    published_.erase(before);
  }
  parts_.catalog.Update(std::move(delta));
}

// A binding goes when neither of the two is there any more.
void SnapshotObjects::Purge() {
  if (!purge_ || !hooks_.why_not_yet().empty()) return;
  purge_ = false;
  for (const SnapshotBindingRecord& binding : bindings_.All()) {
    const ObjectKey snapshot{ObjectKind::kVolumeSnapshot, binding.name_space, binding.name};
    const ObjectKey content{ObjectKind::kVolumeSnapshotContent, "", binding.content};
    // An object of which it is not known whether it exists is there.
    if (parts_.catalog.MayBeThere(snapshot) || parts_.catalog.MayBeThere(content)) continue;
    const SnapshotPtr of = FindSnapshot(snapshot);
    const ContentPtr its = FindContent(binding.content);
    const bool is_there = (of != nullptr && of->metadata.uid == binding.uid) ||
                          (its != nullptr && its->metadata.uid == binding.content_uid);
    if (!is_there) bindings_.Forget(binding.content);
  }
}

}  // namespace volumed
