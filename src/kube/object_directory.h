// ObjectDirectory: the objects that were given by `volumectl apply`, one JSON file each, in a
// directory of the agent's own (0700). A source like any other, and the only one that is writable.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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
// Threads: Start() and Forget() on the control thread; Apply() and the deletes on any other, since
// they write to disk. REQUIRES: outlives its scheduler's tasks.
class ObjectDirectory final : public ObjectSource {
 public:
  static constexpr std::string_view kSourceName = "volumectl-apply";

  // `node_name` completes pods without a uid (kube/static_pod.h).
  ObjectDirectory(std::string directory, NodeName node_name, Scheduler& scheduler);

  const std::string& name() const override { return name_; }
  void Start(ObjectListener listener) override;
  void Forget() override;

  // Stores all objects, replacing those of the same kind, namespace and name, and delivers the new
  // list. An object that is stored already, equal, is not written again. Returns them as stored (a
  // pod without a uid has got one, and its name the node's suffix), sorted by key.
  // Blocks: on disk (one fsync per object and one for the directory).
  // Errors, nothing written: FailedPrecondition before the first load is complete and for other
  // spec.volumes under the same uid, AlreadyExists for a uid of another pod, InvalidArgument for an
  // object given twice. Else errno's code, not applied when no file was replaced yet, maybe applied
  // afterwards.
  Result<std::vector<AppliedObject>> Apply(std::vector<Object> objects);

  // Errors: NotFound (not applied) when there is no such object. Blocks: on disk.
  Status Delete(const ObjectKey& key);
  Status DeletePod(const PodUid& uid);

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
  AppliedObject::What ChangeLocked(const ObjectKey& key, const Object& object) const REQUIRES(mu_);
  std::string TemporaryOf(const Stored& stored) const;
  Status DeleteLocked(std::map<ObjectKey, Stored>::iterator stored) REQUIRES(mu_);
  ObjectList ListLocked() const REQUIRES(mu_);
  void DeliverLocked() REQUIRES(mu_);

  const std::string name_{kSourceName};
  const std::string directory_;
  const NodeName node_name_;
  Scheduler& scheduler_;
  // Set by Start() before any other thread can see it; called on the control thread only.
  std::shared_ptr<ObjectListener> listener_;

  Mutex mu_;
  bool loaded_ GUARDED_BY(mu_) = false;
  std::map<ObjectKey, Stored> stored_ GUARDED_BY(mu_);
  std::vector<DecodeProblem> problems_ GUARDED_BY(mu_);
};

}  // namespace volumed
