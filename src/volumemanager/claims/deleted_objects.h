// DeletedObjects: remembers over restarts what commands have deleted, and numbers the commands.
//
// A claim, or any other object but a pod, ends only by a row of this table; that no source has it
// any more is no command. The row is on record before the command is answered and before anything
// of the object goes. It says two things, one after the other:
//  - the object is to go: it is Terminating as long as something protects it;
//  - it has ended: its volume is released, its file in the directory of applied objects is removed,
//    and a manifest that still has it is refused.
// Each command has a number, and an object that a later command has given is another one. So the
// last answered command holds, whatever a crash has left of the ones before.
//
// The row is kept until no manifest, no file of an earlier command, and no record has the object
// any more.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/alive_guard.h"
#include "kube/objects.h"
#include "operation/object_record.h"
#include "volumemanager/lasting_rows.h"

namespace volumed {

// Threads: the control thread. Blocks: never; rows are written on other threads.
class DeletedObjects {
 public:
  // Identifies one object by its name and its uid: there may have been several objects of one name.
  using Id = std::pair<ObjectKey, std::string>;  // the string is the uid
  using Done = std::function<void(Status)>;

  // `parts` outlive this object. `changed` is called when what is on record of an object has
  // changed.
  DeletedObjects(LastingRows::Parts parts, std::function<void(const Id&)> changed);

  // Takes over what the last agent left. If the row with the number cannot be read, each number
  // from before may be lower than any guess; then the numbers go on from the clock.
  void Restore(const std::vector<DeletedObjectRecord>& records,
               const std::vector<CommandNumberRecord>& numbers,
               const std::vector<QuarantinedRecord>& unreadable);

  // A command that was found has this number: later commands get higher ones.
  void Saw(uint64_t number);
  // Gives `taken` a number for a command. No other command gets it, even if the agent ends. Errors:
  // RecordStore's, not applied. `taken` is called on the control thread, before this returns if a
  // reserved number is left.
  void TakeNumber(std::function<void(Result<uint64_t>)> taken);

  // The object is to go. With `at_once` nothing protects it, so it has ended. `done` is called when
  // that is on record. Errors: RecordStore's; not applied if the command has got no number, maybe
  // applied if it could not be recorded yet, which is tried again. If the object was deleted
  // before, nothing is written, and `done` is called before this returns.
  void Delete(const Id& object, bool at_once, Done done);
  // The PersistentVolume is to go, and its storage stays as it is. `done` and errors: as of
  // Delete(); nothing is written if that is on record, or if the object has ended.
  void LeaveStorage(const Id& volume, Done done);
  // Nothing protects the object any more. Has no effect if it was not deleted, or has already
  // ended.
  void End(const Id& object);
  // Nothing has the object any more: removes its row. REQUIRES: HasEnded().
  void Forget(const Id& object);

  // What is on record; null if no command has deleted the object. The pointer is valid until the
  // next change.
  const DeletedObjectRecord* Find(const Id& object) const;
  bool HasEnded(const Id& object) const;
  // Whether the deletion is on record, or being recorded.
  bool IsKnown(const Id& object) const { return deleted_.contains(object); }
  // The number of the last command that has ended an object of this name; nullopt if none has.
  std::optional<uint64_t> EndedBy(const ObjectKey& key) const;
  // All rows that are on record.
  std::vector<DeletedObjectRecord> All() const;
  uint64_t last_number() const { return next_ - 1; }

 private:
  struct Row {
    DeletedObjectRecord record;                  // as it is to be
    std::optional<DeletedObjectRecord> durable;  // as it is on record
    std::vector<Done> waiting;                   // called when it is on record
    bool removing = false;
  };

  void Write(const Id& object, Row& row);
  void Settled(const std::string& key);
  void Answer(const std::string& key, const Status& status);

  const LastingRows::Parts parts_;
  const std::function<void(const Id&)> changed_;
  LastingRows rows_;
  std::map<Id, Row> deleted_;
  std::map<std::string, Id> ids_;  // by the key of the object's row
  uint64_t next_ = 1;
  uint64_t reserved_ = 0;  // the number that is on record
  AliveGuard alive_;
};

}  // namespace volumed
