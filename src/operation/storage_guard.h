// StorageGuard: nothing is mounted, handed out, formatted, recycled or deleted before it is known
// what the storage is and who else has it. It asks and reserves in one act, keeps on record what
// may not be undone, and knows by which directory a persistent volume was first used.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "operation/storage_record.h"
#include "operation/storage_table.h"
#include "operation/volume_operations.h"
#include "os/kernel.h"
#include "records/record_store.h"

namespace volumed {

// Whose the storage of a persistent volume is to be.
struct StorageOwner {
  std::string volume;
  StorageName name;
  std::string claim_uid;
  bool marked = false;  // its directory is to say so itself: it can be reclaimed
  // The claim is given no other directory than the one that it had.
  bool keeps_directory = false;
};

// What an administrator has said to be a volume's directory.
struct AcceptedDirectory {
  std::string path;
  std::string before;
  std::string now;
  bool was_other = false;  // else it is what was on record, and nothing was accepted
};

// Whom a look at a block device is to find: nobody, or whoever has it for himself; or only whoever
// has another device that is the same storage.
enum class FindUsers { kNo, kAll, kOfTwins };

// Threads: any; calls for one holder one at a time. Blocks: until the call's deadline and the
// store.
class StorageGuard {
 public:
  // All outlive this.
  StorageGuard(Kernel& kernel, RecordStore& store, const Clock& clock, Logger& log, BootId boot_id);
  StorageGuard(const StorageGuard&) = delete;
  StorageGuard& operator=(const StorageGuard&) = delete;

  // A directory of the agent's own, which is never given away or emptied. Blocks: never.
  void AddOwnDirectory(const std::string& what, const std::string& path);
  // What the agent before this one had mounted or handed out. Blocks: never.
  // Of another boot: nobody has it any more.
  void Expect(const BootId& boot_id, KnownStorage known);
  // The same of a holder with this id who shares his storage: it is read only when somebody comes
  // who excludes him.
  using ReadStorage = std::function<std::optional<KnownStorage>()>;
  void ExpectUnread(const BootId& boot_id, const std::string& id, ReadStorage read) EXCLUDES(mu_);

  // What the storage is now. Errors: those of IdentifyStorage.
  Result<StorageIdentity> Identify(const StorageName& name, FindUsers users,
                                   const CallOptions& call);
  // Finds out what the storage is and takes it for this use. A device that somebody outside has for
  // himself is not to be had raw, nor formatted, unless this holder has it raw already; one whose
  // twin somebody outside has is not mounted, unless this holder has it mounted already.
  // Errors, not applied: FailedPrecondition, naming who has it; those of IdentifyStorage.
  Result<StorageIdentity> Take(const StorageHolder& holder, const StorageName& name,
                               const CallOptions& call);
  // The same of a directory or file of which a look has told what it is.
  Status TakeIdentified(const StorageHolder& holder, const StorageName& name,
                        const StorageIdentity& identity, const CallOptions& call);
  // What is held already is from now on held for another use; as Take. FailedPrecondition, not
  // applied, when it is not held.
  Status Change(const std::string& id, StorageUse use);
  // The outcome is known: nothing is left of the use. An error: it stays on record, and in force.
  Status Release(const std::string& id);
  bool Has(const std::string& id, StorageUse use) const { return table_.Has(id, use); }
  // What this holder has, to be kept on record until the agent after this one expects it; empty if
  // he has nothing. Blocks: never.
  GivenStorage StorageOf(const std::string& id) const { return table_.StorageOf(id); }

  // Says whose storage the directory of a persistent volume is, on record and in the directory
  // itself, before a pod may use it. What it was when its claim first used it, it is until it is
  // emptied. Errors: those of the store, and of MarkStorage; a
  // filesystem that keeps no mark is left without one, and so is a directory with another's mark:
  // it is that one's, and is never emptied for this volume.
  // A directory that is on record as another volume's, and is not at that one's path any more, is
  // refused: FailedPrecondition, not applied, with both names. So is another directory than the one
  // that the claim had, if that is to be kept: its disk may not be mounted there.
  Status RecordOwner(const StorageOwner& owner, const StorageIdentity& identity,
                     const CallOptions& call);
  // The administrator's word that the directory or block device which is now at the path of this
  // persistent volume is the volume's. Errors, not applied: NotFound if nothing that it had there
  // is on record; FailedPrecondition if neither is there now, or it is another volume's or claim's;
  // the store's.
  Result<AcceptedDirectory> AcceptDirectory(const std::string& volume, const CallOptions& call);
  // Says how the device that is taken under this id is used, on record, before a pod may use it;
  // nothing if none is. `name`: where its volume says that it is; empty if it names no path.
  // Errors: those of the store, and of IdentifyStorage.
  Status RecordDevice(const std::string& id, const StorageName& name, const CallOptions& call);

