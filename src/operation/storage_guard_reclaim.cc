// StorageGuard: what is asked before the content of a volume is deleted, and what is known of
// volumes whose objects nobody knows.
#include <utility>

#include "base/strings.h"
#include "mounter/host_directory.h"
#include "operation/storage_guard.h"
#include "operation/storage_record_identity.h"
#include "os/mount_index.h"
#include "os/mount_table.h"
#include "os/storage_identity.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

// The filesystem and the place in it that a key "fs:<major>:<minor>:<path>" tells; empty for
// others.
std::optional<FilesystemPart> PartOf(const std::string& key) {
  const auto rest = StripPrefix(key, "fs:");
  if (!rest) return std::nullopt;
  const size_t first = rest->find(':');
  const size_t second = first == std::string::npos ? first : rest->find(':', first + 1);
  if (second == std::string::npos) return std::nullopt;
  const auto high = ParseUint64(rest->substr(0, first));
  const auto low = ParseUint64(rest->substr(first + 1, second - first - 1));
  if (!high || !low) return std::nullopt;
  return FilesystemPart{static_cast<uint32_t>(*high), static_cast<uint32_t>(*low),
                        std::string(rest->substr(second + 1))};
}

// Of a filesystem without a UUID nothing tells whether a missing directory was removed or its disk
// was unmounted, unless this boot's own try had taken it there: then the disk would have left the
// place of another filesystem's number.
bool WasRemovedBy(const StorageReservationRecord& begun, const StorageOwnerRecord& recorded,
                  const StorageIdentity& now) {
  return now.type == FileType::kMissing && !begun.own_keys.empty() && begun.own_keys == now.own &&
         StorageDifference(recorded.object, now.object).empty();
}

}  // namespace

// What a driver has meets only what the same driver has, and the other way round. Of that there is
// nothing to find out, and who names it by now is known anyway: what `others` say is not kept. They
// kept the reclaim from beginning; who has come since then is given to nobody before its end.
Status StorageGuard::IdentifyAll(const StorageHolder& holder, const StorageName& name,
                                 const std::vector<KnownStorage>& others, const CallOptions& call) {
  if (!name.driver.empty()) {
    if (holder.was_begun) return OkStatus();
    for (const KnownStorage& other : others) {
      const bool is_others = other.name == name && other.holder.volume != holder.volume;
      if (is_others) return HeldBy(holder, name, other.holder);
    }
    return OkStatus();
  }
  std::set<std::string> known = {holder.volume};
  for (const KnownStorage& other : others) known.insert(other.holder.volume);
  {
    const MutexLock lock(mu_);
    for (const auto& [recorded, record] : owners_) known.insert(recorded);
  }
  table_.ReleaseKnown([&known](const StorageHolder& one) {
    return !NamesStorage(one) && !known.contains(one.volume);
  });
  for (const KnownStorage& other : others) {
    if (!other.name.driver.empty()) continue;
    CallOptions look = LookAt(other.name, settings_.look);
    look.cancel = call.cancel;
    const Result<StorageIdentity> identity = Identify(other.name, FindUsers::kNo, look);
    if (!identity.ok()) {
      return identity.error().With("find out whether " + other.holder.text +
                                   " has storage in the way");
    }
    table_.Take(other.holder, *identity);
  }
  return OkStatus();
}

// Whoever has mounted the directory, or a part of it, elsewhere sees it emptied.
Status StorageGuard::CheckNothingShows(const StorageName& name, const StorageIdentity& identity,
                                       const CallOptions& call) {
  // As it is: the table that is kept misses mounts of directories that were renamed.
  ASSIGN_OR_RETURN(MountListing listing, kernel_.Call(ListMounts{}, call));
  const MountSnapshot all(std::move(listing.mounts));
  for (const std::string& key : identity.own) {
    const std::optional<FilesystemPart> part = PartOf(key);
    if (!part) continue;
    ListMounts question;
    question.showing = FilesystemPart{part->device_major, part->device_minor, ""};
    for (const MountEntry& mount : all.Find(question)) {
      if (!IsAtOrBelow(mount.root, part->root)) continue;
      // The mount by which the volume's own path leads there.
      if (IsAtOrBelow(name.path, mount.mount_point)) continue;
      return Refused(name.ToString() + " is not emptied: it, or a part of it, is mounted at " +
                     mount.mount_point);
    }
  }
  return OkStatus();
}

