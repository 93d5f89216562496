// StorageTable: who has which storage, identified by what it is and not by what it is called.
// Taking a storage and asking who else has it are one act.
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
  // It belongs to some volume, and nobody has it at the moment.
  kKnown,
  // A directory of it is in use, beside others.
  kShared,
  kMounted,  // the device's filesystem is mounted from this device
  kRaw,      // a pod has the device itself
  kFormat,   // a filesystem is being made
  kReclaim,  // its content is being deleted
};

// Whether the holder must have the storage alone.
bool IsExclusive(StorageUse use);

// Who has a storage, and for what.
struct StorageHolder {
  std::string id;  // "pod/<pod uid>/<volume>", "device/<unique name>", ...
  // A PersistentVolume's name. Holders of one name may share what they have.
  std::string volume;
  StorageUse use = StorageUse::kKnown;
  bool persistent = false;  // its content outlives the pod
  std::string text;         // "persistent volume pv-1"
  // The agent before this one has begun the use: a set-up that may have made nothing, or a reclaim,
  // which asked all holders then.
  bool was_begun = false;
  // An object says that it is its own, and nobody has it in use: a reclaim that was begun before
  // the object came goes on.
  bool only_names = false;
  friend bool operator==(const StorageHolder&, const StorageHolder&) = default;
};

// A holder that has, or may have, storage at a place that nobody has looked at yet.
struct KnownStorage {
  StorageHolder holder{};
  StorageName name{};
  // What the holder was given in this boot: it still has that, wherever the name leads by now.
  // Empty: not known.
  GivenStorage given{};
};

// A file or directory that a holder was given and that may have been moved since.
struct HeldObject {
  StorageHolder holder{};
  StorageObject object{};
};

// Threads: any. Blocks: never. It keeps nothing on record and looks at nothing: what a storage is,
// its callers have found out (IdentifyStorage).
class StorageTable {
 public:
  // Takes the storage, unless a holder excludes this use; that holder is then returned, and nothing
  // is changed. An entry of the same id is replaced, except for what its holder was given before
  // the agent ended. The cost depends on the keys and their holders, not on the size of the table:
  // a use that shares asks only among holders that do not.
  std::optional<StorageHolder> Take(const StorageHolder& holder, const StorageIdentity& identity)
      EXCLUDES(mu_);
  // Takes the storage unless a holder of another volume has any of it, for whatever use; that
  // holder is then returned, and nothing is changed. For storage that nobody may have had before.
  std::optional<StorageHolder> TakeNew(const StorageHolder& holder, const StorageIdentity& identity)
      EXCLUDES(mu_);
  // The holder has nothing any more, and is not expected either. Has no effect for an unknown id.
  void Release(const std::string& id) EXCLUDES(mu_);
  // Releases storage that is only known, of holders that nobody knows any more.
  void ReleaseKnown(const std::function<bool(const StorageHolder&)>& is_gone) EXCLUDES(mu_);
  // A holder whose id has this prefix and whose storage overlaps this one; nullopt if there is
  // none.
  std::optional<StorageHolder> Find(const std::string& prefix,
                                    const StorageIdentity& identity) const EXCLUDES(mu_);
  // The volumes of all such holders.
  std::set<std::string> VolumesOf(const std::string& prefix, const StorageIdentity& identity) const
      EXCLUDES(mu_);
  // Who empties what; the holders whose ids have this prefix and that have the very same storage
  // for another volume. The cost depends on the holders that exclude others.
  struct Emptied {
    StorageHolder of;
    StorageHolder by;
  };
  std::vector<Emptied> EmptiedOf(const std::string& prefix) const EXCLUDES(mu_);
  // The holder for which Take() would refuse; nothing is taken.
  std::optional<StorageHolder> FindExcluding(const StorageHolder& holder,
                                             const StorageIdentity& identity) const EXCLUDES(mu_);
  // Storage that was taken to be formatted is mounted from now on; no effect if there is no such
  // entry.
  void Mounted(const std::string& id) EXCLUDES(mu_);
  // Whether the holder was looked at, and has its storage for exactly this use.
  bool Has(const std::string& id, StorageUse use) const EXCLUDES(mu_);

  // What this holder has, by now and from what it was given before; empty if it has nothing.
  GivenStorage StorageOf(const std::string& id) const EXCLUDES(mu_);
  // All files and directories that may lie in the filesystem of `place` and whose holders exclude
  // this holder, wherever they lie. The cost depends on the size of the table, so it is for
  // reclaims alone.
  std::vector<HeldObject> HeldObjects(const StorageHolder& holder, const StorageObject& place) const
      EXCLUDES(mu_);

  // Adds what the agent before this one left.
  void Expect(KnownStorage known) EXCLUDES(mu_);
  // The expected holders of which `use` has to know. The cost depends on their number.
  std::vector<KnownStorage> Expected(StorageUse use) const EXCLUDES(mu_);
  // An expected holder has this storage, and what it was given; no effect if it was released
  // meanwhile.
  void Identified(const std::string& id, const StorageIdentity& identity) EXCLUDES(mu_);

 private:
  struct Entry {
    StorageHolder holder;
    StorageIdentity identity;
    GivenStorage given;  // as in KnownStorage
  };
  using Ids = std::set<std::string>;
  // Ids by key. There is one index each for holders that exclude others, for mounts, and for the
  // rest.
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
  Ids CollectAll(const StorageIdentity& identity) const REQUIRES(mu_);

  mutable Mutex mu_;
  std::map<std::string, Entry> entries_ GUARDED_BY(mu_);
  Index exclusive_ GUARDED_BY(mu_);
  Index mounted_ GUARDED_BY(mu_);
  Index others_ GUARDED_BY(mu_);
  // By id. Holders that share are kept apart, since only a use that excludes them asks for them.
  using ExpectedOnes = std::map<std::string, KnownStorage>;
  ExpectedOnes expected_sharing_ GUARDED_BY(mu_);
  ExpectedOnes expected_ GUARDED_BY(mu_);  // the others
};

// How storage that is held overlaps the storage that is wanted.
struct StorageMeeting {
  bool contains = false;  // it only contains the wanted storage
  // One of the two is a directory that only has the file of a loop device, which the other one is
  // or lies on, somewhere in it: what is written there goes through that file's filesystem.
  bool holds_file_only = false;
  bool twins = false;  // AreTwins
};

// How the storages meet, if they overlap. This function is pure.
StorageMeeting Meeting(const StorageIdentity& there, const StorageIdentity& wanted);

// Whether `there`, whose storage overlaps that of `wanted`, keeps it from being taken. This
// function is pure.
bool Excludes(const StorageHolder& there, const StorageHolder& wanted, StorageMeeting meeting);

}  // namespace volumed
