// What is on record of storage: whose it is and by which directory it was first used, and which of
// it is being formatted or emptied. Written by the operation layer alone.
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "operation/storage_table.h"
#include "os/storage_requests.h"
#include "records/record_store.h"
#include "volume/storage_name.h"

namespace volumed {

inline constexpr const char* kStorageOwnerRecordKind = "storage-owner";
inline constexpr const char* kStorageReservationRecordKind = "storage-reservation";
inline constexpr uint32_t kStorageRecordVersion = 1;
// A delete is decided by both.
inline constexpr Durability kStorageRecordDurability = Durability::kPowerLoss;

// How a volume has used a device. Older records do not tell it: those volumes were mounted.
enum class StorageMode { kUnknown, kFilesystem, kRaw };

// Key: the volume's name.
struct StorageOwnerRecord {
  std::string volume{};
  StorageName name{};
  StorageObject object{};   // the directory; empty where the storage is none (a device, an export)
  std::string claim_uid{};  // that had it last; empty since it was emptied
  bool marked = false;      // the directory says so itself
  StorageMode mode = StorageMode::kUnknown;
  // What is told of the storage, and of what contains it, that lasts (IsLastingKey); sorted.
  std::vector<std::string> own_keys{};
  std::vector<std::string> within_keys{};
  std::vector<StorageFile> files{};  // of loop devices that it is or lies on
  BootId boot_id{};                  // in which `object` was looked at
  // Not 0: the volume is no more, and its data is there still. Rows of volumes of one name are told
  // apart by it. Only a reclaim has to know of them.
  uint64_t retained = 0;
  friend bool operator==(const StorageOwnerRecord&, const StorageOwnerRecord&) = default;
};

// Key: the holder's id. Of this boot alone: no work outlives a reboot.
struct StorageReservationRecord {
  StorageHolder holder{};
  StorageName name{};
  BootId boot_id{};
};

// Threads: any. Blocks: never. Errors of decoding: as DecodePodVolumeRecord's.
Record EncodeRecord(const StorageOwnerRecord& record);
// The volume's name, unless the record is retained.
std::string RowKey(const StorageOwnerRecord& record);
Record EncodeRecord(const StorageReservationRecord& record);
Result<StorageOwnerRecord> DecodeStorageOwnerRecord(const Record& row);
Result<StorageReservationRecord> DecodeStorageReservationRecord(const Record& row);

}  // namespace volumed
