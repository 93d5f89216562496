#include "volumemanager/claims/object_commands.h"

#include <memory>
#include <utility>

#include "kube/object_directory.h"
#include "volumemanager/claims/claims.h"
#include "volumemanager/claims/known_objects.h"
#include "volumemanager/claims/provisioning.h"
#include "volumemanager/pod_deletion_answers.h"
#include "volumemanager/readiness.h"

namespace volumed {
namespace {

// Kinds whose objects, once deleted, wait until nobody uses them.
bool IsProtected(ObjectKind kind) {
  return kind == ObjectKind::kPersistentVolume || kind == ObjectKind::kPersistentVolumeClaim ||
         kind == ObjectKind::kVolumeSnapshot || kind == ObjectKind::kVolumeSnapshotContent;
}

}  // namespace

ObjectCommands::ObjectCommands(Parts parts, Hooks hooks, std::set<std::string> removal_deletes)
    : parts_(parts), hooks_(std::move(hooks)), removal_deletes_(std::move(removal_deletes)) {}

// A command's number must be higher than those of all commands before. Some of these are known only
// by the files of the objects that they gave, so the directory of applied objects must be loaded.
std::optional<Error> ObjectCommands::WhyNoCommand() const {
  if (!parts_.readiness.loaded()) return NotLoaded();
  for (const SourceStatus& source : parts_.catalog.Sources()) {
    if (source.name == ObjectDirectory::kSourceName && !source.complete) {
      return Error::NotApplied(Code::kUnavailable,
                               "the directory of applied objects is not loaded yet");
    }
  }
  return std::nullopt;
}

void ObjectCommands::Number(const std::function<void(Result<uint64_t>)>& done) {
  if (const std::optional<Error> why_not = WhyNoCommand()) return done(*why_not);
  parts_.deleted.Saw(parts_.catalog.last_number());
  parts_.deleted.TakeNumber(done);
}

// Records that were restored from a copy may know fewer commands than the files of the objects that
// commands gave.
void ObjectCommands::DeleteByCommand(const DeletedObjects::Id& object, bool at_once,
                                     DeletedObjects::Done done) {
  parts_.deleted.Saw(parts_.catalog.last_number());
  parts_.deleted.Delete(object, at_once, std::move(done));
}

void ObjectCommands::Delete(const ObjectKey& key, const Done& done) {
  parts_.claims.DecideNow();
  if (const std::optional<Error> why_not = WhyNoCommand())
    return PostAnswer(parts_.scheduler, done, *why_not);
  const std::set<std::string> uids = UidsOf(key);
  if (uids.empty()) {
    // The object was deleted before; the answer to that command may have been lost.
    const bool ended = parts_.deleted.EndedBy(key).has_value();
    return PostAnswer(
        parts_.scheduler, done,
        ended ? OkStatus()
              : Status(Error::NotApplied(Code::kNotFound, "there is no " + ToString(key))));
  }
  struct Answers {
    size_t open = 0;
    Status first_error = OkStatus();
  };
  const auto answers = std::make_shared<Answers>(Answers{uids.size(), OkStatus()});
  const auto answer = [this, answers, owner = alive_.watch(), done](const Status& status) {
    if (answers->first_error.ok()) answers->first_error = status;
    if (--answers->open == 0 && owner.alive()) {
      PostAnswer(parts_.scheduler, done, answers->first_error);
    }
  };
  for (const std::string& uid : uids) DeleteByCommand({key, uid}, !IsProtected(key.kind), answer);
}

void ObjectCommands::GiveUpUndo(const std::string& volume, const Done& done) {
  if (const std::optional<Error> why_not = WhyNoCommand()) {
    return PostAnswer(parts_.scheduler, done, *why_not);
  }
  parts_.provisioning.GiveUp(
      volume, [this, done](const Status& status) { PostAnswer(parts_.scheduler, done, status); });
}

void ObjectCommands::GiveUpReclaim(const std::string& volume, const std::string& left,
                                   const Done& done) {
  if (const std::optional<Error> why_not = WhyNoCommand()) {
    return PostAnswer(parts_.scheduler, done, *why_not);
  }
  const ObjectKey key{ObjectKind::kPersistentVolume, "", volume};
  const std::set<std::string> uids = UidsOf(key);
  if (uids.size() != 1) {
    return PostAnswer(parts_.scheduler, done,
                      Error::NotApplied(Code::kNotFound, "there is no " + ToString(key)));
  }
  parts_.deleted.Saw(parts_.catalog.last_number());
  parts_.deleted.LeaveStorage({key, *uids.begin()}, [this, volume, left, owner = alive_.watch(),
                                                     done](const Status& status) {
    if (!owner.alive()) return;
    if (status.ok()) parts_.claims.TellReclaimGivenUp(volume, left);
    PostAnswer(parts_.scheduler, done, status);
  });
}

// The uids that the name stands for: that of the object or, if no source has it or it cannot be
// read, those in the records of that name. Empty if there is nothing of that name.
std::set<std::string> ObjectCommands::UidsOf(const ObjectKey& key) const {
  if (const ObjectPtr object = parts_.catalog.FindObject(key)) return {MetaOf(*object).uid};
  std::set<std::string> uids;
  if (key.kind == ObjectKind::kPersistentVolumeClaim) {
    const ClaimKey claim{key.name_space, key.name};
    uids.insert(parts_.claims.BoundUid(claim));
    uids.merge(parts_.provisioning.ClaimUids(claim));
  } else if (key.kind == ObjectKind::kPersistentVolume) {
    const PersistentVolumePtr volume = parts_.claims.FindVolumeObject(key.name);
    if (volume != nullptr) uids.insert(volume->metadata.uid);
  }
  uids.insert(parts_.known.KnownUidOf(key));
  uids.erase("");
  std::erase_if(uids, [&](const std::string& uid) {
    return parts_.deleted.HasEnded({key, uid}) || HasReleased({key, uid});
  });
  if (uids.empty() && parts_.catalog.MayBeThere(key)) uids.insert("");
  return uids;
}

// Whether this is a claim that has left the volume which was made for it: the next claim of its
// name is another one. The record alone decides. The answer must be the same before the first
// decision of this agent, and while the row is written again because the deletion of the volume
// failed or was done.
bool ObjectCommands::HasReleased(const DeletedObjects::Id& claim) const {
  return claim.first.kind == ObjectKind::kPersistentVolumeClaim &&
         parts_.claims.HasLeft(claim, ProvisionedVolumeName(claim.second));
}

std::string ObjectCommands::UidOnRecord(const ObjectKey& object) const {
  const std::set<std::string> uids = UidsOf(object);
  return uids.empty() ? "" : *uids.begin();
}

bool ObjectCommands::IsOnRecord(const ObjectKey& object) const {
  return parts_.known.IsOnRecord(object);
}

std::optional<int64_t> ObjectCommands::DeletedSince(const ObjectKey& object) const {
  const ObjectPtr known = parts_.catalog.FindObject(object);
  const std::string uid = known == nullptr ? UidOnRecord(object) : MetaOf(*known).uid;
  const DeletedObjectRecord* deleted = parts_.deleted.Find({object, uid});
  if (deleted == nullptr || deleted->ended) return std::nullopt;
  return deleted->since_unix_ms;
}

void ObjectCommands::LetGo(const DeletedObjects::Id& object) {
  if (parts_.deleted.Find(object) != nullptr) return parts_.deleted.End(object);
  // A deletion mark in a manifest is no command.
  const std::optional<ObjectOrigin> origin = parts_.catalog.OriginOf(object.first);
  const bool ours =
      origin && (origin->source == ObjectDirectory::kSourceName ||
                 origin->source == Provisioning::kSourceName || origin->source == kSnapshotSource);
  if (ours && !parts_.deleted.IsKnown(object))
    DeleteByCommand(object, /*at_once=*/true, [](const Status&) {});
}

// Ends the object with its storage, as the controller deletes the object once its plugin has
// deleted the storage. Otherwise the manifest would seem to name a volume that has storage.
// Source: pv_controller.go@v1.36.2 (deleteVolumeOperation).
void ObjectCommands::EndWithStorage(const DeletedObjects::Id& volume) {
  if (parts_.deleted.IsKnown(volume)) return parts_.deleted.End(volume);
  const ObjectPtr object = parts_.catalog.FindObject(volume.first);
  if (object == nullptr || MetaOf(*object).uid != volume.second) return;
  if (parts_.catalog.OriginOf(volume.first)->source == Provisioning::kSourceName) return;
  DeleteByCommand(volume, /*at_once=*/true, [](const Status&) {});
}

void ObjectCommands::DeletionChanged(const DeletedObjects::Id& object) {
  const DeletedObjectRecord deleted = *parts_.deleted.Find(object);
  if (deleted.ended) TakeAway(deleted);
  hooks_.changed(object.first);
  parts_.claims.MarkDirty();
}

void ObjectCommands::TakeAway(const DeletedObjectRecord& deleted) {
  const ObjectKey& key = deleted.object;
  if (key.kind == ObjectKind::kPersistentVolume) parts_.provisioning.Remove(key.name);
  parts_.catalog.End(key, deleted.uid, deleted.number);
  if (hooks_.remove_object) hooks_.remove_object(key, deleted.number);
}

// Deletes the object if it has left the directory of a source in which removal is the command.
void ObjectCommands::DeleteIfRemoved(const ObjectKey& key) {
  const std::optional<ObjectStanding> standing = parts_.catalog.StandingOf(key);
  if (!standing || !standing->missing) return;
  const std::string& source = standing->origin.source;
  if (!removal_deletes_.contains(source)) return;
  // The object may have been moved while no agent ran; then nobody has given the command.
  if (!parts_.catalog.WhereItMayHaveMoved(source).empty()) return;
  const DeletedObjects::Id id{key, MetaOf(*parts_.catalog.FindObject(key)).uid};
  if (!parts_.deleted.IsKnown(id))
    DeleteByCommand(id, !IsProtected(key.kind), [](const Status&) {});
}

void ObjectCommands::DeleteWhatHasMovedNowhere() {
  if (removal_deletes_.empty() || all_were_in_order_ || !parts_.readiness.Ready()) return;
  all_were_in_order_ = parts_.catalog.WhereItMayHaveMoved("").empty();
  DeleteWhatWasRemoved();
}

// The last agent may have ended between the removal and the command.
void ObjectCommands::DeleteWhatWasRemoved() {
  for (const ObjectKind kind : kAllObjectKinds) {
    if (!OutlivesPods(kind)) continue;
    for (const ObjectKey& key : parts_.catalog.KeysOf(kind, "")) DeleteIfRemoved(key);
  }
}

void ObjectCommands::ForgetDeleted(const ObjectKey& key) {
  if (parts_.catalog.IsEnded(key)) return;  // another object of its name has ended since
  for (const DeletedObjectRecord& deleted : parts_.deleted.All()) {
    const DeletedObjects::Id id{deleted.object, deleted.uid};
    if (deleted.object != key || !deleted.ended) continue;
    // Without this row the next agent would take an object that is still on record for Missing. If
    // a volume's binding is on record as released, that row says enough; with this row the next
    // agent would refuse the claim that has the name since.
    if (!parts_.known.IsOnRecord(key) || parts_.claims.Knows(id) ||
        (parts_.provisioning.KnowsClaim(deleted.uid) && !HasReleased(id))) {
      unlisted_.insert(key);
    } else {
      parts_.deleted.Forget(id);
    }
  }
}

void ObjectCommands::ForgetUnlisted() {
  for (const ObjectKey& key : std::exchange(unlisted_, {})) ForgetDeleted(key);
}

// Repeats what the last agent was told to do and may not have done.
void ObjectCommands::TakeAwayEnded() {
  for (const DeletedObjectRecord& deleted : parts_.deleted.All()) {
    if (deleted.ended) TakeAway(deleted);
  }
}

}  // namespace volumed
