// ObjectCatalog: one view of the objects of all sources.
//
// Rules, in this order (ConflictRules() prints them for people):
//  1. An object's last complete list counts until the source delivers another or is forgotten.
//  2. Two objects of one kind, namespace and name, or two pods of one uid: the one that was there
//     first stays, the other is a problem of its file. When the first leaves, the other takes over.
//  3. spec.volumes of a pod does not change under one uid: the spec that came first stays until the
//     pod leaves; its metadata and status follow the file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "kube/object_source.h"
#include "kube/objects.h"

namespace volumed {

struct ObjectChange {
  enum class What { kAdded, kChanged, kRemoved };
  What what = What::kAdded;
  ObjectKey key;
  PodUid uid;        // pods only
  ObjectPtr before;  // null when added
  ObjectPtr after;   // null when removed
};

struct SourceStatus {
  std::string name;
  bool complete = false;  // has delivered a complete list at least once
  bool last_list_complete = false;
  size_t objects = 0;  // of the last complete list
  std::vector<DecodeProblem> problems;
  std::string last_error;             // the newest list's first problem; "" when it had none
  int64_t last_list_unix_millis = 0;  // 0: never heard of it
};

struct ObjectOrigin {
  std::string source;
  std::string file;
  int document = 0;
  friend bool operator==(const ObjectOrigin&, const ObjectOrigin&) = default;
};

// Threads: control thread. Blocks: never. Errors: none; what is wrong is in the sources' status.
class ObjectCatalog {
 public:
  using Listener = std::function<void(const std::vector<ObjectChange>&)>;

  explicit ObjectCatalog(const Clock& clock) : clock_(clock) {}
  ObjectCatalog(const ObjectCatalog&) = delete;
  ObjectCatalog& operator=(const ObjectCatalog&) = delete;

  // A source that is configured: AllSourcesComplete() waits for it. Update() of a source that was
  // not expected expects it from then on.
  void ExpectSource(const std::string& name);

  // Takes a list over and tells the listeners what changed, if anything did. A list that is not
  // complete changes the source's status only.
  void Update(ObjectList list);

  // Drops the source, its objects and its expectation. False if there is no such source.
  bool ForgetSource(const std::string& name);

  // Who gives a uid to a PersistentVolume or PersistentVolumeClaim whose manifest names none; asked
  // at every merge, for what is in it. "": it stays without. What is there is merged anew at once.
  // Until this is called such objects have no uid.
  using Identify = std::function<std::string(const ObjectKey&)>;
  void IdentifyBy(Identify identify);

  // Called after the catalog has changed; may read it, must not change it.
  void AddListener(Listener listener) { listeners_.push_back(std::move(listener)); }

  // True once every expected source has delivered a complete list. Nothing may be unmounted before.
  bool AllSourcesComplete() const;
  std::vector<std::string> IncompleteSources() const;
  std::vector<SourceStatus> Sources() const;

  // Pointers below are null when there is no such object. A shared_ptr keeps an old version alive.
  std::vector<std::shared_ptr<const Pod>> Pods() const;  // sorted by uid
  std::shared_ptr<const Pod> FindPod(const PodUid& uid) const;
  std::shared_ptr<const Pod> FindPod(std::string_view name_space, std::string_view name) const;
  std::shared_ptr<const SecretObject> FindSecret(std::string_view name_space,
                                                 std::string_view name) const;
  std::shared_ptr<const ConfigMapObject> FindConfigMap(std::string_view name_space,
                                                       std::string_view name) const;
  std::shared_ptr<const NodeObject> FindNode(std::string_view name) const;
  std::shared_ptr<const PersistentVolume> FindPersistentVolume(std::string_view name) const;
  std::shared_ptr<const PersistentVolumeClaim> FindPersistentVolumeClaim(
      std::string_view name_space, std::string_view name) const;
  std::shared_ptr<const StorageClass> FindStorageClass(std::string_view name) const;
  std::shared_ptr<const CsiDriverObject> FindCsiDriver(std::string_view name) const;
  // All of a kind, sorted by namespace and name.
  std::vector<std::shared_ptr<const PersistentVolume>> PersistentVolumes() const;
  std::vector<std::shared_ptr<const PersistentVolumeClaim>> PersistentVolumeClaims() const;
  std::vector<std::shared_ptr<const StorageClass>> StorageClasses() const;
  // Of any kind.
  ObjectPtr FindObject(const ObjectKey& key) const {
    return Find(key.kind, key.name_space, key.name);
  }
  // What there is of a kind, sorted by namespace and name; `name_space` empty: of all.
  std::vector<ObjectKey> KeysOf(ObjectKind kind, std::string_view name_space) const;
  std::optional<ObjectOrigin> OriginOf(const ObjectKey& key) const;
  // Problems of conflicts and of files that concern this object; for `volumectl explain`.
  std::vector<DecodeProblem> ProblemsOf(const ObjectKey& key) const;
  size_t size() const { return entries_.size(); }

  // The rules above in three sentences.
  static std::string_view ConflictRules();

 private:
  struct Source {
    bool expected = false;
    bool complete = false;
    bool last_list_complete = false;
    uint64_t order = 0;  // of arrival
    std::vector<ObjectWithOrigin> objects;
    std::vector<DecodeProblem> problems;           // of the last list
    std::vector<DecodeProblem> conflict_problems;  // of the last merge
    int64_t last_list_unix_millis = 0;
  };
  struct Entry {
    ObjectOrigin origin;
    ObjectPtr object;
  };
  using Entries = std::map<ObjectKey, Entry>;
  class Merge;

  void MergeAndNotify();
  static std::vector<ObjectChange> Difference(const Entries& before, const Entries& after);
  template <typename T>
  std::vector<std::shared_ptr<const T>> AllOf(ObjectKind kind) const;
  ObjectPtr Find(ObjectKind kind, std::string_view name_space, std::string_view name) const;

  const Clock& clock_;
  Identify identify_;
  uint64_t next_order_ = 1;
  std::map<std::string, Source> sources_;
  Entries entries_;
  std::map<PodUid, ObjectKey> pods_by_uid_;
  std::vector<Listener> listeners_;
};

}  // namespace volumed
