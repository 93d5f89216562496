// The records of storage: whose it is and by which directory it was first used, and which storage
// is being formatted or emptied. Only the operation layer writes them.
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/wire_fields.h"
#include "operation/storage_table.h"
#include "os/storage_requests.h"
#include "records/record_store.h"
#include "volume/storage_name.h"

namespace volumed {

inline constexpr const char* kStorageOwnerRecordKind = "storage-owner";
inline constexpr const char* kStorageReservationRecordKind = "storage-reservation";
// Of a row without a driver, and of one that names storage of a driver: a program that does not
// know drivers would take the handle for a path.
inline constexpr uint32_t kStorageRecordVersion = 1;
inline constexpr uint32_t kDriverStorageRecordVersion = 2;
// Both decide whether storage is deleted.
inline constexpr Durability kStorageRecordDurability = Durability::kPowerLoss;

// How a volume has used a device. Older records do not say; their volumes were mounted. The numbers
// are stored in records.
enum class StorageMode { kUnknown, kFilesystem, kRaw };
constexpr WireEnum<StorageMode> WireEnumOf(StorageMode) {
  return {StorageMode::kRaw, StorageMode::kUnknown};
}

template <>
struct WireFieldsOf<StorageName> {
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.server);
    v(3, m.driver);
  }
};

// What is known of a PersistentVolume's storage: by which directory or device the volume was first
// used, and which claim has its data there. Key: RowKey(). Fields: StorageOwnerRow in
// operation/record_rows.h.
struct StorageOwnerRecord {
  // The PersistentVolume's name.
  std::string volume{};
  // Where the volume says that its storage is; empty if it names no path of this node.
  StorageName name{};
  // The directory; empty if the storage is a device or an export.
  StorageObject object{};
  std::string claim_uid{};  // that had it last; empty once it was emptied
  bool marked = false;      // the directory carries the mark
  StorageMode mode = StorageMode::kUnknown;
  // Lasting keys (IsLastingKey) of the storage, and of what contains it; sorted.
  std::vector<std::string> own_keys{};
  std::vector<std::string> within_keys{};
  std::vector<StorageFile> files{};  // of loop devices that it is, or on which it lies
  BootId boot_id{};                  // in which `object` was looked at
  // Not 0: the volume has ended, and its data still exists. The number tells rows of volumes of the
  // same name apart. Only a reclaim has to know of such rows.
  uint64_t retained = 0;
  friend bool operator==(const StorageOwnerRecord&, const StorageOwnerRecord&) = default;
};

// Storage whose content is being deleted. It is written before that begins, and goes when the
// outcome is known. Key: the holder's id. It holds only for its boot, since no work outlives a
// reboot.
struct StorageReservationRecord {
  StorageHolder holder{};
  StorageName name{};
  BootId boot_id{};
  // What was taken: StorageIdentity::own, which the directory's place has still after it was
  // deleted, and the directory. Empty in an older row.
  std::vector<std::string> own_keys{};
  StorageObject object{};
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.holder.id);
    v.Text(2, m.holder.volume);
    v(3, m.holder.text);
    v(4, m.name);
    v.Text(5, m.boot_id);
    v(6, m.own_keys);
    v(7, m.object.fs_type);
    v(8, m.object.fs_uuid);
    v(9, m.object.inode);
    v(10, m.object.handle);
    // Every reservation has the same, which decoding sets.
    v.NotSent(m.holder.use);
    v.NotSent(m.holder.persistent);
    v.NotSent(m.holder.was_begun);
    v.NotSent(m.holder.only_names);
  }
  friend bool operator==(const StorageReservationRecord&,
                         const StorageReservationRecord&) = default;
};

// Threads: any. Blocks: never. Errors of decoding: as DecodePodVolumeRecord's.
Record EncodeRecord(const StorageOwnerRecord& record);
// The key of the row: the volume's name, unless the record is retained.
std::string RowKey(const StorageOwnerRecord& record);
// The key of this row is the holder's id.
Record EncodeRecord(const StorageReservationRecord& record);
Result<StorageOwnerRecord> DecodeStorageOwnerRecord(const Record& row);
Result<StorageReservationRecord> DecodeStorageReservationRecord(const Record& row);

}  // namespace volumed
