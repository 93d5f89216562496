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
    if (tags) Mark({ObjectKind::kVolumeSnapshot, tags->snapshot.name_space, tags->snapshot.name});
    // One of these may name a content with it, be it another VolumeSnapshot's or nobody's.
    const std::set<ObjectKey> waiting = naming_;
    for (const ObjectKey& key : waiting) MarkUnsettled(key);
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
        if (change.key.kind == ObjectKind::kVolumeSnapshotContent) MarkOwners(change.key.name);
        break;
      case ObjectKind::kPersistentVolumeClaim:
        MarkThoseOfClaim(change.key);
        break;
      case ObjectKind::kPersistentVolume:
        MarkThoseOfVolume(change.key.name);
        break;
      case ObjectKind::kVolumeSnapshotClass:
        MarkAll();
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
  if (!object) {
    MarkAll();
    for (const ObjectKey& key : parts_.catalog.KeysOf(ObjectKind::kVolumeSnapshotContent, "")) {
      Mark(key);
    }
    return;
  }
  if (object->kind == ObjectKind::kPersistentVolumeClaim) return MarkThoseOfClaim(*object);
  const bool is_snapshot = object->kind == ObjectKind::kVolumeSnapshot ||
                           object->kind == ObjectKind::kVolumeSnapshotContent;
  if (!is_snapshot) return;
  Mark(*object);
  // A content stays as long as its VolumeSnapshot does.
  for (const auto& [content, why] : contents_held_) Mark(content);
}

bool SnapshotObjects::IsSettled(const ObjectKey& key) const {
  const auto entry = entries_.find(key);
  return entry != entries_.end() && entry->second.status.ready_to_use == true &&
         !hooks_.deleted_since(key);
}

// Whatever it waits for may be there now.
void SnapshotObjects::MarkUnsettled(const ObjectKey& key) {
  if (IsSettled(key)) return;
  backoff_.Reset(ToString(key));
  Mark(key);
}

void SnapshotObjects::MarkAll() {
  for (const ObjectKey& key : parts_.catalog.KeysOf(ObjectKind::kVolumeSnapshot, "")) {
    MarkUnsettled(key);
  }
}

// Those that are taken of the claim, and those that it may be restored from.
void SnapshotObjects::MarkThoseOfClaim(const ObjectKey& claim) {
  for (const ObjectKey& key :
       parts_.catalog.KeysOf(ObjectKind::kVolumeSnapshot, claim.name_space)) {
    const SnapshotPtr snapshot = FindSnapshot(key);
    if (snapshot == nullptr) continue;
    const bool is_of_it = snapshot->spec.persistent_volume_claim_name == claim.name;
    if (is_of_it || hooks_.deleted_since(key)) MarkUnsettled(key);
  }
}

void SnapshotObjects::MarkThoseOfVolume(const std::string& volume) {
  for (const ObjectKey& key : parts_.catalog.KeysOf(ObjectKind::kVolumeSnapshot, "")) {
    const SnapshotPtr snapshot = IsSettled(key) ? nullptr : FindSnapshot(key);
    if (snapshot == nullptr) continue;
    const ObjectKey claim{ObjectKind::kPersistentVolumeClaim, key.name_space,
                          snapshot->spec.persistent_volume_claim_name};
    if (hooks_.volume_of(claim) == volume || hooks_.deleted_since(key)) MarkUnsettled(key);
  }
}

// The VolumeSnapshot that is bound to the content, the one that it says it is for, and those that
// name it.
void SnapshotObjects::MarkOwners(const std::string& content) {
  if (const SnapshotBindingRecord* const binding = bindings_.Find(content)) {
    MarkUnsettled({ObjectKind::kVolumeSnapshot, binding->name_space, binding->name});
  }
  if (const ContentPtr there = FindContent(content)) {
    const SnapshotReference& of = there->spec.volume_snapshot_ref;
    MarkUnsettled({ObjectKind::kVolumeSnapshot, of.name_space, of.name});
  }
  const std::set<ObjectKey> waiting = naming_;
  for (const ObjectKey& key : waiting) {
    const SnapshotPtr snapshot = FindSnapshot(key);
    const bool names_it =
        snapshot != nullptr && snapshot->spec.volume_snapshot_content_name == content;
    if (names_it) MarkUnsettled(key);
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
    } else {
      contents_held_.try_emplace(object);
      if (hooks_.uid_on_record(object)) LookAtDeletedContent(*content);
    }
    return;
  }
  const SnapshotPtr snapshot = FindSnapshot(object);
  if (snapshot == nullptr) {
    naming_.erase(object);
    if (const auto entry = entries_.find(object); entry != entries_.end()) {
      HasSnapshot(object, entry->second, "");
      entries_.erase(entry);
    }
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
  const ObjectKey key = SnapshotKey(snapshot);
  Entry& entry = entries_[key];
  if (entry.uid == snapshot.metadata.uid) return entry;
  HasSnapshot(key, entry, "");
  entry = Entry{snapshot.metadata.uid, {}, "", "", ""};
  return entry;
}

void SnapshotObjects::HasSnapshot(const ObjectKey& key, Entry& entry, const std::string& id) {
  if (entry.snapshot == id) return;
  if (const auto had = owners_.find(entry.snapshot); had != owners_.end()) {
    had->second.erase(key);
    if (had->second.empty()) owners_.erase(had);
  }
  entry.snapshot = id;
  if (!id.empty()) owners_[id].insert(key);
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
  // The default class that was taken, as the snapshot controller writes it into the object.
  const bool has_class = shown.spec.volume_snapshot_class_name.has_value();
  const bool is_made_here = shown.spec.volume_snapshot_content_name.empty();
  if (!has_class && is_made_here && content != nullptr) {
    shown.spec.volume_snapshot_class_name = content->spec.volume_snapshot_class_name;
  }
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

std::vector<ObjectKey> SnapshotObjects::OwnersOf(const std::string& id) const {
  std::vector<ObjectKey> owners;
  const auto had_by = owners_.find(id);
  if (had_by == owners_.end()) return owners;
  for (const ObjectKey& key : had_by->second) {
    const std::string& name = entries_.at(key).status.bound_volume_snapshot_content_name;
    const ContentPtr content = FindContent(name);
    if (content != nullptr && HandleOf(*content) == id) owners.push_back(key);
  }
  return owners;
}

std::optional<ObjectKey> SnapshotObjects::WhoHas(const std::string& id) const {
  const std::vector<ObjectKey> owners = OwnersOf(id);
  return owners.empty() ? std::nullopt : std::optional(owners.front());
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
