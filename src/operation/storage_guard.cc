#include "operation/storage_guard.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/strings.h"
#include "mounter/host_directory.h"
#include "operation/storage_record_identity.h"
#include "os/storage_identity.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

// Of what a driver has attached or staged; see DriverStorageId().
bool IsOfDriver(const StorageHolder& holder) { return holder.id.starts_with("driver/"); }

// Begins the ids of the agent's own directories.
constexpr char kOwn[] = "own/";

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

// A link elsewhere leads to a device as well.
bool IsOfDevice(const GivenStorage& given) {
  return std::any_of(given.own.begin(), given.own.end(),
                     [](const std::string& key) { return key.starts_with("dev:"); });
}

// Storage of an export is known by its name alone: nobody has it mounted.
StorageIdentity OfExport(const StorageName& name) {
  StorageIdentity identity;
  identity.own = {NfsStorageKey(name.server, name.path)};
  identity.within = KeysAbove(identity.own.front());
  return identity;
}

}  // namespace

StorageGuard::StorageGuard(Kernel& kernel, RecordStore& store, const Clock& clock, Logger& log,
                           BootId boot_id, StorageGuardSettings settings)
    : kernel_(kernel),
      store_(store),
      clock_(clock),
      log_(log),
      boot_id_(std::move(boot_id)),
      settings_(settings) {}

void StorageGuard::AddOwnDirectory(const std::string& what, const std::string& path) {
  const StorageHolder own{.id = kOwn + path,
                          .volume = "",
                          .use = StorageUse::kShared,
                          .persistent = true,
                          .text = what + " " + path};
  table_.Expect({own, {path}});
}

void StorageGuard::Expect(const BootId& boot_id, KnownStorage known) {
  if (boot_id != boot_id_) return;
  ExpectInTable(known);
  const MutexLock lock(mu_);
  taken_[known.holder.id] = std::move(known);
}

void StorageGuard::ExpectUnread(const BootId& boot_id, const std::string& id, ReadStorage read) {
  if (boot_id != boot_id_) return;
  const MutexLock lock(mu_);
  unread_[id] = std::move(read);
}

// There is nothing to look at of a driver's storage.
void StorageGuard::ExpectInTable(const KnownStorage& known) {
  table_.Expect(known);
  if (!known.name.driver.empty()) table_.Identified(known.holder.id, OfDriver(known.name));
}

// One at a time: whoever takes or releases storage meanwhile does not wait for all of them.
void StorageGuard::ReadAll() {
  while (true) {
    const MutexLock lock(mu_);
    if (unread_.empty()) return;
    Read(unread_.begin());
  }
}

// Under the lock, so that whoever asks meanwhile finds it in one of the two.
void StorageGuard::Read(std::map<std::string, ReadStorage>::iterator unread) {
  if (const std::optional<KnownStorage> known = unread->second()) ExpectInTable(*known);
  unread_.erase(unread);
}

Error StorageGuard::HeldBy(const StorageHolder& wanted, const StorageName& name,
                           const StorageHolder& there) {
  // The volume is in nobody's way but its own.
  const bool is_same = wanted.use == StorageUse::kReclaim && there.volume == wanted.volume;
  // What a driver has attached has no device of its own before it is staged.
  if (is_same && (IsDevice(there) || IsOfDriver(there))) {
    return Refused("its device is still on this node" +
                   std::string(there.use == StorageUse::kShared ? "" : UseText(there.use)) +
                   "; nothing is deleted before it has left");
  }
  if (is_same) return Refused("it is in use still: " + there.text);
  return Refused(wanted.text + " has its storage at " + name.ToString() +
                 ", which is also, in whole or in part, that of " + there.text +
                 UseText(there.use));
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
  if (!name.driver.empty()) return OfDriver(name);
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
  if (IsExclusive(use) && prefix.empty()) ReadAll();
  for (const auto& [holder, name, given] : table_.Expected(use)) {
    if (!holder.id.starts_with(prefix)) continue;
    const bool device = name.path.starts_with("/dev/") || IsOfDevice(given);
    const bool mounted = holder.use == StorageUse::kShared && !device;
    if (!decides_delete && mounted) continue;
    CallOptions look = LookAt(name, decides_delete ? settings_.look : settings_.short_look);
    look.cancel = call.cancel;
    const Result<StorageIdentity> identity = Identify(name, FindUsers::kNo, look);
    if (identity.ok()) {
      table_.Identified(holder.id, *identity);
    } else if (decides_delete) {
      return identity.error().With("find out whether " + holder.text + " has storage in the way");
    } else if (!given.empty()) {
      table_.Identified(holder.id, {});
    }
  }
  return OkStatus();
}

