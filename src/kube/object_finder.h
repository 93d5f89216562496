// ObjectFinder: the part of the object catalog (kube/object_catalog.h) that answers questions:
// which objects the sources have, by kind, namespace and name, and what is not known.
//
// A look-up has three answers: the object, certainly absent, or unknown. Nothing may be taken away,
// and nothing left out, because of an object that is unknown.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/object_source.h"
#include "kube/objects.h"

namespace volumed {

// Where an object came from. An object that no file has any more keeps the place where it was last.
struct ObjectOrigin {
  std::string source;  // ObjectSource::name()
  std::string file;    // its path
  int document = 0;    // from 0
  friend bool operator==(const ObjectOrigin&, const ObjectOrigin&) = default;
};

inline bool SameFile(const ObjectOrigin& a, const ObjectOrigin& b) {
  return a.source == b.source && a.file == b.file;
}

// Empty if the object is not a pod.
PodUid UidOfPod(const Object& object);

// How an object came to be in the catalog.
struct ObjectStanding {
  ObjectOrigin origin;
  ObjectPresence presence = ObjectPresence::kPresent;
  std::string reason;               // if it is unproven or going, for people
  int64_t goes_at_unix_millis = 0;  // if it is going
  // Its source lacks it now, and no command has ended it: it is kept in its last state.
  bool missing = false;
  int64_t missing_since_unix_millis = 0;
  // For a pod: its file has other volumes. The pod keeps its own until it is replaced.
  bool has_first_volumes = false;
  // For such a pod: its manifest names no uid and has the other volumes now. They belong to another
  // pod, which is to replace this one.
  bool to_be_replaced = false;
};

// One of the three answers to the question for an object.
struct ObjectLookup {
  enum class Answer { kFound, kAbsent, kUnknown };
  Answer answer = Answer::kAbsent;
  ObjectPtr object;  // null unless kFound
  // With kUnknown: the path of the file that may have it; "" if any source may have it that has not
  // delivered yet.
  std::string file;
  std::string reason;  // with kUnknown, for people
};

// Whether objects of the kind outlive the pods that use them. Such an object does not end because
// it is absent from its source: it is Missing then, until a command ends it.
bool OutlivesPods(ObjectKind kind);

// Threads: the catalog's, which is the control thread. Blocks: never. Errors: none. Its answers
// change within the methods of ObjectCatalog alone.
class ObjectFinder {
 public:
  ObjectFinder(const ObjectFinder&) = delete;
  ObjectFinder& operator=(const ObjectFinder&) = delete;

  // The pointers below are null if there is no such object, or if it is unknown; an object that is
  // Missing is found. A shared_ptr keeps an old version alive.
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
  // All objects of a kind, also those that are Missing, sorted by namespace and name.
  std::vector<std::shared_ptr<const PersistentVolume>> PersistentVolumes() const;
  std::vector<std::shared_ptr<const PersistentVolumeClaim>> PersistentVolumeClaims() const;
  std::vector<std::shared_ptr<const StorageClass>> StorageClasses() const;
  // Finds an object of any kind.
  ObjectPtr FindObject(const ObjectKey& key) const {
    return Find(key.kind, key.name_space, key.name);
  }
  // The objects of a kind that are found, sorted by namespace and name; an empty `name_space` means
  // all.
  std::vector<ObjectKey> KeysOf(ObjectKind kind, std::string_view name_space) const;

  // Gives one of the three answers.
  ObjectLookup LookUp(const ObjectKey& key) const;

  // True if the object is not found, but a source that names it cannot tell whether it has it, or
  // what it holds. Unlike LookUp() it does not count objects that a source may have which has not
  // delivered yet, unless that source had them before.
  bool MayBeThere(const ObjectKey& key) const { return unknown_.contains(key); }

  // All objects of a kind of which it is not known whether they exist, or what they hold. They are
  // sorted by namespace and name.
  std::vector<UnknownObject> UnknownOf(ObjectKind kind) const;

  // nullopt if the object is not found.
  std::optional<ObjectOrigin> OriginOf(const ObjectKey& key) const;
  // nullopt if the object is not found.
  std::optional<ObjectStanding> StandingOf(const ObjectKey& key) const;
  // For callers that may not use a Missing object. False if the object is not found.
  bool IsMissing(const ObjectKey& key) const;
  // How many objects are found, those that are Missing among them.
  size_t size() const { return entries_.size(); }

 protected:
  struct Entry {
    ObjectPtr object;
    ObjectStanding standing;
  };
  using Entries = std::map<ObjectKey, Entry>;
  struct Unknown {
    ObjectOrigin origin;
    std::string reason;
  };

  ObjectFinder() = default;
  ~ObjectFinder() = default;

  const Entry* FindEntry(const ObjectKey& key) const;

  Entries entries_;
  std::map<PodUid, ObjectKey> pods_by_uid_;
  // Objects that are not among the entries and may exist all the same.
  std::map<ObjectKey, Unknown> unknown_;
  // Why an unknown object of the kind may still come. A kind that every source has delivered is not
  // in the map.
  std::map<ObjectKind, std::string> waits_for_;

 private:
  template <typename T>
  std::vector<std::shared_ptr<const T>> AllOf(ObjectKind kind) const;
  ObjectPtr Find(ObjectKind kind, std::string_view name_space, std::string_view name) const;
};

}  // namespace volumed
