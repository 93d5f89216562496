// ObjectFinder: the reading half of the object catalog (kube/object_catalog.h): what the sources
// have, by kind, namespace and name, and what is said where nobody knows.
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

struct ObjectOrigin {
  std::string source;
  std::string file;
  int document = 0;
  friend bool operator==(const ObjectOrigin&, const ObjectOrigin&) = default;
};

inline bool SameFile(const ObjectOrigin& a, const ObjectOrigin& b) {
  return a.source == b.source && a.file == b.file;
}

// Empty for an object that is no pod.
PodUid UidOfPod(const Object& object);

// How an object of the catalog comes to be in it.
struct ObjectStanding {
  ObjectOrigin origin;
  ObjectPresence presence = ObjectPresence::kPresent;
  std::string reason;               // of an object that is held or going, for people
  int64_t goes_at_unix_millis = 0;  // of an object that is going
  // Its source lacks it now, and no command has ended it: it is kept as it was last.
  bool missing = false;
  int64_t missing_since_unix_millis = 0;
  // Of a pod: its file has other volumes than it. Those that it has stay until it is replaced.
  bool has_first_volumes = false;
  // Of such a pod: its manifest names no uid, and has the other volumes now. They are another pod,
  // which is to replace it.
  bool to_be_replaced = false;
};

struct ObjectLookup {
  enum class Answer { kFound, kAbsent, kUnknown };
  Answer answer = Answer::kAbsent;
  ObjectPtr object;    // of kFound; else null
  std::string file;    // of kUnknown: which file may have it; "" if that is not known either
  std::string reason;  // of kUnknown, for people
};

// Objects of such a kind outlive the pods that use them. None of them ends because it is absent
// from its source: it is Missing then, until a command ends it.
bool OutlivesPods(ObjectKind kind);

// Threads: the catalog's, the control thread. Blocks: never. Errors: none.
class ObjectFinder {
 public:
  ObjectFinder(const ObjectFinder&) = delete;
  ObjectFinder& operator=(const ObjectFinder&) = delete;

  // Pointers below are null when there is no such object, or when it is unknown; an object that is
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
  // All of a kind, those that are Missing too, sorted by namespace and name.
  std::vector<std::shared_ptr<const PersistentVolume>> PersistentVolumes() const;
  std::vector<std::shared_ptr<const PersistentVolumeClaim>> PersistentVolumeClaims() const;
  std::vector<std::shared_ptr<const StorageClass>> StorageClasses() const;
  // Of any kind.
  ObjectPtr FindObject(const ObjectKey& key) const {
    return Find(key.kind, key.name_space, key.name);
  }
  // What there is of a kind, sorted by namespace and name; `name_space` empty: of all.
  std::vector<ObjectKey> KeysOf(ObjectKind kind, std::string_view name_space) const;

  // The three answers.
  ObjectLookup LookUp(const ObjectKey& key) const;

  // Not found, and named by a source that cannot tell whether it has it, or what it holds.
  bool MayBeThere(const ObjectKey& key) const { return unknown_.contains(key); }

  // All of a kind of which nobody knows whether they are there, or what they hold.
  std::vector<UnknownObject> UnknownOf(ObjectKind kind) const;

  // nullopt for an object that is not found.
  std::optional<ObjectOrigin> OriginOf(const ObjectKey& key) const;
  std::optional<ObjectStanding> StandingOf(const ObjectKey& key) const;
  // Whoever may not use a Missing object asks this. False for an object that is not found.
  bool IsMissing(const ObjectKey& key) const;
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
  // Objects that are not among the entries and may be there all the same.
  std::map<ObjectKey, Unknown> unknown_;
  // Why an object of the kind that nobody knows of may still come. Kinds that every source has
  // delivered are not among them.
  std::map<ObjectKind, std::string> waits_for_;

 private:
  template <typename T>
  std::vector<std::shared_ptr<const T>> AllOf(ObjectKind kind) const;
  ObjectPtr Find(ObjectKind kind, std::string_view name_space, std::string_view name) const;
};

}  // namespace volumed