// No work of another boot goes on, but for a driver's: what has become of its call a boot of this
// node does not tell.
bool StorageGuard::GoesOn(const StorageReservationRecord& begun) const {
  return begun.boot_id == boot_id_ || !begun.name.driver.empty();
}

StorageReservationRecord StorageGuard::BegunReclaim(const std::string& id,
                                                    const StorageName& name) const {
  const MutexLock lock(mu_);
  const auto begun = reserved_.find(id);
  const bool is_it =
      begun != reserved_.end() && GoesOn(begun->second) && begun->second.name == name;
  return is_it ? begun->second : StorageReservationRecord();
}

Status StorageGuard::PutReservation(const StorageHolder& holder, const StorageName& name,
                                    const StorageIdentity& identity) {
  StorageReservationRecord record{holder, name, boot_id_, identity.own, identity.object};
  // What is missing by now is what an earlier try had taken.
  StorageReservationRecord begun = BegunReclaim(holder.id, name);
  if (identity.type == FileType::kMissing && !begun.own_keys.empty()) {
    record.own_keys = std::move(begun.own_keys);
    record.object = std::move(begun.object);
  }
  RETURN_IF_ERROR(store_.Put(EncodeRecord(record), kStorageRecordDurability));
  const MutexLock lock(mu_);
  reserved_[holder.id] = std::move(record);
  return OkStatus();
}

Status StorageGuard::CheckRecorded(const StorageHolder& holder, const StorageName& name,
                                   const std::string& claim_uid, const StorageIdentity& now) {
  const std::string& volume = holder.volume;
  RETURN_IF_ERROR(CheckReadable(volume));
  const StorageReservationRecord begun = BegunReclaim(holder.id, name);
  const std::optional<StorageOwnerRecord> record = FindOwner(volume);
  const bool is_other = now.type != FileType::kDirectory && now.type != FileType::kRegular &&
                        now.type != FileType::kMissing;
  if (record && record->object.inode != 0 && is_other) {
    return Refused(name.ToString() + " is no directory any more: it is not emptied");
  }
  if (record) {
    if (record->name != name && !record->name.path.empty()) {
      return Refused("persistent volume " + volume + " was used at " + record->name.ToString() +
                     "; " + name.ToString() + " is another place, and is not emptied for it");
    }
    const std::string difference = now.type == FileType::kMissing
                                       ? RemovalDoubt(record->object, now.object)
                                       : StorageDifference(record->object, now.object);
    if (!difference.empty() && !WasRemovedBy(begun, *record, now)) {
      return Refused(name.ToString() +
                     " is another directory than the one that persistent volume " + volume +
                     " was used at: " + difference + "; it is not emptied");
    }
  }
  const std::string other =
      now.type == FileType::kMissing ? "" : StorageDifference(begun.object, now.object);
  if (!other.empty()) {
    return Refused(name.ToString() +
                   " is another directory than the one whose deletion was begun "
                   "for persistent volume " +
                   volume + ": " + other + "; it is not emptied");
  }
  // The volume may have been given to a claim that never used it.
  if (now.owner.empty() || now.owner == claim_uid) return OkStatus();
  if (record && now.owner == record->claim_uid) return OkStatus();
  return Refused(
      name.ToString() + " is marked as storage of claim " + now.owner + ", and persistent volume " +
      volume + " is that of claim " + claim_uid +
      ": it is not emptied; if what is in it may go, `setfattr -x trusted.volumed.owner " +
      name.ToString() + "`");
}

Result<StorageIdentity> StorageGuard::TakeForReclaim(const StorageHolder& holder,
                                                     const StorageName& name,
                                                     const std::string& claim_uid,
                                                     const std::vector<KnownStorage>& others,
                                                     const CallOptions& call) {
  RETURN_IF_ERROR(Load());
  RETURN_IF_ERROR(IdentifyAll(holder, name, others, call));
  if (name.driver.empty()) {
    RETURN_IF_ERROR(IdentifyExpected(holder.use, call));
  } else {
    ReadAll();
  }
  ASSIGN_OR_RETURN(const StorageIdentity identity, Identify(name, FindUsers::kNo, call));
  RETURN_IF_ERROR(Reserve(holder, name, identity));
  const Status free = [&]() -> Status {
    RETURN_IF_ERROR(CheckRecorded(holder, name, claim_uid, identity));
    RETURN_IF_ERROR(CheckReclaimNotOnRecord(holder, name, identity, call));
    RETURN_IF_ERROR(CheckNothingWasMovedIn(holder, name, identity, call));
    RETURN_IF_ERROR(CheckNothingShows(name, identity, call));
    RETURN_IF_ERROR(CheckUnknown(holder, &identity, call));
    return PutReservation(holder, name, identity);
  }();
  if (free.ok()) return identity;
  bool on_record = false;
  {
    const MutexLock lock(mu_);
    const auto earlier = reserved_.find(holder.id);
    on_record = earlier != reserved_.end() && GoesOn(earlier->second);
  }
  // What an earlier try may have begun stays reserved.
  if (!on_record) table_.Release(holder.id);
  return free.error();
}