Status StorageGuard::Reserve(const StorageHolder& holder, const StorageName& name,
                             const StorageIdentity& identity) {
  {
    // What he was given before the agent ended, he has still.
    const MutexLock lock(mu_);
    if (const auto own = unread_.find(holder.id); own != unread_.end()) Read(own);
  }
  std::optional<StorageHolder> there = table_.Take(holder, identity);
  // A worker may have been at it still when the volume ended: whoever comes looks again.
  if (there && there->use == StorageUse::kReclaim && ReleaseEnded(there->id).ok()) {
    there = table_.Take(holder, identity);
  }
  if (there) return HeldNow(holder, name, *there);
  const MutexLock lock(mu_);
  taken_[holder.id] = {holder, name};
  if (IsDevice(holder)) devices_[holder.id] = identity;
  return OkStatus();
}

Result<StorageIdentity> StorageGuard::Take(const StorageHolder& holder, const StorageName& name,
                                           const CallOptions& call) {
  RETURN_IF_ERROR(Load());
  if (!name.driver.empty()) {
    if (IsExclusive(holder.use)) ReadAll();
    const StorageIdentity identity = OfDriver(name);
    RETURN_IF_ERROR(Reserve(holder, name, identity));
    return identity;
  }
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
      return HeldNow(holder, name, *there);
    }
    return Refused(holder.text + " cannot have " + name.ToString() + ": somebody has " +
                   Join(identity.users, ", ") +
                   " for himself (the same storage: a mount, a device that is made of it, or a "
                   "program)");
  }
  const bool formats = holder.use == StorageUse::kFormat;
  const bool has_it = !formats && table_.Has(holder.id, holder.use);
  const bool was_asked_for = has_it && HasTaken(holder, identity);
  RETURN_IF_ERROR(Reserve(holder, name, identity));
  if (was_asked_for) return identity;
  // Whoever records something from now on finds this one in the table.
  Status free = CheckKeepsDevice(holder, identity);
  if (free.ok()) free = CheckNotOnRecord(holder, name, identity, call);
  if (free.ok()) return identity;
  if (has_it) {
    // What the agent before this one has given stays in use; the next try is asked for again.
    const MutexLock lock(mu_);
    devices_.erase(holder.id);
  } else if (!formats) {
    (void)Release(holder.id);
  }
  return free.error();
}

// What the agent before this one had is expected by its path, which may lead to another device by
// now.
bool StorageGuard::HasTaken(const StorageHolder& holder, const StorageIdentity& identity) const {
  if (!IsDevice(holder)) return true;
  const MutexLock lock(mu_);
  const auto device = devices_.find(holder.id);
  return device != devices_.end() && device->second.own == identity.own;
}

Status StorageGuard::TakeIdentified(const StorageHolder& holder, const StorageName& name,
                                    const StorageIdentity& identity, const CallOptions& call) {
  RETURN_IF_ERROR(Load());
  RETURN_IF_ERROR(IdentifyExpected(holder.use, call));
  return Reserve(holder, name, identity);
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
  const CallOptions look = LookAt(held.name, settings_.look);
  const Result<StorageIdentity> taken = Take(held.holder, held.name, look);
  if (use != StorageUse::kFormat) return taken.ok() ? OkStatus() : Status(taken.error());
  Status free = taken.ok() ? CheckUnknown(held.holder, &*taken, look) : Status(taken.error());
  // It has it still as before, if it got so far.
  if (!free.ok()) table_.Mounted(id);
  return free;
}

