// StorageGuard: the directory that a claim has. Another one at its path is most often the mount
// point below a disk that is not mounted: a pod would start on it as if all its data were lost.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/printable_text.h"
#include "operation/storage_guard.h"
#include "operation/storage_record_identity.h"
#include "os/kernel.h"

namespace volumed {
namespace {

Error NotTheDirectory(const std::string& why) {
  return Error::NotApplied(Code::kFailedPrecondition, why);
}

// What the volume has had there.
bool HadDevice(const StorageOwnerRecord& record) {
  return record.object.inode == 0 && TellsDevice(record);
}

// By what people know it: the file of a loop device, or what a disk calls itself.
std::string DeviceText(const std::vector<std::string>& own, const std::vector<StorageFile>& files) {
  const std::string device = "a block device";
  if (!files.empty()) return device + " on the file " + files.front().path;
  const auto named = std::find_if(own.begin(), own.end(), &IsLastingKey);
  return named == own.end() ? device + " without an identity" : device + " (" + *named + ")";
}

// A block volume has no filesystem by whose UUID its disk could be known. What a plugin attaches is
// found by its own name, not by a path that may lead elsewhere.
bool TellsRawDevice(const StorageOwnerRecord& record) {
  return record.mode == StorageMode::kRaw && !record.name.path.empty() && !record.own_keys.empty();
}

// Somebody chose the name of a loop device's file, and a disk says what it likes: these texts are
// printable, for they are shown, and are strings of the control API.
std::string RecordedText(const StorageOwnerRecord& record) {
  return PrintableText(HadDevice(record) ? DeviceText(record.own_keys, record.files)
                                         : ObjectText(record.object));
}

std::string DirectoryText(const StorageIdentity& identity) {
  if (identity.type == FileType::kDirectory) return PrintableText(ObjectText(identity.object));
  if (identity.type == FileType::kBlockDevice) {
    return PrintableText(DeviceText(identity.own, identity.files));
  }
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

// Loop devices come up in another order after a reboot, and each has the other's file.
Status StorageGuard::CheckKeepsDevice(const StorageHolder& holder,
                                      const StorageIdentity& now) const {
  if (!IsDevice(holder)) return OkStatus();
  RETURN_IF_ERROR(CheckReadable(holder.volume));
  if (holder.use != StorageUse::kRaw) return OkStatus();
  const std::optional<StorageOwnerRecord> before = FindOwner(holder.volume);
  if (!before || !TellsRawDevice(*before) || MeetsDevice(*before, now)) return OkStatus();
  return NotTheDirectory(before->name.ToString() +
                         " is another block device than the one that persistent volume " +
                         holder.volume + " has its data on: it was " + RecordedText(*before) +
                         ", and is " + DirectoryText(now) +
                         ". Bring that one there; or, if what is there now is right, say so by "
                         "`volumectl accept pv " +
                         holder.volume + "`");
}

Status StorageGuard::CheckKeepsDirectory(const StorageOwner& owner,
                                         const StorageOwnerRecord& before,
                                         const StorageIdentity& now) const {
  const bool had_device = HadDevice(before);
  // Which device it is, is asked for when that is taken.
  if (had_device && now.type == FileType::kBlockDevice) return OkStatus();
  std::string difference = had_device ? "" : DirectoryDifference(before, now.object, boot_id_);
  if (now.type != FileType::kDirectory) difference = "it is no directory";
  if (had_device) difference = "it is no block device";
  if (difference.empty()) return OkStatus();
  return NotTheDirectory(owner.name.ToString() +
                         " is another directory than the one that the claim of persistent volume " +
                         owner.volume + " has its data in: " + difference + " (it was " +
                         RecordedText(before) + ", and is " + DirectoryText(now) +
                         "). Mount its disk there; or, if what is there now is right, say so by "
                         "`volumectl accept pv " +
                         owner.volume + "`");
}

Status StorageGuard::CheckMayAccept(const StorageOwnerRecord& record, const StorageIdentity& now,
                                    const CallOptions& call) {
  if (now.type == FileType::kBlockDevice) {
    StorageHolder device;
    device.id = "device/accept/" + record.volume;
    device.volume = record.volume;
    device.use = StorageUse::kFormat;  // whatever somebody else has of it is in the way
    device.persistent = true;
    device.text = "persistent volume " + record.volume;
    return CheckNotOnRecord(device, record.name, now, call);
  }
  if (!now.owner.empty() && now.owner != record.claim_uid) {
    return NotTheDirectory(record.name.ToString() + " is marked as storage of claim " + now.owner +
                           ", and persistent volume " + record.volume + " is that of claim " +
                           record.claim_uid +
                           ": look what is in it; if it may be this volume's, `setfattr -x "
                           "trusted.volumed.owner " +
                           record.name.ToString() + "`, and accept it then");
  }
  StorageOwner owner;
  owner.volume = record.volume;
  owner.name = record.name;
  return CheckDirectoryNotOnRecord(owner, now, call);
}

Result<AcceptedDirectory> StorageGuard::AcceptDirectory(const std::string& volume,
                                                        const CallOptions& call) {
  RETURN_IF_ERROR(Load());
  RETURN_IF_ERROR(CheckReadable(volume));
  std::optional<StorageOwnerRecord> record = FindOwner(volume);
  const bool has_had =
      record && !record->name.path.empty() && (record->object.inode != 0 || HadDevice(*record));
  if (!has_had) {
    return Error::NotApplied(Code::kNotFound, "no directory or block device of persistent volume " +
                                                  volume +
                                                  " is on record: there is nothing to accept");
  }
  if (!record->name.driver.empty()) return AcceptNextDevice(*std::move(record));
  ASSIGN_OR_RETURN(const StorageIdentity now, Identify(record->name, FindUsers::kNo, call));
  const bool is_device = now.type == FileType::kBlockDevice;
  const std::string path = record->name.ToString();
  if (!is_device && now.type != FileType::kDirectory) {
    return NotTheDirectory(path + " is no directory and no block device: it is " +
                           DirectoryText(now));
  }
  AcceptedDirectory accepted{path, RecordedText(*record), DirectoryText(now)};
  const bool had_device = HadDevice(*record);
  const bool is_raw = is_device && TellsRawDevice(*record);
  // Whoever mounts a disk compares the UUID of its filesystem, which is not this record's.
  if (is_device && had_device && !is_raw) {
    return NotTheDirectory(
        path +
        " is a block device, as it was: a disk is known by the UUID of its filesystem. For "
        "another disk, delete the PersistentVolume and give it anew");
  }
  const bool same = is_raw ? MeetsDevice(*record, now)
                           : !is_device && !had_device &&
                                 DirectoryDifference(*record, now.object, boot_id_).empty();
  if (same) {
    accepted.now = accepted.before;
    return accepted;
  }
  RETURN_IF_ERROR(CheckMayAccept(*record, now, call));
  // What it had before is an administrator's from now on.
  ForgetIdentity(*record);
  record->object = is_device ? StorageObject() : now.object;
  record->boot_id = is_device ? BootId() : boot_id_;
  if (is_device) record->mode = is_raw ? StorageMode::kRaw : StorageMode::kFilesystem;
  AddIdentity(now, *record);
  RETURN_IF_ERROR(PutOwner(*std::move(record)));
  accepted.was_other = true;
  return accepted;
}

// What a driver shows is at no path of its own: nobody can look before it is published again.
Result<AcceptedDirectory> StorageGuard::AcceptNextDevice(StorageOwnerRecord record) {
  AcceptedDirectory accepted{PrintableText(record.name.ToString()), RecordedText(record),
                             "what its driver shows next"};
  ForgetIdentity(record);
  RETURN_IF_ERROR(PutOwner(std::move(record)));
  accepted.was_other = true;
  return accepted;
}

}  // namespace volumed
