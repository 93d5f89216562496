#include "pool/pool_uuids.h"

namespace volumed {

void PoolUuids::Restore(const PoolRecord& record) {
  MutexLock lock(mu_);
  pools_.insert_or_assign(record.name, record);
}

Status PoolUuids::Take(const PoolRecord& found) {
  MutexLock lock(mu_);
  for (const auto& [name, other] : pools_) {
    if (name == found.name || other.uuid != found.uuid) continue;
    // A disk that was copied block by block cannot be told from the first one by this.
    const bool may_be_same = LastingDifference(other.root, found.root).empty();
    if (may_be_same && !configured_.contains(name)) {
      if (!has_rows_(name)) continue;
      return Error::NotApplied(
          Code::kFailedPrecondition,
          "it is the directory of pool " + name +
              ", of which volumes or snapshots are on record: give it that name back");
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

}  // namespace volumed