StorageGuard::Leaving::Leaving(StorageGuard& guard, std::string id)
    : guard_(guard), id_(std::move(id)) {
  const MutexLock lock(guard_.mu_);
  guard_.leaving_.insert(id_);
}

StorageGuard::Leaving::~Leaving() {
  const MutexLock lock(guard_.mu_);
  guard_.leaving_.erase(id_);
}

Error StorageGuard::HeldNow(const StorageHolder& wanted, const StorageName& name,
                            const StorageHolder& there) const {
  Error held = HeldBy(wanted, name, there);
  // What is to be deleted waits for its device anyway.
  if (wanted.use == StorageUse::kReclaim) return held;
  const MutexLock lock(mu_);
  if (!leaving_.contains(there.id)) return held;
  return Error::NotApplied(Code::kAborted,
                           held.message() + ", which is just being taken away: try again");
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
  {
    const MutexLock lock(mu_);
    unread_.erase(id);  // before the table: what is read meanwhile gets into that
    reserved_.erase(id);
    ended_.erase(id);
    taken_.erase(id);
    devices_.erase(id);
  }
  table_.Release(id);
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
  // It has no directory that could be another's.
  if (!owner.name.driver.empty()) return OkStatus();
  RETURN_IF_ERROR(CheckReadable(owner.volume));
  const bool is_directory = identity.type == FileType::kDirectory;
  const bool has_object = is_directory || identity.type == FileType::kRegular;
  const std::optional<StorageOwnerRecord> before = FindOwner(owner.volume);
  const bool same_place = before && before->name == owner.name;
  StorageOwnerRecord record{
      owner.volume, owner.name, {}, owner.claim_uid, same_place && before->marked};
  if (has_object) {
    record.object = identity.object;
    record.boot_id = boot_id_;
  }
  if (before) KeepIdentity(*before, record);
  const bool had_device = before && before->object.inode == 0 && TellsDevice(*before);
  const bool has_it = same_place && (before->object.inode != 0 || had_device) &&
                      !owner.claim_uid.empty() && before->claim_uid == owner.claim_uid;
  if (has_it) {
    if (owner.keeps_directory) RETURN_IF_ERROR(CheckKeepsDirectory(owner, *before, identity));
    // What had a device alone has no directory to go back to.
    if (!had_device) {
      record.object = before->object;
      record.boot_id = before->boot_id;
    }
  }
  const std::string difference = StorageDifference(record.object, identity.object);
  if (!difference.empty()) {
    log_.Warning("a claim finds another directory than the one that it had",
                 {{"volume", owner.volume}, {"path", owner.name.path}, {"difference", difference}});
  }
  const bool same = difference.empty();
  if (same) AddIdentity(identity, record);
  if (identity.type == FileType::kBlockDevice) record.mode = StorageMode::kFilesystem;
  if (has_object && !(before && IsSameObject(before->object, identity.object))) {
    RETURN_IF_ERROR(CheckDirectoryNotOnRecord(owner, identity, call));
  }
  // The intent comes first: a mark that no record knows is another owner's.
  if (!before) RETURN_IF_ERROR(PutOwner(record));
  if (is_directory && owner.marked && same && !owner.claim_uid.empty()) {
    const std::string replaces = before ? before->claim_uid : "";
    ASSIGN_OR_RETURN(record.marked, Mark(owner.name, identity, owner.claim_uid, replaces, call));
  }
  RETURN_IF_ERROR(PutOwner(std::move(record)));
  return has_object ? ForgetGivenOn(identity.object) : OkStatus();
}

Status StorageGuard::CheckNotOwn(const StorageName& name, const CallOptions& call) {
  if (!name.driver.empty()) return OkStatus();
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