Result<bool> StorageGuard::IsBeingReclaimed(const std::string& id, const StorageName& name) {
  RETURN_IF_ERROR(Load());
  {
    const MutexLock lock(mu_);
    const auto earlier = reserved_.find(id);
    const bool has_row = earlier != reserved_.end();
    // Without a row it may be one that cannot be read.
    const bool may_go_on = has_row ? GoesOn(earlier->second) : ended_.contains(id);
    // One of a driver's storage that has ended kept no volume from being given away: all are asked
    // anew.
    const bool has_ended = !name.driver.empty() && ended_.contains(id);
    const bool is_here = has_row && !has_ended && earlier->second.name == name;
    // What does not go on is in nobody's way.
    if (!may_go_on || is_here) {
      ended_.erase(id);
      return may_go_on;
    }
    ended_.insert(id);
  }
  const Status released = ReleaseEnded(id);
  if (released.ok()) return false;
  if (released.error().code() != Code::kNotFound) return released.error();
  // Whoever came to the storage meanwhile has released it already, unless another try has begun.
  const MutexLock lock(mu_);
  if (!reserved_.contains(id)) return false;
  return Error::NotApplied(Code::kAborted,
                           "another try of the reclaim " + id + " has just begun: try again");
}

Result<std::optional<StorageName>> StorageGuard::BegunOfDriver(const std::string& id) {
  RETURN_IF_ERROR(Load());
  const MutexLock lock(mu_);
  const auto begun = reserved_.find(id);
  const bool is_open =
      begun != reserved_.end() && !begun->second.name.driver.empty() && !ended_.contains(id);
  return is_open ? std::optional(begun->second.name) : std::nullopt;
}

// What the row says is lost, but a worker has the reclaim's key as long as it is at it: whoever
// comes to the storage of the volume asks for that. A bit of the row's key may have turned, or the
// row be gone, and then it may be about any volume.
void StorageGuard::ExpectReclaims(const std::string& id) {
  for (const auto& [key, owner] : owners_) {
    if (owner.retained != 0 || owner.name.path.empty()) continue;
    const StorageHolder reclaim{.id = "reclaim/" + owner.volume,
                                .volume = owner.volume,
                                .use = StorageUse::kReclaim,
                                .persistent = true,
                                .text = "persistent volume " + owner.volume};
    if (!id.empty() && id != reclaim.id) continue;
    ExpectInTable({reclaim, owner.name});
    ended_.insert(reclaim.id);
  }
}

Status StorageGuard::EndReclaims(const std::string& volume) {
  RETURN_IF_ERROR(Load());
  std::vector<std::string> ids;
  {
    const MutexLock lock(mu_);
    for (const auto& [id, record] : reserved_) {
      if (record.holder.volume == volume) ids.push_back(id);
    }
    ended_.insert(ids.begin(), ids.end());
  }
  // Else whoever is in its way looks again, or the next start.
  for (const std::string& id : ids) (void)ReleaseEnded(id);
  return OkStatus();
}

