// ObjectDirectory: the objects that were given by `volumectl apply`, one JSON file each, in a
// directory of the agent's own (0700). A source like any other, and the only one that is writable.
#pragma once

#include <functional>
#include <map>
#include <memory>
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
  enum class What { kCreated, kChanged, kUnchanged };
  ObjectPtr object;  // as stored
  What what = What::kCreated;
};

// Files are "<kind>.<namespace>.<name>.json", 0600, written to a temporary file, fsynced and
// renamed; a crash leaves the old or the new object. A file that does not decode is moved into
// quarantine/ and told as a problem until the agent starts anew.
//
// A PersistentVolume or PersistentVolumeClaim without a uid gets a random one, which stays as long
// as the object does. One that is deleted stays too, with its deletionTimestamp, until Remove().
//
// Threads: Start() and Forget() on the control thread; Apply() and the deletes on any other, since
// they write to disk. REQUIRES: outlives its scheduler's tasks.
class ObjectDirectory final : public ObjectSource {
 public:
  static constexpr std::string_view kSourceName = "volumectl-apply";

  // Whether there is room for new objects; an error says why not. Threads: any. Blocks: on disk.
  using RoomCheck = std::function<Status()>;

  // `node_name` completes pods without a uid (kube/static_pod.h). Without `has_room` only the
  // filesystem says when there is none.
  ObjectDirectory(std::string directory, NodeName node_name, Scheduler& scheduler,
                  RoomCheck has_room = nullptr);

  const std::string& name() const override { return name_; }
  // Its objects are on record by their files.
  void Remember(SourceMemory) override {}
  void Start(ObjectListener listener) override;
  void Accept() override { Forget(); }
  // Reads everything again.
  void Forget();

  // Stores all objects, replacing those of the same kind, namespace and name, and delivers the new
  // list. An object that is stored already, equal, is not written again. Returns them as stored (a
  // pod without a uid has got one, and its name the node's suffix), sorted by key.
  // Blocks: on disk (one fsync per object and one for the directory).
  // Errors, nothing written: FailedPrecondition before the first load is complete and for other
  // spec.volumes under the same uid, AlreadyExists for a uid of another pod and for an object that
  // is being deleted, InvalidArgument for an object given twice; those of the RoomCheck. Else
  // errno's code, not applied when no file was replaced yet, maybe applied afterwards.
  Result<std::vector<AppliedObject>> Apply(std::vector<Object> objects);

  // A PersistentVolume or PersistentVolumeClaim is marked as deleted, once, with the
  // finalizer that protects it: Kubernetes' rule (pkg/controller/volume/{pvc,pv}protection
  // @v1.36.2). Any other object goes.
  // Errors: NotFound (not applied) when there is no such object; errno's code when its file could
  // not be removed or written, not applied, or maybe applied when only the sync failed. Blocks: on
  // disk.
  Status Delete(const ObjectKey& key);
  // Of an object with this uid that Delete() has marked: nothing protects it any more. It goes even
  // if its file stays, as with DeletePod. No such object: nothing. Blocks: on disk.
  void Remove(const ObjectKey& key, const std::string& uid);
  // A pod goes even if its file stays (a disk that is read-only or failing), as its teardown must
  // not wait for that: the file then counts as gone, its removal is retried with back-off and at
  // every change, and the list names it as a problem. A start before that brings the pod back.
  // The answer is what the caller must be told of it; "" when the file is gone.
  // Errors: NotFound (not applied) when there is no such pod. Blocks: on disk.
  Result<std::string> DeletePod(const PodUid& uid);

 private:
  struct Stored {
    ObjectPtr object;
    std::string file;  // name inside the directory
  };

  void LoadAndDeliver();
  Status LoadLocked() REQUIRES(mu_);
  Status LoadFile(const std::string& file_name) REQUIRES(mu_);
  void Quarantine(const std::string& file_name, std::vector<DecodeProblem> problems) REQUIRES(mu_);
  // A pod's uid is not another's here, and its volumes are those that it had.
  Status CheckUidLocked(const ObjectKey& key, const Pod& pod) const REQUIRES(mu_);
  Result<std::map<ObjectKey, Stored>> PrepareLocked(std::vector<Object> objects) const
      REQUIRES(mu_);
  // Gives the object the uid that it has here, or a new one.
  Status IdentifyLocked(const ObjectKey& key, Object& object) const REQUIRES(mu_);
  Status MarkDeletedLocked(const ObjectKey& key, Stored& stored) REQUIRES(mu_);
  AppliedObject::What ChangeLocked(const ObjectKey& key, const Object& object) const REQUIRES(mu_);
  std::string TemporaryOf(const Stored& stored) const;
  // Under temporary names; after an error none of them is left.
  Status WriteLocked(const std::map<ObjectKey, Stored>& next) const REQUIRES(mu_);
  Status RemoveFileLocked(const std::string& file) const REQUIRES(mu_);
  // What must be told of its file; "" when that is gone.
  std::string RemoveStoredLocked(std::map<ObjectKey, Stored>::iterator stored) REQUIRES(mu_);
  // Notes that `file` is still there and when to try again.
  void RemoveLaterLocked(const std::string& file, const std::string& object, const Error& error)
      REQUIRES(mu_);
  void ArmRemovalLocked() REQUIRES(mu_);
  // True when one of the files has gone.
  bool RetryRemovalsLocked() REQUIRES(mu_);
  void RetryRemovals() EXCLUDES(mu_);
  ObjectList ListLocked() const REQUIRES(mu_);
  void DeliverLocked() REQUIRES(mu_);

  const std::string name_{kSourceName};
  const std::string directory_;
  const NodeName node_name_;
  Scheduler& scheduler_;
  const RoomCheck has_room_;
  // Set by Start() before any other thread can see it; called on the control thread only.
  std::shared_ptr<ObjectListener> listener_;

  Mutex mu_;
  bool loaded_ GUARDED_BY(mu_) = false;
  std::map<ObjectKey, Stored> stored_ GUARDED_BY(mu_);
  std::vector<DecodeProblem> problems_ GUARDED_BY(mu_);
  // Files of deleted pods that could not be removed, and what must be told of them.
  std::map<std::string, std::string> unremoved_ GUARDED_BY(mu_);
  Backoff removal_backoff_ GUARDED_BY(mu_);
  bool removal_armed_ GUARDED_BY(mu_) = false;  // a try is to come
};

}  // namespace volumed
