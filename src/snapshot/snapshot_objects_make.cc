// SnapshotObjects: snapshots of claims, and bindings to contents that are there already.
#include <utility>
#include <variant>
#include <vector>

#include "base/strings.h"
#include "snapshot/snapshot_objects.h"
#include "snapshot/snapshot_tags.h"

namespace volumed {
namespace {

// Source: external-snapshotter pkg/common-controller and pkg/sidecar-controller@v8.6.0.
constexpr const char* kCreatingSnapshot = "CreatingSnapshot";
constexpr const char* kSnapshotCreated = "SnapshotCreated";
constexpr const char* kSnapshotReady = "SnapshotReady";
constexpr const char* kSnapshotCreationFailed = "SnapshotCreationFailed";
constexpr const char* kContentCreationFailed = "SnapshotContentCreationFailed";
constexpr const char* kContentMissing = "SnapshotContentMissing";
constexpr const char* kContentMismatch = "SnapshotContentMismatch";
constexpr const char* kContentMisbound = "SnapshotContentMisbound";
constexpr const char* kBindFailed = "SnapshotBindFailed";
// Parameters of sidecars, which no driver sees.
constexpr std::string_view kSidecarPrefix = "csi.storage.k8s.io/";

std::string NameOf(const VolumeSnapshot& snapshot) {
  return snapshot.metadata.name_space + "/" + snapshot.metadata.name;
}

bool IsDefaultClass(const VolumeSnapshotClass& one) {
  const auto mark = one.metadata.annotations.find(std::string(kDefaultSnapshotClassAnnotation));
  return mark != one.metadata.annotations.end() && mark->second == "true";
}

// Whoever has copied an object with its uid would get what the other one's claim has.
Error MadeForAnother(const SnapshotRecord& record) {
  const std::optional<SnapshotTags> tags = SnapshotTagsOf(record);
  const std::string whose =
      tags ? "VolumeSnapshot " + tags->snapshot.name_space + "/" + tags->snapshot.name
           : "no VolumeSnapshot";
  return Error::NotApplied(Code::kAlreadyExists, "snapshot " + record.id +
                                                     " has its uid, and was made for " + whose +
                                                     ": apply it without a uid");
}

// How a volume is cut follows from the volume.
Status CheckClassParameters(const VolumeSnapshotClass& one) {
  for (const auto& [key, value] : one.parameters) {
    if (key.starts_with(kSidecarPrefix)) continue;
    return Error::NotApplied(Code::kInvalidArgument,
                             "VolumeSnapshotClass " + one.metadata.name + " has the parameter " +
                                 key + ", which is not known: snapshots of this driver have none");
  }
  return OkStatus();
}

}  // namespace

void SnapshotObjects::LookAtSnapshot(const VolumeSnapshot& snapshot) {
  entries_.at(SnapshotKey(snapshot)).held_by.clear();
  if (snapshot.spec.volume_snapshot_content_name.empty()) {
    LookAtWish(snapshot);
  } else {
    naming_.insert(SnapshotKey(snapshot));
    LookAtNamedContent(snapshot);
  }
}

// ---- of a claim ---------------------------------------------------------------------------------

void SnapshotObjects::LookAtWish(const VolumeSnapshot& snapshot) {
  const ObjectKey key = SnapshotKey(snapshot);
  const std::string& uid = snapshot.metadata.uid;
  const std::string content = SnapshotContentName(uid);
  const std::optional<SnapshotRecord> record = parts_.maker.FindByName(ObjectSnapshotName(uid));
  if (record && !IsMadeFor(*record, snapshot))
    return Fail(key, {kContentMismatch, MadeForAnother(*record)});
  if (record && IsCut(record->phase)) {
    const ContentPtr there = FindContent(content);
    if (there != nullptr && there->metadata.uid != record->id) {
      return Fail(key,
                  {kContentMismatch,
                   Error::NotApplied(Code::kFailedPrecondition,
                                     "VolumeSnapshotContent " + content +
                                         " was applied, and is not that of snapshot " + record->id +
                                         ", which was made for it: delete that content")});
    }
    return Bound(snapshot, content, record->id, *record);
  }
  // Of another VolumeSnapshot with this uid: what is made is looked at once it is on record.
  if (creating_.contains(uid)) return RetryLater(key);
  if (record && !IsAtRest(record->phase)) return;  // the maker goes on, and tells
  if (record && record->phase == SnapshotPhase::kCancelled) {
    return Fail(key,
                {kSnapshotCreationFailed,
                 Error::NotApplied(Code::kCancelled, "the snapshot was cancelled by command")});
  }
  if (!record && (bindings_.Find(content) != nullptr || bindings_.IsUnreadable(content))) {
    // Another one would be of another moment.
    return Fail(key,
                {kContentMissing, Error::NotApplied(Code::kNotFound, "VolumeSnapshotContent " +
                                                                         content + " is missing")});
  }
  if (parts_.catalog.IsMissing(key) || IsBackingOff(key)) return;
  if (!hooks_.why_not_yet().empty()) return RetryLater(key);
  Create(snapshot);
}

void SnapshotObjects::Create(const VolumeSnapshot& snapshot) {
  const ObjectKey key = SnapshotKey(snapshot);
  const std::string uid = snapshot.metadata.uid;
  const Result<SnapshotWish> wish = WishFor(snapshot);
  if (!wish.ok()) return Fail(key, {kContentCreationFailed, wish.error()});
  creating_.insert(uid);
  // What it had was never ready.
  bindings_.Forget(SnapshotContentName(uid));
  Entry& entry = entries_.at(key);
  if (!entry.status.error) {
    Tell(key, entry, EventType::kNormal, kCreatingSnapshot,
         "Waiting for a snapshot " + NameOf(snapshot) + " to be created by the CSI driver.");
  }
  parts_.maker.Create(*wish, alive_.Guarded([this, key, uid](const Result<SnapshotRecord>& made) {
    creating_.erase(uid);
    const auto of = entries_.find(key);
    const bool is_wanted = of != entries_.end() && of->second.uid == uid;
    if (is_wanted && !made.ok()) {
      Fail(key, {kSnapshotCreationFailed, made.error().With("Failed to create snapshot")});
    }
    Mark(key);
  }));
}

void SnapshotObjects::Bound(const VolumeSnapshot& snapshot, const std::string& content,
                            const std::string& content_uid, const SnapshotRecord& record) {
  const ObjectKey key = SnapshotKey(snapshot);
  Entry& entry = entries_.at(key);
  const bool was_bound = bindings_.OfSnapshot(snapshot.metadata.uid) != nullptr;
  const bool was_ready = entry.status.ready_to_use == true;
  bindings_.Bind({content, content_uid, snapshot.metadata.name_space, snapshot.metadata.name,
                  snapshot.metadata.uid});
  entry.status = SnapshotStatusOf(record, content);
  HasSnapshot(key, entry, record.id);
  if (entry.status.ready_to_use == true) naming_.erase(key);
  backoff_.Reset(ToString(key));
  if (!was_bound) {
    Tell(key, entry, EventType::kNormal, kSnapshotCreated,
         "Snapshot " + NameOf(snapshot) + " was successfully created by the CSI driver.");
  }
  if (entry.status.ready_to_use == true && !was_ready) {
    Tell(key, entry, EventType::kNormal, kSnapshotReady,
         "Snapshot " + NameOf(snapshot) + " is ready to use.");
  }
}

Result<SnapshotWish> SnapshotObjects::WishFor(const VolumeSnapshot& snapshot) const {
  const ObjectKey claim{ObjectKind::kPersistentVolumeClaim, snapshot.metadata.name_space,
                        snapshot.spec.persistent_volume_claim_name};
  if (parts_.catalog.FindObject(claim) == nullptr) {
    return Error::NotApplied(Code::kNotFound, "there is no " + ToString(claim));
  }
  const std::shared_ptr<const PersistentVolume> volume =
      parts_.catalog.FindPersistentVolume(hooks_.volume_of(claim));
  if (volume == nullptr) {
    return Error::NotApplied(Code::kUnavailable, "the PVC " + claim.name +
                                                     " is not yet bound to a PV, will not attempt "
                                                     "to take a snapshot");
  }
  const std::string& name = volume->metadata.name;
  const auto* csi = std::get_if<CsiPersistentVolumeSource>(&volume->spec.source);
  if (csi == nullptr) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "cannot find CSI PersistentVolumeSource for volume " + name);
  }
  if (csi->driver != parts_.maker.driver()) {
    return Error::NotApplied(Code::kUnimplemented,
                             "volume " + name + " is of driver " + csi->driver +
                                 ", of whose volumes this node makes no snapshots");
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const VolumeSnapshotClass> of_class,
                   ClassFor(snapshot, csi->driver));
  RETURN_IF_ERROR(CheckClassParameters(*of_class));
  SnapshotTags tags;
  tags.snapshot = {snapshot.metadata.name_space, snapshot.metadata.name, snapshot.metadata.uid};
  tags.policy = of_class->deletion_policy;
  tags.class_name = of_class->metadata.name;
  tags.mode = volume->spec.volume_mode;
  return SnapshotWish{ObjectSnapshotName(snapshot.metadata.uid), csi->volume_handle, TagsOf(tags)};
}