Status StorageGuard::ReleaseEnded(const std::string& id) {
  const auto may_be_tried = [&id]() -> Status {
    return Error::NotApplied(Code::kNotFound, "the reclaim " + id + " may be tried again");
  };
  {
    const MutexLock lock(mu_);
    if (!ended_.contains(id)) return may_be_tried();
  }
  // Its worker, which may be one of an agent before this one, has this key until it is done: the
  // call has no other purpose than to ask for the key.
  CallOptions call;
  call.key = id;
  call.deadline = Deadline::After(clock_, settings_.short_look);
  Stat question;
  question.path = HostPath("/");
  const Result<FileInfo> has_key = kernel_.Call(question, call);
  if (!has_key.ok()) {
    return has_key.error().With("find out whether the reclaim " + id + " goes on");
  }
  // Under the lock, so that no try begins meanwhile that would lose its row.
  const MutexLock lock(mu_);
  if (!ended_.contains(id)) return may_be_tried();
  // One that cannot be read is the administrator's.
  if (reserved_.contains(id)) {
    RETURN_IF_ERROR(store_.Remove(kStorageReservationRecordKind, id, kStorageRecordDurability));
  }
  ended_.erase(id);
  reserved_.erase(id);
  taken_.erase(id);
  table_.Release(id);
  return OkStatus();
}

// ---- volumes of which nobody knows the object ---------------------------------------------------

std::set<std::string> StorageGuard::SetUnknown(std::vector<UnknownVolume> unknown) {
  const MutexLock lock(mu_);
  unknown_ = std::move(unknown);
  return std::exchange(held_for_unknown_, {});
}

Status StorageGuard::CheckUnknown(const StorageHolder& holder, const StorageIdentity* identity,
                                  const CallOptions& call) {
  RETURN_IF_ERROR(Load());
  std::vector<UnknownVolume> unknown;
  {
    const MutexLock lock(mu_);
    unknown = unknown_;
  }
  for (const UnknownVolume& one : unknown) {
    if (one.volume == holder.volume) continue;
    Status free = CheckUnknownVolume(one, holder, identity, call);
    if (free.ok()) continue;
    const MutexLock lock(mu_);
    held_for_unknown_.insert(holder.volume);
    return free;
  }
  return OkStatus();
}

Status StorageGuard::CheckUnknownVolume(const UnknownVolume& unknown, const StorageHolder& holder,
                                        const StorageIdentity* identity, const CallOptions& call) {
  const std::string object = unknown.file + (unknown.file.empty() ? "" : ": ") + unknown.reason;
  const auto refused = [&](const std::string& where) {
    return Refused("the storage of " + holder.text + " stays as it is: nobody knows " + where +
                   " PersistentVolume " + unknown.volume + " has: " + object +
                   "; apply it anew, or delete it");
  };
  const std::optional<StorageOwnerRecord> record = FindOwner(unknown.volume);
  if ((!record && !unknown.name) || identity == nullptr) return refused("what storage");
  // Of a volume that names no path of this node, the record of its devices is compared anyway.
  if (record && record->name.path.empty()) return OkStatus();
  const StorageName name = record ? record->name : *unknown.name;
  const bool of_driver = !identity->own.empty() && IsDriverDomain(identity->own.front());
  if (of_driver == name.driver.empty()) return OkStatus();
  CallOptions look = LookAt(name, settings_.look);
  look.cancel = call.cancel;
  const Result<StorageIdentity> its = Identify(name, FindUsers::kNo, look);
  if (!its.ok()) {
    return its.error().With("find out whether persistent volume " + unknown.volume +
                            " has storage in the way");
  }
  // Its disk may not be mounted there, and then its path tells nothing of what it has.
  const bool is_there =
      !record || record->object.inode == 0 ||
      (its->type == FileType::kDirectory && StorageDifference(record->object, its->object).empty());
  if (!is_there) return refused("where the storage at " + name.ToString() + " is that");
  if (!Overlap(*identity, *its)) return OkStatus();
  return Refused("the storage of " + holder.text +
                 " stays as it is: in whole or in part it is at " + name.ToString() +
                 ", which PersistentVolume " + unknown.volume + " has (" + object + ")");
}

Status StorageGuard::Reclaimed(const std::string& volume, const StorageName& name,
                               const StorageIdentity& approved, bool deleted,
                               const CallOptions& call) {
  if (deleted) {
    // Its driver may give the same name to what it makes next.
    NameStorage(volume, nullptr);
    ForgetMade(volume);
  }
  const std::optional<StorageOwnerRecord> record = FindOwner(volume);
  if (!record) return OkStatus();
  if (deleted) return RemoveOwner(volume);
  if (record->marked && !approved.owner.empty()) {
    RETURN_IF_ERROR(Mark(name, approved, "", record->claim_uid, call));
  }
  StorageOwnerRecord emptied = *record;
  emptied.claim_uid.clear();
  emptied.marked = false;
  ForgetIdentity(emptied);
  return PutOwner(std::move(emptied));
}

}  // namespace volumed