  // Everything that may not be so when a volume's storage is emptied: another volume in it or
  // around it, the agent's own directories, a mount of a part of it, another directory than the one
  // on record, another owner's mark. Taken, on record, if there is nothing; the answer is what may
  // be emptied, and nothing else that is at the path later. Errors: FailedPrecondition, not
  // applied, in words; as Take.
  Result<StorageIdentity> TakeForReclaim(const StorageHolder& holder, const StorageName& name,
                                         const std::string& claim_uid,
                                         const std::vector<KnownStorage>& others,
                                         const CallOptions& call);
  // Whether an earlier try of this boot has taken it for a reclaim, and keeps others out since.
  // Errors: those of the store.
  Result<bool> IsBeingReclaimed(const std::string& id);
  // Volumes that are there, and of whose objects nobody knows the content. The answer names the
  // volumes for which something was refused because of them since the last call. Blocks: never.
  std::set<std::string> SetUnknown(std::vector<UnknownVolume> unknown) EXCLUDES(mu_);
  // Before anything that cannot be undone: no unknown volume may have its data in `identity`, or
  // anywhere if that is not given. Change() to kFormat and TakeForReclaim() ask by themselves.
  // Errors: FailedPrecondition, not applied, naming both, and the file; those of IdentifyStorage.
  Status CheckUnknown(const StorageHolder& holder, const StorageIdentity* identity,
                      const CallOptions& call) EXCLUDES(mu_);
  // The content of what was approved is gone, and its directory too if `deleted`: it is nobody's
  // from now on.
  Status Reclaimed(const std::string& volume, const StorageName& name,
                   const StorageIdentity& approved, bool deleted, const CallOptions& call);
  // The volume is no more. Its storage, if it is there, is its administrator's: a directory that
  // was not emptied, or the file of a loop device, stays on record as retained, and no volume is
  // emptied around, inside or at it until it is gone or a volume is given it.
  Status Forget(const std::string& volume);
  // The same of all but these.
  Status ForgetBut(const std::set<std::string>& volumes);

  // A new directory must not lie in the agent's own ones, nor around them.
  Status CheckNotOwn(const StorageName& name, const CallOptions& call);

