// ObjectDirectory: the objects that were given by `volumectl apply`, one JSON file each, in a
// directory of the agent's own (0700). A source like any other, and the only one that is writable.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/backoff.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "kube/object_source.h"

namespace volumed {

// What Apply did to one object.
struct AppliedObject {
  enum class What { kCreated, kChanged, kUnchanged, kReplaced };
  ObjectPtr object;  // as stored
  What what = What::kCreated;
  ObjectPtr before = nullptr;  // of kReplaced: the pod that was stored; null if it is not readable
};

// A command that gives objects.
struct ApplyCommand {
  std::vector<Object> objects;
  uint64_t number = 0;             // higher than that of every command before
  std::set<ObjectKey> bound = {};  // claims and PersistentVolumes that are bound
  // A pod whose volumes are others than those that are stored is put in the place of that one.
  bool replace = false;
  // The uids on record of pods, by the names that they have on this node.
  std::map<ObjectKey, PodUid> pods = {};
  std::set<PodUid> gone = {};  // pods that were replaced, and of which nothing is left
  // Of these names, what was ended by a command of this number. Its file may be there still: it is
  // no object's any more, and what is given now is another one.
  std::map<ObjectKey, uint64_t> ended = {};
};

// Files are "<kind>.<namespace>.<name>.json", 0600, written to a temporary file, fsynced and
// renamed; a crash leaves the old or the new object. Each says by which command it was given, and
// which version wrote it (kube/stored_object.h).
//
// A file that cannot be read or understood stays where it is. Its object is unknown, or, if it was
// known when its file was still good, held; a person deletes it or applies it anew. An object that
// is on record, and whose file is gone without a command, is the same: held if its content is on
// record, else unknown, until a command ends it or Accept() says that this is right.
//
// A PersistentVolume or PersistentVolumeClaim without a uid gets a random one, which stays as long
// as the object does. An object that is new gets the time as its creationTimestamp.
//
// A pod that replaces another one has a uid of its own, and its file says whom it replaces: the
// catalog lets it wait until nothing of these is on the node.
//
// Threads: Remember(), Start() and Forget() on the control thread; Apply() and the removals on any
// other, since they write to disk. REQUIRES: outlives its scheduler's tasks.
class ObjectDirectory final : public ObjectSource {
 public:
  static constexpr std::string_view kSourceName = "volumectl-apply";

  // Whether there is room for new objects; an error says why not. Threads: any. Blocks: on disk.
  using RoomCheck = std::function<Status()>;

  // `node_name` completes pods without a uid (kube/static_pod.h). `version` is the program's.
  // Without `has_room` only the filesystem says when there is none.
  ObjectDirectory(std::string directory, NodeName node_name, Scheduler& scheduler,
                  std::string version, RoomCheck has_room = nullptr);

  const std::string& name() const override { return name_; }
  // Its objects are on record by their files; what else is known of it tells whose a file is.
  void Remember(SourceMemory memory) override;
  void Start(ObjectListener listener) override;
  void Accept() override;
  // Reads everything again.
  void Forget();

  // Stores all objects, replacing those of the same kind, namespace and name, and delivers the new
  // list. An object that is stored already, equal, is not written again. Returns them as stored (a
  // pod without a uid has got one, and its name the node's suffix), sorted by key.
  // Blocks: on disk (one fsync per object and one for the directory).
  // Errors, nothing written: FailedPrecondition before the first load is complete and for a change
  // of what is immutable (kube/validate_update.h), a uid and, unless the command replaces, a pod's
  // volumes among it; AlreadyExists for a uid of another pod,
  // InvalidArgument for an object given twice; those of the RoomCheck. Else errno's code, not
  // applied when no file was replaced yet, maybe applied afterwards.
  Result<std::vector<AppliedObject>> Apply(ApplyCommand command);

