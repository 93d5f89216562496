// StorageGuard: before any storage is mounted, handed out, formatted, recycled or deleted, it finds
// out what the storage is and who else has it. It asks and reserves in one act, keeps on record
// what must not be undone, and knows by which directory a persistent volume was first used.
#pragma once

#include <chrono>
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

// The intended owner of the storage of a persistent volume.
struct StorageOwner {
  std::string volume;
  StorageName name;
  std::string claim_uid;
  // The directory is to carry the owner's mark: the volume can be reclaimed.
  bool marked = false;
  // The claim may only have the directory that it had before.
  bool keeps_directory = false;
};

// The directory that an administrator has accepted as a volume's.
struct AcceptedDirectory {
  std::string path;
  std::string before;  // for people, as is `now`; printable
  std::string now;
  // False: it is what was on record, so nothing had to be accepted.
  bool was_other = false;
};

// Which users a look at a block device is to find: none; all that have it exclusively; or only
// those that have another device which is the same storage.
enum class FindUsers { kNo, kAll, kOfTwins };

// How long a look at a storage that is not the operation's own may take.
struct StorageGuardSettings {
  // If the look decides whether something is deleted, formatted, or taken for another's.
  Duration look = std::chrono::seconds(10);
  // If a storage that does not answer may count as another one.
  Duration short_look = std::chrono::seconds(1);
};

// What a driver has (StorageName::driver) is known by its handle alone: nothing is looked at, and
// no directory of it is on record. So which PersistentVolumes name it is kept here at every moment
// (storage_guard_names.cc): whoever takes it to delete it finds them in the same act, however long
// ago he was asked to.
//
// Threads: any; calls for one holder one at a time. Blocks: until the call's deadline and the
// store.
class StorageGuard {
 public:
  // All arguments outlive this object.
  StorageGuard(Kernel& kernel, RecordStore& store, const Clock& clock, Logger& log, BootId boot_id,
               StorageGuardSettings settings = {});
  StorageGuard(const StorageGuard&) = delete;
  StorageGuard& operator=(const StorageGuard&) = delete;

  // Adds a directory of the agent's own, which is never given away or emptied. Blocks: never.
  void AddOwnDirectory(const std::string& what, const std::string& path);
  // Adds what the agent before this one had mounted or handed out. Has no effect for another boot,
  // since nobody has it any more. Blocks: never.
  void Expect(const BootId& boot_id, KnownStorage known);
  // The same for a holder with this id that shares its storage. `read` is called only when somebody
  // comes whom that holder would exclude.
  using ReadStorage = std::function<std::optional<KnownStorage>()>;
  void ExpectUnread(const BootId& boot_id, const std::string& id, ReadStorage read) EXCLUDES(mu_);

  // Finds out what the storage is now. Errors: those of IdentifyStorage.
  Result<StorageIdentity> Identify(const StorageName& name, FindUsers users,
                                   const CallOptions& call);
  // Finds out what the storage is and takes it for this use. A device that somebody outside has
  // exclusively cannot be had raw nor formatted, unless this holder already has it raw. A device
  // whose twin somebody outside has is not mounted, unless this holder has it mounted already.
  // Errors, not applied: FailedPrecondition, naming who has it, or Aborted if that one is Leaving;
  // those of IdentifyStorage.
  Result<StorageIdentity> Take(const StorageHolder& holder, const StorageName& name,
                               const CallOptions& call);
  // The same for a directory or file that a look has already identified.
  Status TakeIdentified(const StorageHolder& holder, const StorageName& name,
                        const StorageIdentity& identity, const CallOptions& call);
  // Changes the use of storage that this holder already has; errors as Take. FailedPrecondition,
  // not applied, if it does not have it.
  Status Change(const std::string& id, StorageUse use);
  // The outcome is known: nothing of the use is left. After an error the use stays on record and in
  // force.
  Status Release(const std::string& id);
  // While one lives, the holder is on its way out. A loop device's number may be another file's by
  // the time that Release() comes: whoever meets the holder meanwhile is told to come again
  // (Aborted, not applied), and not that the storage is taken. Blocks: never.
  class Leaving {
   public:
    Leaving(StorageGuard& guard, std::string id);
    ~Leaving();
    Leaving(const Leaving&) = delete;
    Leaving& operator=(const Leaving&) = delete;

