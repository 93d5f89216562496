// StorageGuard: which PersistentVolumes name the storage of a driver. They are applied, and made,
// at any time; a list of them that was made when a deletion was asked for is old once its driver
// has answered, or its lane has room.
#include "operation/storage_guard.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

// Begin the ids of who has storage by its name alone: by an object, or since it was made.
constexpr const char* kNames = "names/";
constexpr const char* kNamesByObject = "names/object/";
constexpr const char* kNamesAsMade = "names/made/";

StorageHolder NamingHolder(const std::string& prefix, const std::string& volume) {
  return {.id = prefix + volume,
          .volume = volume,
          .use = StorageUse::kKnown,
          .persistent = true,
          .text = "persistent volume " + volume,
          .was_begun = false,
          .only_names = prefix == kNamesByObject};
}

}  // namespace

// It is known by its name alone: what the node shows of it has an identity of its own.
StorageIdentity StorageGuard::OfDriver(const StorageName& name) {
  StorageIdentity identity;
  identity.own = {DriverDomain(name.driver) + ":" + name.path};
  return identity;
}

void StorageGuard::NameStorage(const std::string& volume, const StorageName* name) {
  const StorageHolder holder = NamingHolder(kNamesByObject, volume);
  if (name == nullptr || name->driver.empty()) return table_.Release(holder.id);
  // What is only known is refused to nobody.
  (void)table_.Take(holder, OfDriver(*name));
}

Status StorageGuard::TakeMade(const std::string& volume, const StorageName& name) {
  RETURN_IF_ERROR(Load());
  ReadAll();
  const StorageHolder holder = NamingHolder(kNamesAsMade, volume);
  std::optional<StorageHolder> there = table_.TakeNew(holder, OfDriver(name));
  // As Reserve() does: a reclaim that is not tried again is ended by whoever comes.
  if (there && there->use == StorageUse::kReclaim && ReleaseEnded(there->id).ok()) {
    there = table_.TakeNew(holder, OfDriver(name));
  }
  if (!there) return OkStatus();
  if (IsExclusive(there->use)) {
    return Error::NotApplied(Code::kAborted, name.ToString() + " is not given to volume " + volume +
                                                 " yet: it is being deleted, or changed, for " +
                                                 there->text);
  }
  return Error::NotApplied(
      Code::kFailedPrecondition,
      "it is the storage of " +
          (there->persistent ? "PersistentVolume " + there->volume : there->text));
}

void StorageGuard::ForgetMade(const std::string& volume) { table_.Release(kNamesAsMade + volume); }

bool StorageGuard::NamesStorage(const StorageHolder& holder) {
  return holder.id.starts_with(kNames);
}

std::set<std::string> StorageGuard::NamedBy(const StorageName& name) const {
  return table_.VolumesOf(kNames, OfDriver(name));
}

void StorageGuard::ExpectDeletions(const std::vector<StorageReservationRecord>& begun) {
  for (const StorageReservationRecord& record : begun) {
    if (!record.name.driver.empty()) ExpectInTable({record.holder, record.name});
  }
}

std::map<std::string, std::string> StorageGuard::VolumesBeingDeleted() const {
  constexpr const char* kGoesFor = "its storage is being deleted for ";
  std::map<std::string, std::string> volumes;
  for (const Deletions& of_others : others_) {
    for (const Deletion& deletion : of_others()) {
      for (const std::string& volume : table_.VolumesOf(kNamesByObject, OfDriver(deletion.name))) {
        volumes[volume] = kGoesFor + deletion.text;
      }
    }
  }
  const std::vector<StorageTable::Emptied> all = table_.EmptiedOf(kNamesByObject);
  const MutexLock lock(mu_);
  for (const StorageTable::Emptied& emptied : all) {
    // Such a reclaim is not tried again: a pod of the volume looks whether it still goes on.
    if (ended_.contains(emptied.by.id)) continue;
    volumes.emplace(emptied.of.volume, kGoesFor + emptied.by.text);
  }
  return volumes;
}

}  // namespace volumed