Result<std::shared_ptr<const VolumeSnapshotClass>> SnapshotObjects::ClassFor(
    const VolumeSnapshot& snapshot, const std::string& driver) const {
  const auto find = [this](const std::string& name) -> std::shared_ptr<const VolumeSnapshotClass> {
    const ObjectPtr object =
        parts_.catalog.FindObject({ObjectKind::kVolumeSnapshotClass, "", name});
    if (object == nullptr) return nullptr;
    return {object, &std::get<VolumeSnapshotClass>(*object)};
  };
  if (const std::optional<std::string>& name = snapshot.spec.volume_snapshot_class_name) {
    std::shared_ptr<const VolumeSnapshotClass> named = find(*name);
    if (named == nullptr) {
      return Error::NotApplied(Code::kNotFound, "there is no VolumeSnapshotClass " + *name);
    }
    if (named->driver == driver) return named;
    return Error::NotApplied(Code::kInvalidArgument, "VolumeSnapshotClass " + *name +
                                                         " is of driver " + named->driver +
                                                         ", and the claim's volume of " + driver);
  }
  std::vector<std::string> defaults;
  for (const ObjectKey& key : parts_.catalog.KeysOf(ObjectKind::kVolumeSnapshotClass, "")) {
    const std::shared_ptr<const VolumeSnapshotClass> one = find(key.name);
    if (one->driver == driver && IsDefaultClass(*one)) defaults.push_back(key.name);
  }
  if (defaults.size() == 1) return find(defaults.front());
  if (defaults.empty()) {
    return Error::NotApplied(Code::kNotFound, "it names no class, and driver " + driver +
                                                  " has no default VolumeSnapshotClass");
  }
  return Error::NotApplied(Code::kFailedPrecondition,
                           "it names no class, and driver " + driver + " has " +
                               std::to_string(defaults.size()) +
                               " default VolumeSnapshotClasses: " + Join(defaults, ", "));
}

