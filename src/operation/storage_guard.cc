#include "operation/storage_guard.h"

#include <cerrno>
#include <chrono>
#include <utility>

#include "base/strings.h"
#include "mounter/host_directory.h"
#include "operation/storage_record_identity.h"
#include "os/mount_index.h"
#include "os/storage_identity.h"

namespace volumed {
namespace {

// Of the look at one storage that is not the operation's own: while it decides a delete, and else.
constexpr auto kLookTimeout = std::chrono::seconds(10);
constexpr auto kShortLookTimeout = std::chrono::seconds(1);

// Begins the ids of the agent's own directories.
constexpr char kOwn[] = "own/";

Error Refused(const std::string& why) { return Error::NotApplied(Code::kFailedPrecondition, why); }

const char* UseText(StorageUse use) {
  switch (use) {
    case StorageUse::kKnown:
      return "";
    case StorageUse::kShared:
      return ", which is in use";
    case StorageUse::kMounted:
      return ", which is mounted";
    case StorageUse::kRaw:
      return ", which a pod has as a block device";
    case StorageUse::kFormat:
      return ", which is being formatted";
    case StorageUse::kReclaim:
      return ", whose content is being deleted";
  }
  __builtin_unreachable();
}

Error HeldBy(const StorageHolder& wanted, const StorageName& name, const StorageHolder& there) {
  return Refused(wanted.text + " has its storage at " + name.ToString() +
                 ", which is also, in whole or in part, that of " + there.text +
                 UseText(there.use));
}

// Storage of an export is known by its name alone: nobody has it mounted.
StorageIdentity OfExport(const StorageName& name) {
  StorageIdentity identity;
  identity.own = {NfsStorageKey(name.server, name.path)};
  identity.within = KeysAbove(identity.own.front());
  return identity;
}

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

}  // namespace

StorageGuard::StorageGuard(Kernel& kernel, RecordStore& store, const Clock& clock, Logger& log,
                           BootId boot_id)
    : kernel_(kernel), store_(store), clock_(clock), log_(log), boot_id_(std::move(boot_id)) {}

void StorageGuard::AddOwnDirectory(const std::string& what, const std::string& path) {
  table_.Expect({.id = kOwn + path,
                 .volume = "",
                 .use = StorageUse::kShared,
                 .persistent = true,
                 .text = what + " " + path},
                {path});
}

void StorageGuard::Expect(const BootId& boot_id, KnownStorage known) {
  if (boot_id != boot_id_) return;
  table_.Expect(known.holder, known.name);
  const MutexLock lock(mu_);
  taken_[known.holder.id] = std::move(known);
}

// ---- taking -------------------------------------------------------------------------------------

CallOptions StorageGuard::LookAt(const StorageName& name, Duration timeout) const {
  CallOptions call;
  call.domain = name.path;
  call.deadline = Deadline::After(clock_, timeout);
  return call;
}

Result<StorageIdentity> StorageGuard::Identify(const StorageName& name, FindUsers users,
                                               const CallOptions& call) {
  if (!name.server.empty()) return OfExport(name);
  CallOptions own = call;
  own.progress = nullptr;
  if (own.domain.empty()) own.domain = name.path;
  const IdentifyStorage request{HostPath(name.path), users != FindUsers::kNo,
                                users == FindUsers::kOfTwins};
  return kernel_.Call(request, own);
}

Status StorageGuard::IdentifyExpected(StorageUse use, const CallOptions& call,
                                      const std::string& prefix) {
  // Only a delete must know all of it. Else a storage that does not answer is not the one that
  // does, and a mounted one is found by the claim on its device.
  const bool decides_delete = use == StorageUse::kReclaim;
  for (const auto& [holder, name] : table_.Expected(use)) {
    if (!holder.id.starts_with(prefix)) continue;
    const bool mounted = holder.use == StorageUse::kShared && !name.path.starts_with("/dev/");
    if (!decides_delete && mounted) continue;
    CallOptions look = LookAt(name, decides_delete ? kLookTimeout : kShortLookTimeout);
    look.cancel = call.cancel;
    const Result<StorageIdentity> identity = Identify(name, FindUsers::kNo, look);
    if (identity.ok()) {
      table_.Identified(holder.id, *identity);
    } else if (decides_delete) {
      return identity.error().With("find out whether " + holder.text + " has storage in the way");
    }
  }
  return OkStatus();
}

Status StorageGuard::Reserve(const StorageHolder& holder, const StorageName& name,
                             const StorageIdentity& identity) {
  if (const std::optional<StorageHolder> there = table_.Take(holder, identity)) {
    return HeldBy(holder, name, *there);
  }
  const MutexLock lock(mu_);
  taken_[holder.id] = {holder, name};
  if (IsDevice(holder)) devices_[holder.id] = identity;
  return OkStatus();
}

Result<StorageIdentity> StorageGuard::Take(const StorageHolder& holder, const StorageName& name,
                                           const CallOptions& call) {
  RETURN_IF_ERROR(Load());
  const bool alone = holder.use == StorageUse::kRaw || holder.use == StorageUse::kFormat;
  const bool mounts = holder.use == StorageUse::kMounted;
  RETURN_IF_ERROR(IdentifyExpected(holder.use, call));
  // A filesystem that is mounted somewhere may be mounted once more, from that very device.
  FindUsers users = FindUsers::kNo;
  if (alone) users = FindUsers::kAll;
  if (mounts) users = FindUsers::kOfTwins;
  const bool had_it = table_.Has(holder.id, mounts ? StorageUse::kMounted : StorageUse::kRaw);
  ASSIGN_OR_RETURN(StorageIdentity identity, Identify(name, users, call));
  if (!had_it && !identity.users.empty()) {
    // Whoever is known by a name is named.
    if (const auto there = table_.FindExcluding(holder, identity)) {
      return HeldBy(holder, name, *there);
    }
    return Refused(holder.text + " cannot have " + name.ToString() + ": somebody has " +
                   Join(identity.users, ", ") +
                   " for himself (the same storage: a mount, a device that is made of it, or a "
                   "program)");
  }
  const bool has_it = holder.use != StorageUse::kFormat && table_.Has(holder.id, holder.use);
  RETURN_IF_ERROR(Reserve(holder, name, identity));
  if (has_it) return identity;
  // Whoever records something from now on finds this one in the table.
  const Status free = CheckNotOnRecord(holder, name, identity, call);
  if (free.ok()) return identity;
  if (holder.use != StorageUse::kFormat) (void)Release(holder.id);
  return free.error();
}

Status StorageGuard::Change(const std::string& id, StorageUse use) {
  KnownStorage held;
  {
    const MutexLock lock(mu_);
    const auto found = taken_.find(id);
    if (found == taken_.end()) return Refused("the storage of " + id + " is not reserved");
    held = found->second;
  }
  held.holder.use = use;
  if (use == StorageUse::kMounted) {
    // It was taken to be formatted: nobody else has come to have it.
    table_.Mounted(id);
    return OkStatus();
  }
  const CallOptions look = LookAt(held.name, kLookTimeout);
  const Result<StorageIdentity> taken = Take(held.holder, held.name, look);
  if (use != StorageUse::kFormat) return taken.ok() ? OkStatus() : Status(taken.error());
  const Status free = taken.ok() ? CheckUnknown(held.holder, &*taken, look) : Status(taken.error());
  // It has it still as before, if it got so far.
  if (!free.ok()) table_.Mounted(id);
  return free;
}

Status StorageGuard::Release(const std::string& id) {
  bool on_record = false;
  {
    const MutexLock lock(mu_);
    on_record = reserved_.contains(id);
  }
  if (on_record) {
    RETURN_IF_ERROR(store_.Remove(kStorageReservationRecordKind, id, kStorageRecordDurability));
  }
  table_.Release(id);
  const MutexLock lock(mu_);
  reserved_.erase(id);
  taken_.erase(id);
  devices_.erase(id);
  return OkStatus();
}

Status StorageGuard::PutReservation(const StorageHolder& holder, const StorageName& name) {
  RETURN_IF_ERROR(store_.Put(EncodeRecord(StorageReservationRecord{holder, name, boot_id_}),
                             kStorageRecordDurability));
  const MutexLock lock(mu_);
  reserved_.insert(holder.id);
  return OkStatus();
}

// ---- records ------------------------------------------------------------------------------------

Status StorageGuard::Load() {
  const MutexLock lock(mu_);
  if (loaded_) return OkStatus();
  ASSIGN_OR_RETURN(const LoadedRecords owners, store_.Load(kStorageOwnerRecordKind));
  ASSIGN_OR_RETURN(const LoadedRecords reservations, store_.Load(kStorageReservationRecordKind));
  for (const QuarantinedRecord& row : owners.quarantined) unreadable_[row.key] = row.reason;
  for (const Record& row : owners.records) {
    Result<StorageOwnerRecord> record = DecodeStorageOwnerRecord(row);
    if (record.ok()) {
      const std::string volume = record->volume;
      const StorageHolder known{.id = "known/" + volume,
                                .volume = volume,
                                .use = StorageUse::kKnown,
                                .persistent = true,
                                .text = "persistent volume " + volume};
      // A volume that names no path of this node has its devices alone.
      if (!record->name.path.empty()) table_.Expect(known, record->name);
      owners_[volume] = *std::move(record);
    } else {
      unreadable_[row.key] = record.error().message();
    }
  }
  for (const Record& row : reservations.records) {
    Result<StorageReservationRecord> record = DecodeStorageReservationRecord(row);
    if (!record.ok()) {
      log_.Warning("a reservation of storage cannot be read: nobody is kept out by it",
                   {{"record", row.key}, {"error", record.error()}});
      continue;
    }
    reserved_.insert(record->holder.id);
    // No work of another boot goes on; its row goes with the volume's next reclaim.
    if (record->boot_id == boot_id_) table_.Expect(record->holder, record->name);
  }
  loaded_ = true;
  return OkStatus();
}

std::optional<StorageOwnerRecord> StorageGuard::FindOwner(const std::string& volume) const {
  const MutexLock lock(mu_);
  const auto found = owners_.find(volume);
  if (found == owners_.end()) return std::nullopt;
  return found->second;
}

Status StorageGuard::PutOwner(StorageOwnerRecord record) {
  if (FindOwner(record.volume) == record) return OkStatus();
  RETURN_IF_ERROR(store_.Put(EncodeRecord(record), kStorageRecordDurability));
  const MutexLock lock(mu_);
  owners_[record.volume] = std::move(record);
  return OkStatus();
}

// ---- whose it is --------------------------------------------------------------------------------

Result<bool> StorageGuard::Mark(const StorageName& name, const StorageIdentity& identity,
                                const std::string& owner, const std::string& replaces,
                                const CallOptions& call) {
  if (identity.owner == owner) return true;
  const Result<Changed> marked =
      kernel_.Call(MarkStorage{HostPath(name.path), owner, replaces, identity.object}, call);
  if (marked.ok()) return true;
  const int why = marked.error().sys_errno();
  const bool cannot = why == EOPNOTSUPP || why == EROFS || why == EPERM;
  if (!cannot && marked.error().code() != Code::kAlreadyExists) return marked.error();
  log_.Warning("a directory does not get the mark of its owner",
               {{"path", name.path}, {"owner", owner}, {"why", marked.error().message()}});
  return false;
}

Status StorageGuard::RecordOwner(const StorageOwner& owner, const StorageIdentity& identity,
                                 const CallOptions& call) {
  RETURN_IF_ERROR(Load());
  const bool is_directory = identity.type == FileType::kDirectory;
  const std::optional<StorageOwnerRecord> before = FindOwner(owner.volume);
  const bool same_place = before && before->name == owner.name;
  StorageOwnerRecord record{
      owner.volume, owner.name, {}, owner.claim_uid, same_place && before->marked};
  if (is_directory) {
    record.object = identity.object;
    record.boot_id = boot_id_;
  }
  if (before) KeepIdentity(*before, record);
  const bool has_it = same_place && before->object.inode != 0 && !owner.claim_uid.empty() &&
                      before->claim_uid == owner.claim_uid;
  if (has_it) {
    if (owner.keeps_directory) RETURN_IF_ERROR(CheckKeepsDirectory(owner, *before, identity));
    record.object = before->object;
    record.boot_id = before->boot_id;
  }
  const std::string difference = StorageDifference(record.object, identity.object);
  if (!difference.empty()) {
    log_.Warning("a claim finds another directory than the one that it had",
                 {{"volume", owner.volume}, {"path", owner.name.path}, {"difference", difference}});
  }
  const bool same = difference.empty();
  if (same) AddIdentity(identity, record);
  if (identity.type == FileType::kBlockDevice) record.mode = StorageMode::kFilesystem;
  if (is_directory && !(before && IsSameObject(before->object, identity.object))) {
    RETURN_IF_ERROR(CheckDirectoryNotOnRecord(owner, identity, call));
  }
  // The intent comes first: a mark that no record knows is another owner's.
  if (!before) RETURN_IF_ERROR(PutOwner(record));
  if (is_directory && owner.marked && same && !owner.claim_uid.empty()) {
    const std::string replaces = before ? before->claim_uid : "";
    ASSIGN_OR_RETURN(record.marked, Mark(owner.name, identity, owner.claim_uid, replaces, call));
  }
  return PutOwner(std::move(record));
}

// ---- reclaiming ---------------------------------------------------------------------------------

Status StorageGuard::IdentifyAll(const std::string& volume, const std::vector<KnownStorage>& others,
                                 const CallOptions& call) {
  std::set<std::string> known = {volume};
  for (const KnownStorage& other : others) known.insert(other.holder.volume);
  {
    const MutexLock lock(mu_);
    for (const auto& [recorded, record] : owners_) known.insert(recorded);
  }
  table_.ReleaseKnown(
      [&known](const StorageHolder& holder) { return !known.contains(holder.volume); });
  for (const KnownStorage& other : others) {
    CallOptions look = LookAt(other.name, kLookTimeout);
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
  for (const std::string& key : identity.own) {
    const std::optional<FilesystemPart> part = PartOf(key);
    if (!part) continue;
    ListMounts question;
    question.showing = FilesystemPart{part->device_major, part->device_minor, ""};
    ASSIGN_OR_RETURN(const MountListing shown, kernel_.Call(question, call));
    for (const MountEntry& mount : shown.mounts) {
      if (!IsAtOrBelow(mount.root, part->root)) continue;
      // The mount by which the volume's own path leads there.
      if (IsAtOrBelow(name.path, mount.mount_point)) continue;
      return Refused(name.ToString() + " is not emptied: it, or a part of it, is mounted at " +
                     mount.mount_point);
    }
  }
  return OkStatus();
}

Status StorageGuard::CheckRecorded(const std::string& volume, const StorageName& name,
                                   const std::string& claim_uid, const StorageIdentity& now) {
  {
    const MutexLock lock(mu_);
    if (const auto why = unreadable_.find(volume); why != unreadable_.end()) {
      return Refused("whose the storage of persistent volume " + volume +
                     " is cannot be told: " + why->second);
    }
  }
  const std::optional<StorageOwnerRecord> record = FindOwner(volume);
  const bool is_other = now.type != FileType::kDirectory && now.type != FileType::kMissing;
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
    if (!difference.empty()) {
      return Refused(name.ToString() +
                     " is another directory than the one that persistent volume " + volume +
                     " was used at: " + difference + "; it is not emptied");
    }
  }
  // The volume may have been given to a claim that never used it.
  if (now.owner.empty() || now.owner == claim_uid) return OkStatus();
  if (record && now.owner == record->claim_uid) return OkStatus();
  return Refused(name.ToString() + " is marked as storage of claim " + now.owner +
                 ", and persistent volume " + volume + " is that of claim " + claim_uid +
                 ": it is not emptied");
}

Status StorageGuard::TakeForReclaim(const StorageHolder& holder, const StorageName& name,
                                    const std::string& claim_uid,
                                    const std::vector<KnownStorage>& others,
                                    const CallOptions& call) {
  RETURN_IF_ERROR(Load());
  RETURN_IF_ERROR(IdentifyAll(holder.volume, others, call));
  RETURN_IF_ERROR(IdentifyExpected(holder.use, call));
  ASSIGN_OR_RETURN(const StorageIdentity identity, Identify(name, FindUsers::kNo, call));
  RETURN_IF_ERROR(Reserve(holder, name, identity));
  const Status free = [&]() -> Status {
    RETURN_IF_ERROR(CheckRecorded(holder.volume, name, claim_uid, identity));
    RETURN_IF_ERROR(CheckReclaimNotOnRecord(holder, name, identity, call));
    RETURN_IF_ERROR(CheckNothingShows(name, identity, call));
    RETURN_IF_ERROR(CheckUnknown(holder, &identity, call));
    return PutReservation(holder, name);
  }();
  if (free.ok()) return free;
  bool on_record = false;
  {
    const MutexLock lock(mu_);
    on_record = reserved_.contains(holder.id);
  }
  // What an earlier try may have begun stays reserved.
  if (!on_record) table_.Release(holder.id);
  return free;
}

Result<bool> StorageGuard::IsBeingReclaimed(const std::string& id) {
  RETURN_IF_ERROR(Load());
  if (table_.Has(id, StorageUse::kReclaim)) return true;
  for (const auto& [holder, name] : table_.Expected(StorageUse::kReclaim)) {
    if (holder.id == id) return true;
  }
  return false;
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
    const Status free = CheckUnknownVolume(one, holder, identity, call);
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
  CallOptions look = LookAt(name, kLookTimeout);
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

Status StorageGuard::Reclaimed(const std::string& volume, const StorageName& name, bool deleted,
                               const CallOptions& call) {
  if (deleted) return Forget(volume);
  const std::optional<StorageOwnerRecord> record = FindOwner(volume);
  if (!record) return OkStatus();
  if (record->marked) {
    ASSIGN_OR_RETURN(const StorageIdentity identity, Identify(name, FindUsers::kNo, call));
    if (!identity.owner.empty()) {
      RETURN_IF_ERROR(Mark(name, identity, "", record->claim_uid, call));
    }
  }
  StorageOwnerRecord emptied = *record;
  emptied.claim_uid.clear();
  emptied.marked = false;
  ForgetIdentity(emptied);
  return PutOwner(std::move(emptied));
}

Status StorageGuard::Forget(const std::string& volume) {
  RETURN_IF_ERROR(Load());
  if (FindOwner(volume)) {
    RETURN_IF_ERROR(store_.Remove(kStorageOwnerRecordKind, volume, kStorageRecordDurability));
  }
  table_.Release("known/" + volume);
  const MutexLock lock(mu_);
  owners_.erase(volume);
  return OkStatus();
}

Status StorageGuard::ForgetBut(const std::set<std::string>& volumes) {
  RETURN_IF_ERROR(Load());
  std::set<std::string> gone;
  {
    const MutexLock lock(mu_);
    for (const auto& [volume, record] : owners_) {
      if (!volumes.contains(volume)) gone.insert(volume);
    }
  }
  for (const std::string& volume : gone) RETURN_IF_ERROR(Forget(volume));
  return OkStatus();
}

Status StorageGuard::CheckNotOwn(const StorageName& name, const CallOptions& call) {
  RETURN_IF_ERROR(Load());
  const StorageHolder looked{.id = "look/" + name.path,
                             .volume = "look",
                             .use = StorageUse::kReclaim,
                             .persistent = true,
                             .text = "a new volume"};
  RETURN_IF_ERROR(IdentifyExpected(StorageUse::kReclaim, call, kOwn));
  ASSIGN_OR_RETURN(const StorageIdentity identity, Identify(name, FindUsers::kNo, call));
  const std::optional<StorageHolder> there = table_.Find(kOwn, identity);
  if (!there) return OkStatus();
  return HeldBy(looked, name, *there);
}

}  // namespace volumed
