// ObjectDirectory: the objects that were given by `volumectl apply`, as one JSON file each, in a
// directory of the agent's own (0700). It is a source like any other, and the only one that can be
// written.
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
  // kChanged also stands for an object whose damaged file was written anew.
  enum class What { kCreated, kChanged, kUnchanged, kReplaced };
  ObjectPtr object;  // as stored
  What what = What::kCreated;
  // With kReplaced: the pod that was stored; null if its file is gone, or could never be read.
  ObjectPtr before = nullptr;
};

// A command that gives objects.
struct ApplyCommand {
  std::vector<Object> objects;
  uint64_t number = 0;             // higher than that of every earlier command
  std::set<ObjectKey> bound = {};  // claims and PersistentVolumes that are bound
  // If a pod's volumes differ from those of the stored pod, the new pod replaces the stored one.
  bool replace = false;
  // The uids of pods on record, by their names on this node.
  std::map<ObjectKey, PodUid> pods = {};
  std::set<PodUid> gone = {};  // replaced pods of which nothing is left
  // Objects of these names that a command of this number has ended. Their files may still be there,
  // but belong to no object any more: what is given now is another object.
  std::map<ObjectKey, uint64_t> ended = {};
};

// Files are named "<kind>.<namespace>.<name>.json" and have the mode 0600. Each is written to a
// temporary file, fsynced and renamed, so that a crash leaves the old or the new object. Each says
// which command gave the object and which version wrote the file (kube/stored_object.h).
//
// A file that cannot be read or understood stays where it is. Its object is unknown or, if it was
// known when its file was still good, held; a person deletes it or applies it again. The same holds
// for an object that is on record and whose file is gone without a command: it is held if its
// content is on record, else unknown, until a command ends it or Accept() says that this is right.
//
// A PersistentVolume or PersistentVolumeClaim without a uid gets a random one, which stays as long
// as the object does. A new object gets the present time as its creationTimestamp.
//
// A pod that replaces another one has a uid of its own, and its file says which pods it replaces:
// the catalog lets it wait until nothing of these is on the node.
//
// Threads: Remember(), Start() and Forget() on the control thread; Apply() and the removals on any
// other thread, since they write to disk. REQUIRES: this object outlives its scheduler's tasks.
class ObjectDirectory final : public ObjectSource {
 public:
  static constexpr std::string_view kSourceName = "volumectl-apply";

  // Checks whether there is room for new objects; an error says why not. It is asked before the
  // first file of a command is written, and not if nothing is to be written. Threads: any. Blocks:
  // on disk.
  using RoomCheck = std::function<Status()>;

  // `node_name` completes pods without a uid (kube/static_pod.h). `version` is the program's.
  // Without `has_room` only the filesystem says when there is no room.
  ObjectDirectory(std::string directory, NodeName node_name, Scheduler& scheduler,
                  std::string version, RoomCheck has_room = nullptr);

  const std::string& name() const override { return name_; }
  // The objects themselves are in their files; the memory tells which object a file belongs to, and
  // which files are gone. The directory and `unproven` of the memory count for nothing.
  void Remember(SourceMemory memory) override;
  // The listener is called on the control thread. A list is complete once the directory was read;
  // if it cannot be read later on, what it had stays, and the problem is told.
  void Start(ObjectListener listener) override;
  // Reads all files again. Objects whose files are gone then are gone for good; if the directory
  // cannot be read, nothing is accepted.
  void Accept() override;
  // Reads all files again and delivers a full list.
  void Forget();

  // Stores all objects, replacing those of the same kind, namespace and name, and delivers the
  // change. An object that is stored already and equal is not written again. Returns the objects as
  // stored, sorted by key (a pod without a uid has got one, and its name the node's suffix). The
  // files of `command.ended` are removed first, whatever becomes of the objects.
  // Blocks: on disk (the syncs of all objects together).
  // Errors, with no object written: FailedPrecondition before the first load is complete, and for a
  // change of an immutable field (kube/validate_update.h), such as a uid or, unless the command
  // replaces, a pod's volumes; AlreadyExists for the uid of another pod; InvalidArgument for an
  // object that is given twice, for a pod whose name with the node's suffix is too long, or for a
  // pod that names the uid of the pod that it is to replace; those of the RoomCheck. Otherwise
  // errno's code: not applied if no file was replaced yet, else maybe applied.
  Result<std::vector<AppliedObject>> Apply(ApplyCommand command);