   private:
    StorageGuard& guard_;
    const std::string id_;
  };
  bool Has(const std::string& id, StorageUse use) const { return table_.Has(id, use); }
  // What this holder has, to be kept on record until the next agent expects it; empty if it has
  // nothing. Blocks: never.
  GivenStorage StorageOf(const std::string& id) const { return table_.StorageOf(id); }

  // Records whose storage the directory of a persistent volume is, and marks the directory itself,
  // before a pod may use it. The directory with which a claim first used the volume stays the
  // volume's until it is emptied. Errors: those of the store, and of MarkStorage. A filesystem that
  // keeps no marks is left without one, and so is a directory that has another owner's mark: it
  // belongs to that owner and is never emptied for this volume.
  // If the directory is on record as another volume's, and is not at that volume's path any more,
  // it is refused: FailedPrecondition, not applied, with both names. The same error refuses another
  // directory than the claim had, if the claim must keep its own: its disk may not be mounted
  // there.
  Status RecordOwner(const StorageOwner& owner, const StorageIdentity& identity,
                     const CallOptions& call);
  // The administrator's word that the directory or block device which is now at the path of this
  // persistent volume is the volume's. Errors, not applied: NotFound if nothing that the volume had
  // there is on record; FailedPrecondition if neither a directory nor a block device is there now,
  // or if it belongs to another volume or claim; the store's.
  Result<AcceptedDirectory> AcceptDirectory(const std::string& volume, const CallOptions& call);
  // Records how the device that was taken under this id is used, before a pod may use it; no effect
  // if no device was taken. `name` is where its volume says that the device is; empty if the volume
  // names no path. Errors: those of the store, and of IdentifyStorage.
  Status RecordDevice(const std::string& id, const StorageName& name, const CallOptions& call);

  // Takes the storage of a volume that is to be emptied, and records that. The storage must not
  // contain another volume or the agent's own directories, nor lie in them; no mount elsewhere may
  // show a part of it; it must be the directory on record, and carry no other owner's mark. Only
  // what is returned may be emptied, not whatever is at the path later. Errors: FailedPrecondition,
  // not applied, with the reason; as Take.
  Result<StorageIdentity> TakeForReclaim(const StorageHolder& holder, const StorageName& name,
                                         const std::string& claim_uid,
                                         const std::vector<KnownStorage>& others,
                                         const CallOptions& call);
  // Begins a try: whether an earlier one of this boot, or of any if the storage is a driver's, has
  // taken this storage for the reclaim and keeps others out since then. Errors: those of the store;
  // Aborted, not applied, if a worker may be at a reclaim of other storage under this id, that of
  // an earlier volume of the name.
  Result<bool> IsBeingReclaimed(const std::string& id, const StorageName& name);
  // The storage of a driver of which a reclaim with this id has an open outcome; nullopt if there
  // is none. Errors: those of the store.
  Result<std::optional<StorageName>> BegunOfDriver(const std::string& id) EXCLUDES(mu_);
  // Sets the volumes that exist although the content of their objects is not known. Returns the
  // volumes for which something was refused because of them since the last call. Blocks: never.
  std::set<std::string> SetUnknown(std::vector<UnknownVolume> unknown) EXCLUDES(mu_);
  // To be called before anything that cannot be undone: no unknown volume may have its data in
  // `identity`, or anywhere if that is null. Change() to kFormat and TakeForReclaim() call it
  // themselves. Errors: FailedPrecondition, not applied, naming both volumes and the file; those of
  // IdentifyStorage.
  Status CheckUnknown(const StorageHolder& holder, const StorageIdentity* identity,
                      const CallOptions& call) EXCLUDES(mu_);
  // The content of what was approved is gone, and with `deleted` its directory too: it belongs to
  // nobody from now on.
  Status Reclaimed(const std::string& volume, const StorageName& name,
                   const StorageIdentity& approved, bool deleted, const CallOptions& call);
  // The reclaims of this volume are not tried again: what they had taken is free once no worker is
  // at it. Errors: those of the store; what could not be freed yet is none.
  Status EndReclaims(const std::string& volume) EXCLUDES(mu_);
  // The volume has ended. Its storage, if it still exists, is the administrator's: a directory that
  // was not emptied, or the file of a loop device, stays on record as retained. No volume is
  // emptied around, inside or at it until it is gone or is given to a volume. EndReclaims()
  // comes with it.
  Status Forget(const std::string& volume);
  // The same for all volumes but these.
  Status ForgetBut(const std::set<std::string>& volumes);

