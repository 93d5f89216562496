// ObjectCommands: commands on objects other than pods: what they delete, and when that goes. An
// object goes by a command to delete it, by its removal from a source in which that is the command,
// or with its storage.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "base/alive_guard.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "kube/object_catalog.h"
#include "volumemanager/claims/deleted_objects.h"

namespace volumed {

class Claims;
class KnownObjects;
class Provisioning;
class Readiness;

// Threads: the control thread. Blocks: never; rows are written on other threads. `done` is called
// once on the control thread: that of Delete() in a task of its own, that of Number() before it
// returns if no row has to be written.
class ObjectCommands {
 public:
  using Done = std::function<void(Status)>;

  // All members outlive this object.
  struct Parts {
    Scheduler& scheduler;
    ObjectCatalog& catalog;
    const Readiness& readiness;
    const KnownObjects& known;
    DeletedObjects& deleted;
    Provisioning& provisioning;
    Claims& claims;
  };
  struct Hooks {
    // What is on record of the object's deletion has changed: whoever names the object looks again.
    std::function<void(const ObjectKey&)> changed;
    // VolumeManagerHooks::remove_object; may be empty.
    std::function<void(const ObjectKey&, uint64_t number)> remove_object;
  };

  // `removal_deletes`: VolumeManagerSettings::removal_deletes.
  ObjectCommands(Parts parts, Hooks hooks, std::set<std::string> removal_deletes);
  ObjectCommands(const ObjectCommands&) = delete;
  ObjectCommands& operator=(const ObjectCommands&) = delete;

  // Commands the object, which is not a pod, to go, whichever source has it; a claim or a
  // PersistentVolume goes as soon as nothing protects it. `done` is called when the command is
  // durable: no agent after this one takes the object for an existing one, and a manifest that
  // still has it is refused.
  // Errors: NotFound (not applied): no such object is known; Unavailable (not applied): what is
  // known is not loaded yet; those of RecordStore, not applied if the command got no number, maybe
  // applied if it could not be recorded yet, which is tried again.
  void Delete(const ObjectKey& object, const Done& done);
  // An administrator's word that this volume, which was begun for a claim that is gone, is not
  // undone: what there may be of it is left where it is. `done` is called when that is on record.
  // Errors, not applied: those of Provisioning::GiveUp; Unavailable, as above.
  void GiveUpUndo(const std::string& volume, const Done& done);
  // An administrator's word that the storage of this volume, which its claim has left, is not
  // reclaimed: the object goes, and the storage stays where it is. `left` is the text of the event
  // that tells what stays. `done` is called when that is on record.
  // REQUIRES: StorageViews::ReclaimOf has it. Errors: those of Delete().
  void GiveUpReclaim(const std::string& volume, const std::string& left, const Done& done);
  // Gives the number of a command that gives objects; it is higher than that of every command
  // before.
  // Errors: Unavailable (not applied), as above; RecordStore's (not applied).
  void Number(const std::function<void(Result<uint64_t>)>& done);

  // When a command to delete the object was recorded, in Unix milliseconds; nullopt if there is
  // none, or if the object has ended.
  std::optional<int64_t> DeletedSince(const ObjectKey& object) const;
  // Whether a command has ended this very object. Only a command that is on record counts.
  bool HasEnded(const ObjectKey& object, const std::string& uid) const {
    return parts_.deleted.HasEnded({object, uid});
  }
  // Whether the store has what is known of the object, so that it has this uid after a restart.
  bool IsOnRecord(const ObjectKey& object) const;
  // The uid of an object that may not be readable now; "" if none is known.
  std::string UidOnRecord(const ObjectKey& object) const;

  // The object was deleted, and nothing protects it any more: it ends.
  void LetGo(const DeletedObjects::Id& object);
  // The storage of this PersistentVolume was deleted, as its policy asks: the object ends with it.
  void EndWithStorage(const DeletedObjects::Id& volume);
  // What is on record of the deletion has changed.
  void DeletionChanged(const DeletedObjects::Id& object);
  // To be called once, when the records are loaded.
  void TakeAwayEnded();
  // Deletes the object if it has left a source in which that is the command to delete it.
  void DeleteIfRemoved(const ObjectKey& key);
  void DeleteWhatWasRemoved();
  // To be called whenever one more source may have been in order for the first time.
  void DeleteWhatHasMovedNowhere();
  // No source has the object any more, which a command has ended.
  void ForgetDeleted(const ObjectKey& key);
  // The records of claims may be about fewer of the ended objects now.
  void ForgetUnlisted();

 private:
  // nullopt if a command can be taken.
  std::optional<Error> WhyNoCommand() const;
  // Ends a deleted object that nothing protects any more, or records the command to delete it.
  void DeleteByCommand(const DeletedObjects::Id& object, bool at_once, DeletedObjects::Done done);
  // The object has ended: removes it wherever it is.
  void TakeAway(const DeletedObjectRecord& deleted);
  std::set<std::string> UidsOf(const ObjectKey& key) const;
  bool HasReleased(const DeletedObjects::Id& claim) const;

  const Parts parts_;
  const Hooks hooks_;
  const std::set<std::string> removal_deletes_;
  std::set<ObjectKey> unlisted_;    // ended and in no source, but records are still about them
  bool all_were_in_order_ = false;  // each source was so once since the start
  AliveGuard alive_;
};

}  // namespace volumed