  // A command with this number has ended the object, and that is on record. Its file goes, unless a
  // later command has given the object; also a damaged one. It goes even if its file stays, as with
  // DeletePod. No such object: nothing. Blocks: on disk.
  void Remove(const ObjectKey& key, uint64_t number);
  // Several such commands, at the price of one: they share the sync of the directory.
  void RemoveAll(const std::vector<std::pair<ObjectKey, uint64_t>>& commands);
  // A pod goes even if its file stays (a disk that is read-only or failing), as its teardown must
  // not wait for that: the file then counts as gone, its removal is retried with back-off and at
  // every change, and the list names it as a problem. A start before that brings the pod back.
  // With `successor_too` the pod that was put in its place goes likewise.
  // The answer is what the caller must be told of it; "" when the file is gone.
  // Errors: NotFound (not applied) when there is no such pod. Blocks: on disk.
  Result<std::string> DeletePod(const PodUid& uid, bool successor_too = false);
  // Several of them, at the price of one: they share the sync of the directory. An answer for each,
  // in their order; one that fails stops no other.
  struct PodToDelete {
    PodUid uid;
    bool successor_too = false;
  };
  std::vector<Result<std::string>> DeletePods(const std::vector<PodToDelete>& pods);

  // How often files' removal was synced, for tests that count work.
  uint64_t removal_syncs() const { return removal_syncs_.load(); }

 private:
  struct Stored {
    ObjectPtr object;
    std::string file;  // name inside the directory
    uint64_t number = 0;
    std::set<PodUid> replaces = {};
  };
  struct Damaged {
    std::optional<ObjectKey> key;  // nothing: nobody knows whose file it is
    std::string why;
  };

  void LoadAndDeliver(bool accept);
  Status LoadLocked() REQUIRES(mu_);
  // Objects that had a file before, or when the last agent ended, and have none now.
  void NoteLostLocked(const std::map<ObjectKey, Stored>& before) REQUIRES(mu_);
  bool HasFileLocked(const KnownObject& object) const REQUIRES(mu_);
  void LoadFile(const std::string& file, const std::map<ObjectKey, Stored>& before) REQUIRES(mu_);
  void LookIntoQuarantine() REQUIRES(mu_);
  // A pod's uid is not another's here.
  Status CheckUidLocked(const ObjectKey& key, const Pod& pod) const REQUIRES(mu_);
  Status CheckUpdateLocked(const ObjectKey& key, const Object& now,
                           const ApplyCommand& command) const REQUIRES(mu_);
  Result<std::map<ObjectKey, Stored>> PrepareLocked(ApplyCommand command) const REQUIRES(mu_);
  // As it is to be stored: with its uid, and whom it replaces.
  Result<std::set<PodUid>> PreparePodLocked(Pod& pod, const ApplyCommand& command) const
      REQUIRES(mu_);
  // Makes a pod without a uid a static pod of this node, with the uid that it has here or a new
  // one.
  Status CompletePodLocked(Pod& pod, const ApplyCommand& command) const REQUIRES(mu_);
  // Gives the object the uid that it has here, or a new one.
  void IdentifyLocked(const ObjectKey& key, Object& object) const REQUIRES(mu_);
  // Gives the object its creationTimestamp, unless it has one.
  void DateLocked(const Object* before, Object& object) const REQUIRES(mu_);
  const Stored* FindLocked(const ObjectKey& key) const REQUIRES(mu_);
  ObjectPtr FindOrLostLocked(const ObjectKey& key) const REQUIRES(mu_);
  // The file is not damaged any more.
  void ForgetDamageLocked(const std::string& file) REQUIRES(mu_);
  AppliedObject::What ChangeLocked(const ObjectKey& key, const Stored& next) const REQUIRES(mu_);
  std::string TemporaryOf(const Stored& stored) const;
  // Under temporary names; after an error none of them is left.
  Status WriteLocked(const std::map<ObjectKey, Stored>& next) const REQUIRES(mu_);
  // The answer to each, if the files are gone for good by one sync.
  std::vector<Status> RemoveFilesLocked(const std::vector<std::string>& files) const REQUIRES(mu_);
  void RemoveAllLocked(const std::vector<std::pair<ObjectKey, uint64_t>>& commands) REQUIRES(mu_);
  // By the uids that are asked for: those of the pods themselves, and of those whom one replaces.
  std::map<PodUid, ObjectKey> StoredPodsLocked(const std::vector<PodToDelete>& pods) const
      REQUIRES(mu_);
  bool ForgetLostPodsLocked(const std::set<PodUid>& pods) REQUIRES(mu_);
  // Commands have ended the objects of these files.
  void RemoveEndedLocked(const std::vector<std::pair<std::string, ObjectKey>>& files) REQUIRES(mu_);
  // What must be told of its file once its removal has been tried; "" when that is gone.
  std::string NoteRemovedLocked(const std::string& file, const ObjectKey& key,
                                const Status& removed) REQUIRES(mu_);
  // The files that go with the object; it counts as gone.
  std::set<std::string> TakeEndedLocked(const ObjectKey& key, uint64_t number) REQUIRES(mu_);
  // Notes that `file` is still there, what must be told of that, and when to try again.
  void RemoveLaterLocked(const std::string& file, std::string told) REQUIRES(mu_);
  void ArmRemovalLocked() REQUIRES(mu_);
  // True when one of the files has gone.
  bool RetryRemovalsLocked() REQUIRES(mu_);
  void RetryRemovals() EXCLUDES(mu_);
  // What the listener has of one object.
  struct Told {
    std::string file = {};  // in which it is listed; "" if it is not
    bool is_unknown = false;
  };
  ObjectWithOrigin ListedLocked(const Stored& stored) const REQUIRES(mu_);
  std::string IncompleteBecauseLocked() const REQUIRES(mu_);
  DecodeProblem UnremovedLocked(const std::string& file) const REQUIRES(mu_);
  ObjectList ListLocked() REQUIRES(mu_);
  ObjectDelta DeltaLocked() REQUIRES(mu_);
  void AddChangeLocked(const ObjectKey& key, ObjectDelta& delta) REQUIRES(mu_);
  // A list after each reading of the directory, and what has changed after each command.
  void DeliverLocked() REQUIRES(mu_);