  // A command with this number has ended the object, and that is on record. Removes the object's
  // file, even a damaged one, unless a later command has given the object. If the file cannot be
  // removed, its removal is tried again as with DeletePod, and the object stays listed until the
  // file is gone: the record of its deletion must last as long, and the catalog refuses what a
  // command has ended. If there is no such object, the number is kept all the same: a file of it
  // that an earlier command gave, and that is read later, is removed then. Blocks: on disk.
  void Remove(const ObjectKey& key, uint64_t number);
  // Carries out several such commands at the price of one: they share the sync of the directory.
  void RemoveAll(const std::vector<std::pair<ObjectKey, uint64_t>>& commands);
  // The pod goes even if its file cannot be removed (the disk is read-only or failing), since its
  // teardown must not wait for that. The file then counts as gone, its removal is tried again with
  // back-off and at every change, and the list names it as a problem; a start before it is removed
  // brings the pod back. With `successor_too` a pod that has replaced this one goes likewise.
  // Returns what the caller must be told; "" if the file is gone.
  // Errors: NotFound (not applied) if there is no such pod. Blocks: on disk.
  Result<std::string> DeletePod(const PodUid& uid, bool successor_too = false);
  // Deletes several pods at the price of one: they share the sync of the directory. There is an
  // answer for each, in their order; a pod that cannot be deleted stops no other.
  struct PodToDelete {
    PodUid uid;
    bool successor_too = false;
  };
  std::vector<Result<std::string>> DeletePods(const std::vector<PodToDelete>& pods);

  // How often the removal of files was synced since the start.
  uint64_t removal_syncs() const { return removal_syncs_.load(); }

 private:
  // An object whose file is good, or was good until a moment ago.
  struct Stored {
    ObjectPtr object;
    std::string file;  // name inside the directory
    uint64_t number = 0;
    std::set<PodUid> replaces = {};
  };
  // A file that cannot be read or understood.
  struct Damaged {
    std::optional<ObjectKey> key;  // nullopt: it is not known whose file it is
    std::string why;
  };

  // A file whose object a command has ended.
  struct EndedFile {
    std::string file;
    ObjectKey key;
    std::optional<Stored> stored = std::nullopt;  // nullopt if it could not be read
  };
  // A file that could not be removed.
  struct Unremoved {
    std::string told;  // what must be told of it
    // The object that is listed until the file is gone; nullopt for a pod, and for a damaged file.
    std::optional<Stored> listed = std::nullopt;
  };