// ---- of a content that is there -----------------------------------------------------------------

void SnapshotObjects::LookAtNamedContent(const VolumeSnapshot& snapshot) {
  const ObjectKey key = SnapshotKey(snapshot);
  const std::string& name = snapshot.spec.volume_snapshot_content_name;
  const ContentPtr content = FindContent(name);
  if (!hooks_.why_not_yet().empty()) return RetryLater(key);
  if (const std::optional<Trouble> trouble = WhyNotBound(snapshot, name, content)) {
    return Fail(key, *trouble);
  }
  if (!hooks_.uid_on_record(SnapshotContentKey(*content))) return RetryLater(key);
  const SnapshotBindingRecord* const binding = bindings_.Find(name);
  // The one that was bound to another content of this name is gone.
  if (binding != nullptr && binding->content_uid != content->metadata.uid) bindings_.Forget(name);
  Bound(snapshot, name, content->metadata.uid, *parts_.maker.Find(content->spec.snapshot_handle));
}

std::optional<SnapshotObjects::Trouble> SnapshotObjects::WhyNotBound(
    const VolumeSnapshot& snapshot, const std::string& name, const ContentPtr& content) const {
  const std::string what = "VolumeSnapshotContent " + name;
  const auto trouble = [&what](const char* reason, Code code, const std::string& text) {
    return Trouble{reason, Error::NotApplied(code, what + text)};
  };
  if (content == nullptr) return trouble(kContentMissing, Code::kNotFound, " is missing");
  const VolumeSnapshotContentSpec& spec = content->spec;
  if (spec.snapshot_handle.empty()) {
    return trouble(kContentMismatch, Code::kInvalidArgument,
                   " is dynamically provisioned while expecting a pre-provisioned one");
  }
  const SnapshotReference& ref = spec.volume_snapshot_ref;
  const SnapshotBindingRecord* const binding = bindings_.Find(name);
  const bool is_anothers = binding != nullptr && binding->uid != snapshot.metadata.uid &&
                           binding->content_uid == content->metadata.uid;
  if (is_anothers || ref.name_space != snapshot.metadata.name_space ||
      ref.name != snapshot.metadata.name ||
      (!ref.uid.empty() && ref.uid != snapshot.metadata.uid)) {
    return trouble(kContentMisbound, Code::kFailedPrecondition,
                   " is bound to a different snapshot");
  }
  if (bindings_.IsUnreadable(name)) {
    return trouble(kBindFailed, Code::kFailedPrecondition,
                   " may be bound to another snapshot: its record cannot be read");
  }
  if (binding == nullptr && hooks_.deleted_since(SnapshotContentKey(*content))) {
    return trouble(kBindFailed, Code::kFailedPrecondition, " is being deleted");
  }
  if (spec.driver != parts_.maker.driver()) {
    return trouble(kBindFailed, Code::kUnimplemented,
                   " is of driver " + spec.driver + ", whose snapshots this node does not have");
  }
  const std::optional<SnapshotRecord> record = parts_.maker.Find(spec.snapshot_handle);
  if (!record || !IsCut(record->phase)) {
    return trouble(kBindFailed, Code::kNotFound,
                   " names snapshot " + spec.snapshot_handle + ", which is not there");
  }
  return std::nullopt;
}

}  // namespace volumed
