// KubeletVolumeManager: commands on objects other than pods: what they delete, and when that goes.
#include <utility>

#include "kube/object_directory.h"
#include "volumemanager/kubelet_volume_manager_impl.h"

namespace volumed {
namespace {

// Kinds whose objects, once deleted, wait until nobody uses them.
bool IsProtected(ObjectKind kind) {
  return kind == ObjectKind::kPersistentVolume || kind == ObjectKind::kPersistentVolumeClaim;
}

}  // namespace

// A command's number must be higher than those of all commands before. Some of these are known only
// by the files of the objects that they gave, so the directory of applied objects must be loaded.
std::optional<Error> KubeletVolumeManager::Impl::WhyNoCommand() const {
  if (!loaded_) {
    return Error::NotApplied(Code::kUnavailable, "the records of the last run are not loaded yet");
  }
  for (const SourceStatus& source : parts_.catalog.Sources()) {
    if (source.name == ObjectDirectory::kSourceName && !source.complete) {
      return Error::NotApplied(Code::kUnavailable,
                               "the directory of applied objects is not loaded yet");
    }
  }
  return std::nullopt;
}

void KubeletVolumeManager::Impl::NumberCommand(const std::function<void(Result<uint64_t>)>& done) {
  if (const std::optional<Error> why_not = WhyNoCommand()) return done(*why_not);
  deleted_.Saw(parts_.catalog.last_number());
  deleted_.TakeNumber(done);
}

// Records that were restored from a copy may know fewer commands than the files of the objects that
// commands gave.
void KubeletVolumeManager::Impl::DeleteByCommand(const DeletedObjects::Id& object, bool at_once,
                                                 DeletedObjects::Done done) {
  deleted_.Saw(parts_.catalog.last_number());
  deleted_.Delete(object, at_once, std::move(done));
}

void KubeletVolumeManager::Impl::DeleteObject(const ObjectKey& key, Done done) {
  if (const std::optional<Error> why_not = WhyNoCommand()) return PostAnswer(done, *why_not);
  const std::set<std::string> uids = UidsOf(key);
  if (uids.empty()) {
    // The object was deleted before; the answer to that command may have been lost.
    const bool ended = deleted_.EndedBy(key).has_value();
    return PostAnswer(
        done, ended ? OkStatus()
                    : Status(Error::NotApplied(Code::kNotFound, "there is no " + ToString(key))));
  }
  struct Answers {
    size_t open = 0;
    Status first_error = OkStatus();
  };
  const auto answers = std::make_shared<Answers>(Answers{uids.size(), OkStatus()});
  const auto answer = [this, answers, alive = std::weak_ptr<bool>(alive_),
                       done](const Status& status) {
    if (answers->first_error.ok()) answers->first_error = status;
    if (--answers->open == 0 && !alive.expired()) PostAnswer(done, answers->first_error);
  };
  for (const std::string& uid : uids) DeleteByCommand({key, uid}, !IsProtected(key.kind), answer);
}

// The uids that the name stands for: that of the object or, if no source has it or it cannot be
// read, those in the records of that name. Empty if there is nothing of that name.
std::set<std::string> KubeletVolumeManager::Impl::UidsOf(const ObjectKey& key) const {
  if (const ObjectPtr object = parts_.catalog.FindObject(key)) return {MetaOf(*object).uid};
  std::set<std::string> uids;
  if (key.kind == ObjectKind::kPersistentVolumeClaim) {
    const ClaimKey claim{key.name_space, key.name};
    uids.insert(claims_.BoundUid(claim));
    uids.merge(provisioning_.ClaimUids(claim));
  } else if (key.kind == ObjectKind::kPersistentVolume) {
    const PersistentVolumePtr volume = claims_.FindVolumeObject(key.name);
    if (volume != nullptr) uids.insert(volume->metadata.uid);
  }
  uids.insert(known_.KnownUidOf(key));
  uids.erase("");
  std::erase_if(uids, [&](const std::string& uid) {
    return deleted_.HasEnded({key, uid}) || HasReleased({key, uid});
  });
  if (uids.empty() && parts_.catalog.MayBeThere(key)) uids.insert("");
  return uids;
}

// Whether this is a claim that has left the volume which was made for it: the next claim of its
// name is another one.
bool KubeletVolumeManager::Impl::HasReleased(const DeletedObjects::Id& claim) const {
  const std::string volume = ProvisionedVolumeName(claim.second);
  return claim.first.kind == ObjectKind::kPersistentVolumeClaim && !claims_.Knows(claim) &&
         claims_.FindVolume(volume) != nullptr && claims_.BoundVolumes().contains(volume);
}

std::string KubeletVolumeManager::Impl::UidOnRecord(const ObjectKey& object) const {
  const std::set<std::string> uids = UidsOf(object);
  return uids.empty() ? "" : *uids.begin();
}

std::optional<int64_t> KubeletVolumeManager::Impl::DeletedSince(const ObjectKey& object) const {
  const ObjectPtr known = parts_.catalog.FindObject(object);
  const std::string uid = known == nullptr ? UidOnRecord(object) : MetaOf(*known).uid;
  const DeletedObjectRecord* deleted = deleted_.Find({object, uid});
  if (deleted == nullptr || deleted->ended) return std::nullopt;
  return deleted->since_unix_ms;
}

void KubeletVolumeManager::Impl::LetObjectGo(const DeletedObjects::Id& object) {
  if (deleted_.Find(object) != nullptr) return deleted_.End(object);
  // A deletion mark in a manifest is no command.
  const std::optional<ObjectOrigin> origin = parts_.catalog.OriginOf(object.first);
  const bool ours = origin && (origin->source == ObjectDirectory::kSourceName ||
                               origin->source == Provisioning::kSourceName);
  if (ours && !deleted_.IsKnown(object)) DeleteByCommand(object, /*at_once=*/true, [](Status) {});
}

// Ends the object with its storage, as the controller deletes the object once its plugin has
// deleted the storage. Otherwise the manifest would seem to name a volume that has storage.
// Source: pv_controller.go@v1.36.2 (deleteVolumeOperation).
void KubeletVolumeManager::Impl::EndWithStorage(const DeletedObjects::Id& volume) {
  if (deleted_.IsKnown(volume)) return deleted_.End(volume);
  const ObjectPtr object = parts_.catalog.FindObject(volume.first);
  if (object == nullptr || MetaOf(*object).uid != volume.second) return;
  if (parts_.catalog.OriginOf(volume.first)->source == Provisioning::kSourceName) return;
  DeleteByCommand(volume, /*at_once=*/true, [](const Status&) {});
}

void KubeletVolumeManager::Impl::DeletionChanged(const DeletedObjects::Id& object) {
  const DeletedObjectRecord deleted = *deleted_.Find(object);
  if (deleted.ended) TakeAway(deleted);
  ObjectChanged(object.first);
  claims_.MarkDirty();
}

void KubeletVolumeManager::Impl::TakeAway(const DeletedObjectRecord& deleted) {
  const ObjectKey& key = deleted.object;
  if (key.kind == ObjectKind::kPersistentVolume) provisioning_.Remove(key.name);
  parts_.catalog.End(key, deleted.uid, deleted.number);
  if (settings_.remove_object) settings_.remove_object(key, deleted.number);
}

// Deletes the object if it has left the directory of a source in which removal is the command.
void KubeletVolumeManager::Impl::DeleteIfRemoved(const ObjectKey& key) {
  const std::optional<ObjectStanding> standing = parts_.catalog.StandingOf(key);
  if (!standing || !standing->missing) return;
  const std::string& source = standing->origin.source;
  if (!settings_.removal_deletes.contains(source)) return;
  // The object may have been moved while no agent ran; then nobody has given the command.
  if (!parts_.catalog.WhereItMayHaveMoved(source).empty()) return;
  const DeletedObjects::Id id{key, MetaOf(*parts_.catalog.FindObject(key)).uid};
  if (!deleted_.IsKnown(id)) DeleteByCommand(id, !IsProtected(key.kind), [](const Status&) {});
}

void KubeletVolumeManager::Impl::DeleteWhatHasMovedNowhere() {
  if (settings_.removal_deletes.empty() || all_were_in_order_ || !Ready()) return;
  all_were_in_order_ = parts_.catalog.WhereItMayHaveMoved("").empty();
  DeleteWhatWasRemoved();
}

// The last agent may have ended between the removal and the command.
void KubeletVolumeManager::Impl::DeleteWhatWasRemoved() {
  for (const ObjectKind kind : kAllObjectKinds) {
    if (!OutlivesPods(kind)) continue;
    for (const ObjectKey& key : parts_.catalog.KeysOf(kind, "")) DeleteIfRemoved(key);
  }
}

void KubeletVolumeManager::Impl::ForgetDeleted(const ObjectKey& key) {
  if (parts_.catalog.IsEnded(key)) return;  // another object of its name has ended since
  for (const DeletedObjectRecord& deleted : deleted_.All()) {
    const DeletedObjects::Id id{deleted.object, deleted.uid};
    if (deleted.object != key || !deleted.ended) continue;
    // Without this row the next agent would take an object that is still on record for Missing. If
    // a volume's binding is on record as released, that row says enough; with this row the next
    // agent would refuse the claim that has the name since.
    if (!known_.IsOnRecord(key) || claims_.Knows(id) ||
        (provisioning_.KnowsClaim(deleted.uid) && !HasReleased(id))) {
      unlisted_.insert(key);
    } else {
      deleted_.Forget(id);
    }
  }
}

void KubeletVolumeManager::Impl::ForgetUnlisted() {
  for (const ObjectKey& key : std::exchange(unlisted_, {})) ForgetDeleted(key);
}

}  // namespace volumed
