#include "pool/pool_uuids.h"

namespace volumed {

void PoolUuids::Restore(const PoolRecord& record) {
  MutexLock lock(mu_);
  pools_.insert_or_assign(record.name, record);
}

// A disk that was copied block by block cannot be told from the first one by this.
bool PoolUuids::IsFormerName(const PoolRecord& other, const PoolRecord& found) const {
  return LastingDifference(other.root, found.root).empty() && !configured_.contains(other.name);
}

Status PoolUuids::CheckNoRows(const PoolRecord& other) const {
  if (!has_rows_(other.name)) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           "it is the directory of pool " + other.name +
                               ", of which volumes or snapshots are on record: give it that name "
                               "back");
}

Status PoolUuids::Take(const PoolRecord& found) {
  MutexLock lock(mu_);
  for (const auto& [name, other] : pools_) {
    if (name == found.name || other.uuid != found.uuid) continue;
    if (IsFormerName(other, found)) {
      RETURN_IF_ERROR(CheckNoRows(other));
      continue;
    }
    return Error::NotApplied(
        Code::kFailedPrecondition,
        "it has the uuid of pool " + name + ", whose directory is " + other.path +
            ": it is that one, or a copy of it, and no pool of its own; take pool " + found.name +
            " out of the configuration, or give it an empty directory");
  }
  pools_.insert_or_assign(found.name, found);
  return OkStatus();
}

Status PoolUuids::CheckNoOtherName(const PoolRecord& found) {
  MutexLock lock(mu_);
  for (const auto& [name, other] : pools_) {
    if (name == found.name || other.uuid != found.uuid || !IsFormerName(other, found)) continue;
    RETURN_IF_ERROR(CheckNoRows(other));
  }
  return OkStatus();
}

}  // namespace volumed