  // The PersistentVolume names this storage of a driver from now on, and no other; null: none.
  // Nothing keeps a volume from naming what others have, or delete. Blocks: never.
  void NameStorage(const std::string& volume, const StorageName* name);
  // A driver says that it has made this storage for the volume: it is the volume's until
  // ForgetMade(), unless somebody else has it. Errors, not applied, with the name of who has it:
  // FailedPrecondition; Aborted if it is being deleted, or a call by hand is at it; the store's.
  Status TakeMade(const std::string& volume, const StorageName& name) EXCLUDES(mu_);
  // Nothing is being made for the volume any more. Blocks: never.
  void ForgetMade(const std::string& volume);
  // The PersistentVolumes that name this storage of a driver, or for which it was made. Blocks:
  // never.
  std::set<std::string> NamedBy(const StorageName& name) const;
  // Adds the reclaims of drivers' storage that an agent before this one has begun, perhaps before a
  // reboot: the rows are loaded later, by whoever may block, and VolumesBeingDeleted() is asked
  // before. Blocks: never.
  void ExpectDeletions(const std::vector<StorageReservationRecord>& begun);
  // What of a driver's storage is being deleted by what others keep on record: each with for whom,
  // for people. They may be called on any thread, and must not block.
  struct Deletion {
    StorageName name;
    std::string text;
  };
  using Deletions = std::function<std::vector<Deletion>()>;
  // REQUIRES: before anything else is asked. Blocks: never.
  void AddDeletions(Deletions others) { others_.push_back(std::move(others)); }
  // The PersistentVolumes that name what is being deleted for somebody else: nobody is to get them.
  // With a text for people each. Blocks: never.
  std::map<std::string, std::string> VolumesBeingDeleted() const EXCLUDES(mu_);

  // Checks that a new directory lies neither in the agent's own directories nor around them.
  Status CheckNotOwn(const StorageName& name, const CallOptions& call);

