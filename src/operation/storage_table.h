// StorageTable: who has which storage, by what the storage is and not by what it is called. Taking
// a storage and asking who else has it are one act.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "os/storage_requests.h"
#include "volume/storage_name.h"

namespace volumed {

enum class StorageUse {
  kKnown,    // it is some volume's, and nobody has it at the moment
  kShared,   // a directory of it is in use, beside others
  kMounted,  // the filesystem of the device is mounted from this very device
  kRaw,      // a pod has the device itself
  kFormat,   // a filesystem is being made
  kReclaim,  // its content is being deleted
};

// Whoever has it so, has it alone.
bool IsExclusive(StorageUse use);

struct StorageHolder {
  std::string id;      // "pod/<pod uid>/<volume>", "device/<unique name>", "reclaim/<volume>"
  std::string volume;  // of one name: they may share what they have. A PersistentVolume's name
  StorageUse use = StorageUse::kKnown;
  bool persistent = false;  // what is in it outlives the pod
  std::string text;         // "persistent volume pv-1"
  // The agent before this one has begun it: a set-up of which nothing may be there, or a reclaim,
  // which has asked everybody then.
  bool was_begun = false;
};

// Who has storage at a place, or may have, and nobody has looked at it yet.
struct KnownStorage {
  StorageHolder holder{};
  StorageName name{};
  // What he was given, of this boot: he has it still, wherever the name leads by now. Empty: that
  // is not known.
  GivenStorage given{};
};

// A file or directory that somebody has, and that may have been moved since he was given it.
struct HeldObject {
  StorageHolder holder{};
  StorageObject object{};
};

// Threads: any. Blocks: never.
class StorageTable {
 public:
  // Reserves, unless somebody has the storage who excludes this use; then the answer is who that
  // is, and nothing is changed. An entry of the same id is replaced, but for what its holder was
  // given before the agent ended. Costs what the keys and those who have them cost, not what the
  // table holds: who shares asks among those alone who do not.
  std::optional<StorageHolder> Take(const StorageHolder& holder, const StorageIdentity& identity)
      EXCLUDES(mu_);
  void Release(const std::string& id) EXCLUDES(mu_);
  // Lets go of those who are only known and whom nobody knows any more.
  void ReleaseKnown(const std::function<bool(const StorageHolder&)>& is_gone) EXCLUDES(mu_);
  // Who with a use and an id of this prefix has storage that overlaps this one.
  std::optional<StorageHolder> Find(const std::string& prefix,
                                    const StorageIdentity& identity) const EXCLUDES(mu_);
  // Likewise, but nothing is taken.
  std::optional<StorageHolder> FindExcluding(const StorageHolder& holder,
                                             const StorageIdentity& identity) const EXCLUDES(mu_);
  // What was taken to be formatted is mounted from now on; nothing if it is not there.
  void Mounted(const std::string& id) EXCLUDES(mu_);
  bool Has(const std::string& id, StorageUse use) const EXCLUDES(mu_);

  // What this holder has, by now and of what he was given before; empty if he has nothing.
  GivenStorage StorageOf(const std::string& id) const EXCLUDES(mu_);
  // Each file or directory that may lie in the filesystem of `place`, and that somebody has who is
  // in this holder's way wherever it lies. Costs what the table holds: it is for reclaims alone.
  std::vector<HeldObject> HeldObjects(const StorageHolder& holder, const StorageObject& place) const
      EXCLUDES(mu_);

  // What the agent before this one left.
  void Expect(KnownStorage known) EXCLUDES(mu_);
  // Those that `use` has to know of. Costs what these are.
  std::vector<KnownStorage> Expected(StorageUse use) const EXCLUDES(mu_);
  // What is expected is this, and what he was given; nothing if it was released meanwhile.
  void Identified(const std::string& id, const StorageIdentity& identity) EXCLUDES(mu_);

 private:
  struct Entry {
    StorageHolder holder;
    StorageIdentity identity;
    GivenStorage given;  // KnownStorage
  };
  using Ids = std::set<std::string>;
  // By key; apart are those who exclude others, those who exclude their twins, and the rest.
  struct Index {
    std::unordered_map<std::string, Ids> own;
    std::unordered_map<std::string, Ids> within;
  };

  Index& IndexOf(StorageUse use) REQUIRES(mu_);
  void ForgetExpected(const std::string& id) REQUIRES(mu_);
  GivenStorage GivenTo(const std::string& id) const REQUIRES(mu_);
  static GivenStorage Had(const Entry& entry);
  std::optional<StorageHolder> ExcludingLocked(const StorageHolder& holder,
                                               const StorageIdentity& identity) const REQUIRES(mu_);
  void Add(const StorageHolder& holder, const StorageIdentity& identity) REQUIRES(mu_);
  void Remove(const std::string& id) REQUIRES(mu_);
  void Collect(const Index& index, const StorageIdentity& identity, Ids& ids) const REQUIRES(mu_);

  mutable Mutex mu_;
  std::map<std::string, Entry> entries_ GUARDED_BY(mu_);
  Index exclusive_ GUARDED_BY(mu_);
  Index mounted_ GUARDED_BY(mu_);
  Index others_ GUARDED_BY(mu_);
  // By id; those who share are apart, for nobody but who excludes them asks for them.
  using ExpectedOnes = std::map<std::string, KnownStorage>;
  ExpectedOnes expected_sharing_ GUARDED_BY(mu_);
  ExpectedOnes expected_ GUARDED_BY(mu_);  // the others
};

// How the storage that is there overlaps the one that is wanted.
struct StorageMeeting {
  bool contains = false;  // it only contains the wanted one
  bool twins = false;     // AreTwins
};

// How the storages meet, if they overlap. Pure.
StorageMeeting Meeting(const StorageIdentity& there, const StorageIdentity& wanted);

// Whether `there`, which has storage that overlaps `wanted`'s, keeps it from being taken. Pure.
bool Excludes(const StorageHolder& there, const StorageHolder& wanted, StorageMeeting meeting);

}  // namespace volumed
