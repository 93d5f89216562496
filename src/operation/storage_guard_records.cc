// StorageGuard: its rows. They are read once; what a damaged one may have said keeps others out as
// well.
#include <optional>
#include <set>
#include <utility>

#include "operation/load_rows.h"
#include "operation/storage_guard.h"
#include "operation/storage_record_identity.h"

namespace volumed {

Status StorageGuard::Load() {
  const MutexLock lock(mu_);
  if (loaded_) return OkStatus();
  ASSIGN_OR_RETURN(DecodedRows<StorageOwnerRecord> owners,
                   LoadRows(store_, kStorageOwnerRecordKind, &DecodeStorageOwnerRecord));
  ASSIGN_OR_RETURN(
      DecodedRows<StorageReservationRecord> reservations,
      LoadRows(store_, kStorageReservationRecordKind, &DecodeStorageReservationRecord));
  ASSIGN_OR_RETURN(const LoadedRecords lost, store_.Load(kLostRowsRecordKind));
  ASSIGN_OR_RETURN(const LoadedRecords bindings, store_.Load(kClaimBindingRecordKind));
  for (const QuarantinedRecord& row : owners.quarantined) unreadable_[row.key] = row.reason;
  // No volume has a name with a slash.
  for (const QuarantinedRecord& row : lost.quarantined) {
    unreadable_[row.kind + "/" + row.key] = row.reason;
  }
  for (StorageOwnerRecord& record : owners.rows) {
    const std::string volume = record.volume;
    const StorageHolder known{.id = "known/" + volume,
                              .volume = volume,
                              .use = StorageUse::kKnown,
                              .persistent = true,
                              .text = "persistent volume " + volume};
    // A volume that names no path of this node has its devices alone; and what is retained is in
    // nobody's way but a reclaim's.
    if (!record.name.path.empty() && record.retained == 0) ExpectInTable({known, record.name});
    const std::string key = RowKey(record);
    owners_[key] = std::move(record);
  }
  DoubtOwners(owners.quarantined, bindings);
  for (const QuarantinedRecord& row : reservations.quarantined) {
    log_.Warning(
        "a reservation of storage cannot be read: where a worker is at a reclaim still, "
        "only the record of the volume's storage keeps others out",
        {{"record", row.key}, {"error", row.reason}});
    ExpectReclaims(row.key_is_right ? row.key : "");
  }
  // What is gone may have been one.
  if (!lost.quarantined.empty()) ExpectReclaims("");
  for (const StorageReservationRecord& record : reservations.rows) {
    reserved_[record.holder.id] = record;
    // The row of what does not goes with the volume's next reclaim.
    if (!GoesOn(record)) continue;
    ExpectInTable({record.holder, record.name});
    ended_.erase(record.holder.id);
  }
  loaded_ = true;
  return OkStatus();
}

// A bit of the row's key may have turned: if it names no volume of a claim on record, or one whose
// row is another, it may be that of any claim's volume of which there is no row.
void StorageGuard::DoubtOwners(const std::vector<QuarantinedRecord>& damaged,
                               const LoadedRecords& bindings) {
  std::set<std::string> without_row;
  for (const Record& row : bindings.records) without_row.insert(row.key);
  for (const QuarantinedRecord& row : bindings.quarantined) without_row.insert(row.key);
  std::erase_if(without_row,
                [&](const std::string& volume) REQUIRES(mu_) { return owners_.contains(volume); });
  for (const QuarantinedRecord& row : damaged) {
    if (row.key_is_right || without_row.contains(row.key)) continue;
    for (const std::string& volume : without_row) {
      unreadable_.try_emplace(
          volume, "the record " + row.kind + " \"" + row.key + "\" may be its own: " + row.reason);
    }
  }
}

std::optional<StorageOwnerRecord> StorageGuard::FindOwner(const std::string& row_key) const {
  const MutexLock lock(mu_);
  const auto found = owners_.find(row_key);
  if (found == owners_.end()) return std::nullopt;
  return found->second;
}

Status StorageGuard::CheckReadable(const std::string& volume) const {
  const MutexLock lock(mu_);
  const auto why = unreadable_.find(volume);
  if (why == unreadable_.end()) return OkStatus();
  return Refused("whose the storage of persistent volume " + volume + " is cannot be told: " +
                 why->second + "; `volumectl records accept`, and start the agent anew");
}

Status StorageGuard::PutOwner(StorageOwnerRecord record) {
  const std::string key = RowKey(record);
  if (FindOwner(key) == record) return OkStatus();
  RETURN_IF_ERROR(CheckReadable(key));
  RETURN_IF_ERROR(store_.Put(EncodeRecord(record), kStorageRecordDurability));
  const MutexLock lock(mu_);
  owners_[key] = std::move(record);
  return OkStatus();
}

}  // namespace volumed