 private:
  // storage_guard_records.cc: how rows are read, believed and written.
  Status Load() EXCLUDES(mu_);
  // Volumes of claims whose row may be one of the damaged ones, under another key, count as
  // unreadable.
  void DoubtOwners(const std::vector<QuarantinedRecord>& damaged, const LoadedRecords& bindings)
      REQUIRES(mu_);
  // The reclaim with this id, or with any if it is empty, may go on although its row is damaged or
  // gone.
  void ExpectReclaims(const std::string& id) REQUIRES(mu_);
  // Adds what may be there to the table.
  void ExpectInTable(const KnownStorage& known);
  void ReadAll() EXCLUDES(mu_);
  void Read(std::map<std::string, ReadStorage>::iterator unread) REQUIRES(mu_);
  // Identifies the expected holders of which this use has to know.
  Status IdentifyExpected(StorageUse use, const CallOptions& call, const std::string& prefix = "");
  Status IdentifyAll(const StorageHolder& holder, const StorageName& name,
                     const std::vector<KnownStorage>& others, const CallOptions& call)
      EXCLUDES(mu_);
  Status CheckNothingShows(const StorageName& name, const StorageIdentity& identity,
                           const CallOptions& call);
  Status CheckRecorded(const StorageHolder& holder, const StorageName& name,
                       const std::string& claim_uid, const StorageIdentity& now) EXCLUDES(mu_);
  bool GoesOn(const StorageReservationRecord& begun) const;
  // The row of this reclaim if what it says goes on; else an empty one.
  StorageReservationRecord BegunReclaim(const std::string& id, const StorageName& name) const
      EXCLUDES(mu_);
  // Whether this holder, which has storage, was given this very one by this agent.
  bool HasTaken(const StorageHolder& holder, const StorageIdentity& identity) const EXCLUDES(mu_);
  Status Reserve(const StorageHolder& holder, const StorageName& name,
                 const StorageIdentity& identity) EXCLUDES(mu_);
  // Releases what such a reclaim had taken. Errors, not applied: NotFound if it may be tried again;
  // Aborted if a worker is at it; the store's.
  Status ReleaseEnded(const std::string& id) EXCLUDES(mu_);
  Status PutReservation(const StorageHolder& holder, const StorageName& name,
                        const StorageIdentity& identity) EXCLUDES(mu_);
  // Checks one unknown volume.
  Status CheckUnknownVolume(const UnknownVolume& unknown, const StorageHolder& holder,
                            const StorageIdentity* identity, const CallOptions& call);
  // Identifies a device that the agent before this one mounted or handed out, and that this agent
  // has not looked at.
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
  Result<AcceptedDirectory> AcceptNextDevice(StorageOwnerRecord record) EXCLUDES(mu_);
  Status CheckKeepsDevice(const StorageHolder& holder, const StorageIdentity& now) const
      EXCLUDES(mu_);
  Status CheckKeepsDirectory(const StorageOwner& owner, const StorageOwnerRecord& before,
                             const StorageIdentity& now) const;
  Result<bool> LiesInWay(const StorageName& name, const StorageIdentity& identity,
                         const StorageName& recorded, const StorageObject& object,
                         const CallOptions& call);
  std::vector<StorageOwnerRecord> OtherOwners(const std::string& volume) const EXCLUDES(mu_);
  // storage_guard_names.cc
  static StorageIdentity OfDriver(const StorageName& name);
  static bool NamesStorage(const StorageHolder& holder);
  static Error HeldBy(const StorageHolder& wanted, const StorageName& name,
                      const StorageHolder& there);
  // The same of one that may be Leaving.
  Error HeldNow(const StorageHolder& wanted, const StorageName& name,
                const StorageHolder& there) const EXCLUDES(mu_);
  CallOptions LookAt(const StorageName& name, Duration timeout) const;
  std::optional<StorageOwnerRecord> FindOwner(const std::string& row_key) const EXCLUDES(mu_);
  // A row that cannot be read is not the same as no row: nobody knows what it says. Errors:
  // FailedPrecondition, not applied.
  Status CheckReadable(const std::string& row_key) const EXCLUDES(mu_);
  Status PutOwner(StorageOwnerRecord record) EXCLUDES(mu_);
  Status RemoveOwner(const std::string& row_key) EXCLUDES(mu_);
  // storage_guard_retained.cc: the data of volumes that have ended.
  Status Retain(StorageOwnerRecord record) EXCLUDES(mu_);
  // A volume has been given the retained directory.
  Status ForgetGivenOn(const StorageObject& directory) EXCLUDES(mu_);
  Status ForgetIfGone(const StorageOwnerRecord& retained, const CallOptions& call);
  Result<bool> IsGone(const StorageName& name, const StorageObject& object, const BootId& boot_id,
                      const CallOptions& call);
  // Marks a directory with `owner`; returns whether it has that mark now.
  Result<bool> Mark(const StorageName& name, const StorageIdentity& identity,
                    const std::string& owner, const std::string& replaces, const CallOptions& call);

  Kernel& kernel_;
  RecordStore& store_;
  const Clock& clock_;
  Logger& log_;
  const BootId boot_id_;
  const StorageGuardSettings settings_;
  std::vector<Deletions> others_;
  StorageTable table_;
  mutable Mutex mu_;
  bool loaded_ GUARDED_BY(mu_) = false;
  std::map<std::string, StorageOwnerRecord> owners_ GUARDED_BY(mu_);          // by RowKey
  std::map<std::string, std::string> unreadable_ GUARDED_BY(mu_);             // by RowKey: why
  std::map<std::string, StorageReservationRecord> reserved_ GUARDED_BY(mu_);  // rows, by id
  std::set<std::string> leaving_ GUARDED_BY(mu_);                             // ids
  // Ids that no try may come to release: their volume has ended, or their row cannot be read.
  std::set<std::string> ended_ GUARDED_BY(mu_);
  std::map<std::string, KnownStorage> taken_ GUARDED_BY(mu_);  // by id
  std::map<std::string, ReadStorage> unread_ GUARDED_BY(mu_);  // likewise
  std::vector<UnknownVolume> unknown_ GUARDED_BY(mu_);
  std::set<std::string> held_for_unknown_ GUARDED_BY(mu_);          // volumes
  std::map<std::string, StorageIdentity> devices_ GUARDED_BY(mu_);  // taken ones, by id
};

}  // namespace volumed
