// StorageGuard: the directory that a claim has. Another one at its path is most often the mount
// point below a disk that is not mounted: a pod would start on it as if all its data were lost.
#include <optional>
#include <utility>

#include "operation/storage_guard.h"
#include "operation/storage_record_identity.h"
#include "os/kernel.h"

namespace volumed {
namespace {

Error NotTheDirectory(const std::string& why) {
  return Error::NotApplied(Code::kFailedPrecondition, why);
}

std::string DirectoryText(const StorageIdentity& identity) {
  if (identity.type == FileType::kDirectory) return ObjectText(identity.object);
  const std::string type(FileTypeName(identity.type));
  return identity.type == FileType::kMissing ? type : "a " + type;
}

// In one boot everything that is known is compared.
std::string DirectoryDifference(const StorageOwnerRecord& record, const StorageObject& now,
                                const BootId& boot) {
  return record.boot_id == boot ? StorageDifference(record.object, now)
                                : LastingDifference(record.object, now);
}

}  // namespace

Status StorageGuard::CheckKeepsDirectory(const StorageOwner& owner,
                                         const StorageOwnerRecord& before,
                                         const StorageIdentity& now) const {
  std::string difference = DirectoryDifference(before, now.object, boot_id_);
  if (now.type != FileType::kDirectory) difference = "it is no directory";
  if (difference.empty()) return OkStatus();
  return NotTheDirectory(owner.name.ToString() +
                         " is another directory than the one that the claim of persistent volume " +
                         owner.volume + " has its data in: " + difference + " (it was " +
                         ObjectText(before.object) + ", and is " + DirectoryText(now) +
                         "). Mount its disk there; or, if what is there now is right, say so by "
                         "`volumectl accept pv " +
                         owner.volume + "`");
}

Result<AcceptedDirectory> StorageGuard::AcceptDirectory(const std::string& volume,
                                                        const CallOptions& call) {
  RETURN_IF_ERROR(Load());
  std::optional<StorageOwnerRecord> record = FindOwner(volume);
  if (!record || record->object.inode == 0) {
    return Error::NotApplied(Code::kNotFound, "no directory of persistent volume " + volume +
                                                  " is on record: there is nothing to accept");
  }
  ASSIGN_OR_RETURN(const StorageIdentity now, Identify(record->name, FindUsers::kNo, call));
  const std::string path = record->name.ToString();
  if (now.type != FileType::kDirectory) {
    return NotTheDirectory(path + " is no directory: it is " + DirectoryText(now));
  }
  AcceptedDirectory accepted{path, record->object, now.object};
  if (DirectoryDifference(*record, now.object, boot_id_).empty()) {
    accepted.now = accepted.before;
    return accepted;
  }
  if (!now.owner.empty() && now.owner != record->claim_uid) {
    return NotTheDirectory(path + " is marked as storage of claim " + now.owner +
                           ", and persistent volume " + volume + " is that of claim " +
                           record->claim_uid);
  }
  StorageOwner owner;
  owner.volume = volume;
  owner.name = record->name;
  RETURN_IF_ERROR(CheckDirectoryNotOnRecord(owner, now, call));
  // What it had before is an administrator's from now on.
  ForgetIdentity(*record);
  record->object = now.object;
  record->boot_id = boot_id_;
  AddIdentity(now, *record);
  RETURN_IF_ERROR(PutOwner(*std::move(record)));
  return accepted;
}

}  // namespace volumed
