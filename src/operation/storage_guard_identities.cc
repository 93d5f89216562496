// StorageGuard: what is on record as another volume's is that one's, wherever its path leads now: a
// disk may be mounted at another place, or not at all, and a directory may have another name.
#include <utility>

#include "mounter/host_directory.h"
#include "operation/storage_guard.h"
#include "operation/storage_record_identity.h"

namespace volumed {
namespace {

Error OnRecord(const std::string& who, const StorageName& name, const StorageOwnerRecord& there) {
  std::string text = who + " has its storage at " + name.ToString();
  if (there.retained != 0) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             text + ", and in the way is the retained data of PersistentVolume " +
                                 there.volume + ", which is no more (" + there.name.ToString() +
                                 "): move it away or remove it first");
  }
  text +=
      ", which is on record as that of PersistentVolume " + there.volume + ", in whole or in part";
  if (there.mode == StorageMode::kRaw) text += ", whose pods have it as a block device";
  if (!there.name.path.empty() && there.name != name) {
    text += " (used at " + there.name.ToString() + ")";
  }
  return Error::NotApplied(
      Code::kFailedPrecondition,
      text + "; it stays as it is as long as there is PersistentVolume " + there.volume);
}

}  // namespace

std::vector<StorageOwnerRecord> StorageGuard::OtherOwners(const std::string& volume) const {
  std::vector<StorageOwnerRecord> others;
  const MutexLock lock(mu_);
  for (const auto& [name, record] : owners_) {
    if (name != volume && IsUsed(record)) others.push_back(record);
  }
  return others;
}

Status StorageGuard::IdentifyMounted(const std::string& id, const CallOptions& call) {
  StorageName name;
  {
    const MutexLock lock(mu_);
    const auto taken = taken_.find(id);
    // What a plugin has mounted by itself is not known by its device.
    const bool is_known = taken != taken_.end() && IsDevice(taken->second.holder) &&
                          taken->second.holder.use != StorageUse::kShared;
    if (!is_known || devices_.contains(id)) return OkStatus();
    name = taken->second.name;
  }
  ASSIGN_OR_RETURN(StorageIdentity identity, Identify(name, FindUsers::kNo, call));
  const MutexLock lock(mu_);
  if (taken_.contains(id)) devices_[id] = std::move(identity);
  return OkStatus();
}

Status StorageGuard::RecordDevice(const std::string& id, const StorageName& name,
                                  const CallOptions& call) {
  RETURN_IF_ERROR(Load());
  RETURN_IF_ERROR(IdentifyMounted(id, call));
  StorageOwnerRecord record;
  {
    const MutexLock lock(mu_);
    const auto taken = taken_.find(id);
    const auto device = devices_.find(id);
    if (taken == taken_.end() || device == devices_.end()) return OkStatus();
    const StorageHolder& holder = taken->second.holder;
    const auto before = owners_.find(holder.volume);
    if (before != owners_.end()) record = before->second;
    record.volume = holder.volume;
    if (record.name.path.empty()) record.name = name;
    record.mode = holder.use == StorageUse::kRaw ? StorageMode::kRaw : StorageMode::kFilesystem;
    AddIdentity(device->second, record);
  }
  return PutOwner(std::move(record));
}

// Two volumes that name one disk may share it. If the path of the one on record leads elsewhere by
// now, or nowhere, the disk has only come up at the path of this one.
bool StorageGuard::IsNamedByBoth(const StorageOwnerRecord& other, const StorageIdentity& identity,
                                 const CallOptions& call) {
  if (other.name.path.empty() || !other.name.IsOnNode()) return true;
  CallOptions look = LookAt(other.name, settings_.short_look);
  look.cancel = call.cancel;
  const Result<StorageIdentity> its = Identify(other.name, {}, look);
  return its.ok() && its->type == FileType::kBlockDevice && Overlap(*its, identity);
}

// No look where the record itself tells: whoever mounts a disk waits for no other one, unless that
// one is on record as having it.
Status StorageGuard::CheckNotOnRecord(const StorageHolder& holder, const StorageName& name,
                                      const StorageIdentity& identity, const CallOptions& call) {
  if (!IsDevice(holder) || identity.type != FileType::kBlockDevice) return OkStatus();
  for (const StorageOwnerRecord& other : OtherOwners(holder.volume)) {
    if (other.retained != 0) continue;
    const bool ruins = Ruins(holder.use, other.mode);
    bool meets = MeetsDevice(other, identity);
    if (ruins && !meets && !TellsIdentity(other)) {
      const bool has_path = other.name.IsOnNode() && !other.name.path.empty();
      meets = has_path && IsNamedByBoth(other, identity, call);
    }
    if (meets && !ruins) meets = !IsNamedByBoth(other, identity, call);
    if (meets) return OnRecord(holder.text, name, other);
  }
  return OkStatus();
}