  const std::string name_{kSourceName};
  const std::string directory_;
  const NodeName node_name_;
  const std::string version_;
  Scheduler& scheduler_;
  const RoomCheck has_room_;
  mutable std::atomic<uint64_t> removal_syncs_{0};
  // Set by Start() before any other thread can see it; called on the control thread only.
  std::shared_ptr<ObjectListener> listener_;

  Mutex mu_;
  bool loaded_ GUARDED_BY(mu_) = false;
  std::map<ObjectKey, Stored> stored_ GUARDED_BY(mu_);
  std::map<std::string, Damaged> damaged_ GUARDED_BY(mu_);        // by file
  std::map<std::string, ObjectKey> known_files_ GUARDED_BY(mu_);  // path -> whose it was
  // Before the first load what the last agent knew; then those whose files are gone.
  std::map<ObjectKey, KnownObject> lost_ GUARDED_BY(mu_);
  std::map<ObjectKey, uint64_t> ended_ GUARDED_BY(mu_);  // by the command of this number
  std::vector<DecodeProblem> problems_ GUARDED_BY(mu_);
  // Files of deleted pods that could not be removed, and what must be told of them.
  std::map<std::string, std::string> unremoved_ GUARDED_BY(mu_);
  // What the listener has heard, and what has changed since.
  bool has_list_ GUARDED_BY(mu_) = false;
  std::map<ObjectKey, Told> told_ GUARDED_BY(mu_);
  std::set<ObjectKey> changed_ GUARDED_BY(mu_);
  std::set<std::string> changed_files_ GUARDED_BY(mu_);
  Backoff removal_backoff_ GUARDED_BY(mu_);
  bool removal_armed_ GUARDED_BY(mu_) = false;  // a try is to come
};

}  // namespace volumed
