// StorageGuard: what a volume that is no more has left. It was promised to stay, and no other
// volume's Recycle or Delete may take it along.
#include <utility>
#include <vector>

#include "mounter/host_directory.h"
#include "operation/storage_guard.h"
#include "operation/storage_record_identity.h"
#include "os/kernel.h"

namespace volumed {
namespace {

// Of a disk nothing is kept: nobody empties one, and only a blank one is formatted.
bool HasWhatAReclaimMayTake(const StorageOwnerRecord& record) {
  return IsUsed(record) && (record.object.inode != 0 || !record.files.empty());
}

}  // namespace

Status StorageGuard::RemoveOwner(const std::string& row_key) {
  RETURN_IF_ERROR(Load());
  if (FindOwner(row_key)) {
    RETURN_IF_ERROR(store_.Remove(kStorageOwnerRecordKind, row_key, kStorageRecordDurability));
  }
  table_.Release("known/" + row_key);
  const MutexLock lock(mu_);
  owners_.erase(row_key);
  return OkStatus();
}

Status StorageGuard::Forget(const std::string& volume) {
  RETURN_IF_ERROR(Load());
  const std::optional<StorageOwnerRecord> record = FindOwner(volume);
  // The row of what is retained comes first: a crash between the two leaves both.
  if (record && HasWhatAReclaimMayTake(*record)) RETURN_IF_ERROR(Retain(*record));
  RETURN_IF_ERROR(RemoveOwner(volume));
  return EndReclaims(volume);
}

Status StorageGuard::Retain(StorageOwnerRecord record) {
  for (record.retained = 1;; ++record.retained) {
    if (!CheckReadable(RowKey(record)).ok()) continue;
    const std::optional<StorageOwnerRecord> there = FindOwner(RowKey(record));
    const bool is_it = there && there->object == record.object && there->files == record.files;
    if (!there || is_it) return PutOwner(std::move(record));
  }
}

Status StorageGuard::ForgetBut(const std::set<std::string>& volumes) {
  RETURN_IF_ERROR(Load());
  std::set<std::string> gone;
  {
    const MutexLock lock(mu_);
    for (const auto& [key, record] : owners_) {
      if (record.retained == 0 && !volumes.contains(key)) gone.insert(key);
    }
    for (const auto& [id, record] : reserved_) {
      if (!volumes.contains(record.holder.volume)) gone.insert(record.holder.volume);
    }
  }
  for (const std::string& volume : gone) RETURN_IF_ERROR(Forget(volume));
  return OkStatus();
}

Status StorageGuard::ForgetGivenOn(const StorageObject& directory) {
  std::vector<std::string> given;
  {
    const MutexLock lock(mu_);
    for (const auto& [key, record] : owners_) {
      const bool is_it = record.retained != 0 && IsSameObject(record.object, directory);
      if (is_it) given.push_back(key);
    }
  }
  for (const std::string& key : given) RETURN_IF_ERROR(RemoveOwner(key));
  return OkStatus();
}

// Only its own filesystem can tell: a disk that is not mounted has its directories still.
Result<bool> StorageGuard::IsGone(const StorageName& name, const StorageObject& object,
                                  const BootId& boot_id, const CallOptions& call) {
  const bool of_memory = object.fs_type == "tmpfs" || object.fs_type == "ramfs";
  if (of_memory && boot_id != boot_id_) return true;
  if (object.fs_uuid.empty() || object.handle.empty()) return false;
  CallOptions look = LookAt(name, settings_.short_look);
  look.cancel = call.cancel;
  ASSIGN_OR_RETURN(const StorageIdentity now, Identify(name, FindUsers::kNo, look));
  if (now.object.fs_uuid != object.fs_uuid) return false;
  IdentifyStorage request;
  request.path = HostPath(name.path);
  request.look_for = object;
  ASSIGN_OR_RETURN(const StorageIdentity found, kernel_.Call(request, look));
  return found.type == FileType::kMissing;
}

// What cannot be told stays.
Status StorageGuard::ForgetIfGone(const StorageOwnerRecord& retained, const CallOptions& call) {
  const auto is_gone = [&](const StorageName& name, const StorageObject& object) {
    const Result<bool> gone = IsGone(name, object, retained.boot_id, call);
    return gone.ok() && *gone;
  };
  if (retained.object.inode != 0 && !is_gone(retained.name, retained.object)) return OkStatus();
  for (const StorageFile& file : retained.files) {
    if (!is_gone({file.path}, file.object)) return OkStatus();
  }
  return RemoveOwner(RowKey(retained));
}

}  // namespace volumed