  void LoadAndDeliver(bool accept);
  // Reads all files. After an error what is stored stays as it was.
  Status LoadLocked() REQUIRES(mu_);
  // Notes the objects that had a file before, or when the last agent ended, and have none now.
  void NoteLostLocked(const std::map<ObjectKey, Stored>& before) REQUIRES(mu_);
  bool HasFileLocked(const KnownObject& object) const REQUIRES(mu_);
  // A file that cannot be read or understood says nothing about the others; its object is what it
  // was `before`.
  void LoadFile(const std::string& file, const std::map<ObjectKey, Stored>& before) REQUIRES(mu_);
  // Names files that earlier programs have set aside, each as a problem.
  void LookIntoQuarantine() REQUIRES(mu_);
  // Checks that no other stored pod has the pod's uid.
  Status CheckUidLocked(const ObjectKey& key, const Pod& pod) const REQUIRES(mu_);
  // Returns the errors of Apply() for an object that is stored already; OK if nothing is known of
  // it.
  Status CheckUpdateLocked(const ObjectKey& key, const Object& now,
                           const ApplyCommand& command) const REQUIRES(mu_);
  // Returns the objects as they are to be stored, or the first error of Apply(). Nothing is
  // changed.
  Result<std::map<ObjectKey, Stored>> PrepareLocked(ApplyCommand command) const REQUIRES(mu_);
  // Prepares the pod as it is to be stored, with its uid; returns the pods that it replaces.
  Result<std::set<PodUid>> PreparePodLocked(Pod& pod, const ApplyCommand& command) const
      REQUIRES(mu_);
  // Makes a pod without a uid a static pod of this node, with the uid that it already has here, or
  // a new one.
  Status CompletePodLocked(Pod& pod, const ApplyCommand& command) const REQUIRES(mu_);
  // Gives the object the uid that it already has here, or a new one.
  void IdentifyLocked(const ObjectKey& key, Object& object) const REQUIRES(mu_);
  // Gives the object its creationTimestamp, if it has none; a stored object keeps its own.
  void DateLocked(const Object* before, Object& object) const REQUIRES(mu_);
  const Stored* FindLocked(const ObjectKey& key) const REQUIRES(mu_);
  // Returns the object that is stored, or one whose file is gone; null if there is neither, or if
  // the content of the latter is not known.
  ObjectPtr FindOrLostLocked(const ObjectKey& key) const REQUIRES(mu_);
  // The file counts as damaged no more.
  void ForgetDamageLocked(const std::string& file) REQUIRES(mu_);
  // Says what storing `next` would do.
  AppliedObject::What ChangeLocked(const ObjectKey& key, const Stored& next) const REQUIRES(mu_);
  std::string TemporaryOf(const Stored& stored) const;
  void RemoveTemporaries(const std::map<ObjectKey, Stored>& of) const;
  // Writes the files under temporary names; after an error none of them is left.
  Status WriteLocked(const std::map<ObjectKey, Stored>& next) const REQUIRES(mu_);
  // Removes the files with one sync; returns for each whether it is gone for good.
  std::vector<Status> RemoveFilesLocked(const std::vector<std::string>& files) const REQUIRES(mu_);
  void RemoveAllLocked(const std::vector<std::pair<ObjectKey, uint64_t>>& commands) REQUIRES(mu_);
  // The stored pods by the uids that are asked for: a pod's own uid, or that of a pod that it
  // replaces.
  std::map<PodUid, ObjectKey> StoredPodsLocked(const std::vector<PodToDelete>& pods) const
      REQUIRES(mu_);
  // True if one of these pods was known, and its file gone.
  bool ForgetLostPodsLocked(const std::set<PodUid>& pods) REQUIRES(mu_);
  // Removes the files of objects that commands have ended.
  void RemoveEndedLocked(std::vector<EndedFile> files) REQUIRES(mu_);
  // What the caller must be told after the removal of the file was tried; "" if the file is gone.
  std::string NoteRemovedLocked(const std::string& file, const ObjectKey& key,
                                const Status& removed) REQUIRES(mu_);
  // Marks the object as ended and returns the files that go with it.
  std::vector<EndedFile> TakeEndedLocked(const ObjectKey& key, uint64_t number) REQUIRES(mu_);
  // Notes that `file` is still there, and arranges the next try.
  void RemoveLaterLocked(const std::string& file, Unremoved unremoved) REQUIRES(mu_);
  // All files share one disk, and so one timer with one back-off.
  void ArmRemovalLocked() REQUIRES(mu_);
  // True if at least one of the files has gone.
  bool RetryRemovalsLocked() REQUIRES(mu_);
  void RetryRemovals() EXCLUDES(mu_);
  // What the listener knows of one object.
  struct Told {
    std::string file = {};  // the file in which it is listed; "" if it is not listed
    bool is_unknown = false;
  };
  ObjectWithOrigin ListedLocked(const Stored& stored) const REQUIRES(mu_);
  std::string IncompleteBecauseLocked() const REQUIRES(mu_);
  DecodeProblem UnremovedLocked(const std::string& file) const REQUIRES(mu_);
  // The ended object of this key whose file could not be removed yet; null if there is none.
  const Stored* FindUnremovedLocked(const ObjectKey& key) const REQUIRES(mu_);
  ObjectList ListLocked() REQUIRES(mu_);
  // What has changed since the last list or delta. What is lost or damaged does not come by a
  // change: only a reading of the directory finds it.
  ObjectDelta DeltaLocked() REQUIRES(mu_);
  void AddChangeLocked(const ObjectKey& key, ObjectDelta& delta) REQUIRES(mu_);
  // Delivers a list after each reading of the directory, and the changes after each command.
  void DeliverLocked() REQUIRES(mu_);

  const std::string name_{kSourceName};
  const std::string directory_;
  const NodeName node_name_;
  const std::string version_;
  Scheduler& scheduler_;
  const RoomCheck has_room_;
  mutable std::atomic<uint64_t> removal_syncs_{0};
  // Set by Start() before another thread can see it; called on the control thread only.
  std::shared_ptr<ObjectListener> listener_;

  Mutex mu_;
  bool loaded_ GUARDED_BY(mu_) = false;
  std::map<ObjectKey, Stored> stored_ GUARDED_BY(mu_);
  std::map<std::string, Damaged> damaged_ GUARDED_BY(mu_);  // by file
  // Path -> the object whose file it was.
  std::map<std::string, ObjectKey> known_files_ GUARDED_BY(mu_);
  // Until the first load: what the last agent knew. After it: the objects whose files are gone.
  std::map<ObjectKey, KnownObject> lost_ GUARDED_BY(mu_);
  std::map<ObjectKey, uint64_t> ended_ GUARDED_BY(mu_);  // -> the number of the command
  std::vector<DecodeProblem> problems_ GUARDED_BY(mu_);
  std::map<std::string, Unremoved> unremoved_ GUARDED_BY(mu_);  // by file
  // What the listener has heard, and what has changed since then.
  bool has_list_ GUARDED_BY(mu_) = false;
  std::map<ObjectKey, Told> told_ GUARDED_BY(mu_);
  std::set<ObjectKey> changed_ GUARDED_BY(mu_);
  std::set<std::string> changed_files_ GUARDED_BY(mu_);
  Backoff removal_backoff_ GUARDED_BY(mu_);
  bool removal_armed_ GUARDED_BY(mu_) = false;  // a new try is due
};

}  // namespace volumed
