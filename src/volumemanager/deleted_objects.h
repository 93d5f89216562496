// DeletedObjects: what was deleted by command, over restarts of the agent, and the numbers of the
// commands.
//
// A claim, and every other object but a pod, ends by a row of this table and by nothing else; that
// a source has it no more is no command. The row is on record before the command is answered and
// before anything of the object goes. It says two things, one after the other:
//  - the object is to go: it is Terminating as long as something protects it;
//  - it has ended: its volume is released, its file in the directory of applied objects goes, and
//    a manifest that still has it is refused.
// Each command has a number, and an object that a later command has given is another one. So the
// last command that was answered holds, whatever a crash has left of the ones before.
//
// The row is kept until nothing has the object any more: no manifest, no file of an earlier
// command, and no record that is about it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kube/objects.h"
#include "operation/object_record.h"
#include "volumemanager/lasting_rows.h"

namespace volumed {

// Threads: the control thread. Blocks: never; what is written is written elsewhere.
class DeletedObjects {
 public:
  // The very object: of one name there may have been several.
  using Id = std::pair<ObjectKey, std::string>;  // and its uid
  using Done = std::function<void(Status)>;

  // `parts` outlive this. `changed` is called when what is on record of an object is another thing
  // than before.
  DeletedObjects(LastingRows::Parts parts, std::function<void(const Id&)> changed);

  // What the last agent left. Without a readable number all that were given may be lower than any
  // guess: numbers go on from the clock then.
  void Restore(const std::vector<DeletedObjectRecord>& records,
               const std::vector<CommandNumberRecord>& numbers,
               const std::vector<QuarantinedRecord>& unreadable);

  // A command that was found has this number: those to come have higher ones.
  void Saw(uint64_t number);
  // `taken` gets the number of a command, which no other one has, whatever becomes of the agent.
  // Errors: RecordStore's, not applied.
  void TakeNumber(std::function<void(Result<uint64_t>)> taken);

  // The object is to go. With `at_once` nothing protects it: it has ended. `done` comes when that
  // is on record. Errors: RecordStore's. Not applied: the command has got no number. Maybe applied:
  // it could not be recorded yet; that is tried again.
  void Delete(const Id& object, bool at_once, Done done);
  // Nothing protects it any more. Nothing happens if it was not deleted, or has ended.
  void End(const Id& object);
  // Nothing has it any more: its row goes. REQUIRES: HasEnded().
  void Forget(const Id& object);

  // On record. Null: nobody has deleted it.
  const DeletedObjectRecord* Find(const Id& object) const;
  bool HasEnded(const Id& object) const;
  // On record, or on the way there.
  bool IsKnown(const Id& object) const { return deleted_.contains(object); }
  // Of the last command that has ended an object of this name; nothing if none has.
  std::optional<uint64_t> EndedBy(const ObjectKey& key) const;
  // What is on record.
  std::vector<DeletedObjectRecord> All() const;
  uint64_t last_number() const { return next_ - 1; }

 private:
  struct Row {
    DeletedObjectRecord record;                  // as it is to be
    std::optional<DeletedObjectRecord> durable;  // as it is on record
    std::vector<Done> waiting;                   // for it to be there
    bool removing = false;
  };

  void Write(const Id& object, Row& row);
  void Settled(const std::string& key);
  void Answer(const std::string& key, const Status& status);

  const LastingRows::Parts parts_;
  const std::function<void(const Id&)> changed_;
  LastingRows rows_;
  std::map<Id, Row> deleted_;
  std::map<std::string, Id> ids_;  // by the key of its row
  uint64_t next_ = 1;
  uint64_t reserved_ = 0;  // on record
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace volumed