Status StorageGuard::CheckDirectoryNotOnRecord(const StorageOwner& owner,
                                               const StorageIdentity& identity,
                                               const CallOptions& call) {
  for (const StorageOwnerRecord& other : OtherOwners(owner.volume)) {
    if (other.retained != 0) continue;  // an administrator gives it on
    if (other.name == owner.name || !IsSameObject(other.object, identity.object)) continue;
    // While that one's own path leads there as well, both volumes name one directory.
    CallOptions look = LookAt(other.name, settings_.look);
    look.cancel = call.cancel;
    const Result<StorageIdentity> its = Identify(other.name, {}, look);
    if (!its.ok()) {
      return its.error().With("find out whether the directory at " + owner.name.ToString() +
                              " is that of persistent volume " + other.volume);
    }
    if (IsSameObject(other.object, its->object)) continue;
    return OnRecord("persistent volume " + owner.volume, owner.name, other);
  }
  return OkStatus();
}

// Whether what is on record by its path and what it was lies in, around, or at `identity`.
Result<bool> StorageGuard::LiesInWay(const StorageName& name, const StorageIdentity& identity,
                                     const StorageName& recorded, const StorageObject& object,
                                     const CallOptions& call) {
  if (object.inode == 0 || !MayShareFilesystem(object, identity.object)) return false;
  CallOptions look = LookAt(recorded, settings_.look);
  look.cancel = call.cancel;
  ASSIGN_OR_RETURN(const StorageIdentity its, Identify(recorded, {}, look));
  if (its.object.inode != 0 && StorageDifference(object, its.object).empty()) {
    return Overlap(identity, its);
  }
  // It is not at its path any more. By its handle it is found wherever it is.
  if (object.handle.empty()) return IsSameObject(object, identity.object);
  ASSIGN_OR_RETURN(const StorageIdentity found, FindMoved(name, object, call));
  // From a bind mount nobody sees whether a directory outside of it holds what is bound.
  const bool unseen =
      found.type == FileType::kDirectory && found.own.empty() && found.within.empty();
  if (unseen) {
    return Error::NotApplied(
        Code::kFailedPrecondition,
        "its directory was moved to where no path from " + name.ToString() + " leads");
  }
  return Overlap(identity, found);
}

// Where it lies by now in the filesystem of `name`.
Result<StorageIdentity> StorageGuard::FindMoved(const StorageName& name,
                                                const StorageObject& object,
                                                const CallOptions& call) {
  IdentifyStorage request;
  request.path = HostPath(name.path);
  request.look_for = object;
  CallOptions look = LookAt(name, settings_.look);
  look.cancel = call.cancel;
  return kernel_.Call(request, look);
}

// A pod's container has its directory still after somebody has moved it in here; where that was
// when the pod was given it, is all that the table compares.
Status StorageGuard::CheckNothingWasMovedIn(const StorageHolder& holder, const StorageName& name,
                                            const StorageIdentity& identity,
                                            const CallOptions& call) {
  if (identity.type == FileType::kMissing) return OkStatus();
  for (const HeldObject& held : table_.HeldObjects(holder, identity.object)) {
    // Without a handle nobody can tell where it is, unless it is at the volume's own path.
    StorageIdentity its = identity;
    if (!held.object.handle.empty()) {
      Result<StorageIdentity> found = FindMoved(name, held.object, call);
      if (!found.ok()) {
        return found.error().With("find out whether the storage of " + held.holder.text +
                                  " was moved into that of " + holder.text);
      }
      its = *std::move(found);
    } else if (!IsSameObject(held.object, identity.object)) {
      continue;
    }
    if (!Overlap(identity, its)) continue;
    if (Excludes(held.holder, holder, Meeting(its, identity))) {
      return HeldBy(holder, name, held.holder);
    }
  }
  return OkStatus();
}

// Nobody knows where that has its storage, nor whether it is in the way.
Status StorageGuard::CheckAllReadable(const StorageHolder& holder) const {
  const MutexLock lock(mu_);
  if (unreadable_.empty()) return OkStatus();
  const auto& [key, why] = *unreadable_.begin();
  return Error::NotApplied(Code::kFailedPrecondition,
                           "the storage of " + holder.text +
                               " stays as it is: the record of whose storage is where cannot "
                               "be read for " +
                               key + " (" + why +
                               "); if nothing of it can be in the way, `volumectl records "
                               "accept`, and start the agent anew");
}

Status StorageGuard::CheckReclaimNotOnRecord(const StorageHolder& holder, const StorageName& name,
                                             const StorageIdentity& identity,
                                             const CallOptions& call) {
  if (identity.type == FileType::kMissing) return OkStatus();
  RETURN_IF_ERROR(CheckAllReadable(holder));
  for (const StorageOwnerRecord& other : OtherOwners(holder.volume)) {
    const auto asked = [&](Result<bool> answer) {
      return std::move(answer).With("find out whether persistent volume " + other.volume +
                                    " has storage in the way");
    };
    ASSIGN_OR_RETURN(bool meets, asked(LiesInWay(name, identity, other.name, other.object, call)));
    // An administrator may use the retained disk of a volume that is no more.
    meets = meets || (other.retained == 0 && MeetsDirectory(other, identity));
    for (const StorageFile& file : other.files) {
      if (meets) break;
      ASSIGN_OR_RETURN(meets, asked(LiesInWay(name, identity, {file.path}, file.object, call)));
    }
    if (meets) return OnRecord(holder.text, name, other);
    if (other.retained != 0) RETURN_IF_ERROR(ForgetIfGone(other, call));
  }
  return OkStatus();
}

}  // namespace volumed