 private:
  Status Load() EXCLUDES(mu_);
  void ReadAll() EXCLUDES(mu_);
  void Read(std::map<std::string, ReadStorage>::iterator unread) REQUIRES(mu_);
  // Those who are expected, as far as this use has to know them.
  Status IdentifyExpected(StorageUse use, const CallOptions& call, const std::string& prefix = "");
  Status IdentifyAll(const std::string& volume, const std::vector<KnownStorage>& others,
                     const CallOptions& call) EXCLUDES(mu_);
  Status CheckNothingShows(const StorageName& name, const StorageIdentity& identity,
                           const CallOptions& call);
  Status CheckRecorded(const std::string& volume, const StorageName& name,
                       const std::string& claim_uid, const StorageIdentity& now) EXCLUDES(mu_);
  Status Reserve(const StorageHolder& holder, const StorageName& name,
                 const StorageIdentity& identity) EXCLUDES(mu_);
  Status PutReservation(const StorageHolder& holder, const StorageName& name) EXCLUDES(mu_);
  // As far as this one goes.
  Status CheckUnknownVolume(const UnknownVolume& unknown, const StorageHolder& holder,
                            const StorageIdentity* identity, const CallOptions& call);
  // A device that the agent before this one mounted or handed out was not looked at by this one.
  Status IdentifyMounted(const std::string& id, const CallOptions& call) EXCLUDES(mu_);
  // storage_guard_identities.cc: what is on record of other volumes, wherever their paths lead now.
  Status CheckNotOnRecord(const StorageHolder& holder, const StorageName& name,
                          const StorageIdentity& identity, const CallOptions& call) EXCLUDES(mu_);
  bool IsNamedByBoth(const StorageOwnerRecord& other, const StorageIdentity& identity,
                     const CallOptions& call);
  Status CheckDirectoryNotOnRecord(const StorageOwner& owner, const StorageIdentity& identity,
                                   const CallOptions& call) EXCLUDES(mu_);
  Status CheckAllReadable(const StorageHolder& holder) const EXCLUDES(mu_);
  Status CheckReclaimNotOnRecord(const StorageHolder& holder, const StorageName& name,
                                 const StorageIdentity& identity, const CallOptions& call)
      EXCLUDES(mu_);
  Status CheckNothingWasMovedIn(const StorageHolder& holder, const StorageName& name,
                                const StorageIdentity& identity, const CallOptions& call);
  Result<StorageIdentity> FindMoved(const StorageName& name, const StorageObject& object,
                                    const CallOptions& call);
  // storage_guard_directory.cc: the directory or device that a claim has.
  Status CheckMayAccept(const StorageOwnerRecord& record, const StorageIdentity& now,
                        const CallOptions& call);
  Status CheckKeepsDevice(const StorageHolder& holder, const StorageIdentity& now) const
      EXCLUDES(mu_);
  Status CheckKeepsDirectory(const StorageOwner& owner, const StorageOwnerRecord& before,
                             const StorageIdentity& now) const;
  Result<bool> LiesInWay(const StorageName& name, const StorageIdentity& identity,
                         const StorageName& recorded, const StorageObject& object,
                         const CallOptions& call);
  std::vector<StorageOwnerRecord> OtherOwners(const std::string& volume) const EXCLUDES(mu_);
  static Error HeldBy(const StorageHolder& wanted, const StorageName& name,
                      const StorageHolder& there);
  CallOptions LookAt(const StorageName& name, Duration timeout) const;
  std::optional<StorageOwnerRecord> FindOwner(const std::string& row_key) const EXCLUDES(mu_);
  Status PutOwner(StorageOwnerRecord record) EXCLUDES(mu_);
  Status RemoveOwner(const std::string& row_key) EXCLUDES(mu_);
  // storage_guard_retained.cc: the data of volumes that are no more.
  Status Retain(StorageOwnerRecord record) EXCLUDES(mu_);
  // A volume has been given the retained directory.
  Status ForgetGivenOn(const StorageObject& directory) EXCLUDES(mu_);
  Status ForgetIfGone(const StorageOwnerRecord& retained, const CallOptions& call);
  Result<bool> IsGone(const StorageName& name, const StorageObject& object, const BootId& boot_id,
                      const CallOptions& call);
  // The mark of a directory becomes `owner`; whether it has it now.
  Result<bool> Mark(const StorageName& name, const StorageIdentity& identity,
                    const std::string& owner, const std::string& replaces, const CallOptions& call);

  Kernel& kernel_;
  RecordStore& store_;
  const Clock& clock_;
  Logger& log_;
  const BootId boot_id_;
  StorageTable table_;
  mutable Mutex mu_;
  bool loaded_ GUARDED_BY(mu_) = false;
  std::map<std::string, StorageOwnerRecord> owners_ GUARDED_BY(mu_);  // by RowKey
  std::map<std::string, std::string> unreadable_ GUARDED_BY(mu_);     // volume -> why
  std::set<std::string> reserved_ GUARDED_BY(mu_);                    // ids with a row
  std::map<std::string, KnownStorage> taken_ GUARDED_BY(mu_);         // by id
  std::map<std::string, ReadStorage> unread_ GUARDED_BY(mu_);         // likewise
  std::vector<UnknownVolume> unknown_ GUARDED_BY(mu_);
  std::set<std::string> held_for_unknown_ GUARDED_BY(mu_);          // volumes
  std::map<std::string, StorageIdentity> devices_ GUARDED_BY(mu_);  // taken ones, by id
};

}  // namespace volumed
