#include "pool/pool_tally.h"

#include <algorithm>

#include "pool/pool_parameters.h"

namespace volumed {
namespace {

// A sum of 100,000 rows of this size is a number still.
constexpr int64_t kLargestSummed = int64_t{32} << 40;

bool IsLvm(PoolBackendKind backend) { return backend == PoolBackendKind::kLvm; }

bool IsCopied(const PoolCutRecord& cut) { return cut.state == PoolCutState::kCut && !IsWhole(cut); }

}  // namespace

bool ShareRoom(PoolBackendKind one, PoolBackendKind other) { return IsLvm(one) == IsLvm(other); }

void PoolTally::CountPromise(const Room& room, int64_t bytes, bool is_bounded, int64_t sign) {
  Promised& promised = promised_[room];
  if (is_bounded && bytes <= kLargestSummed) {
    promised.bytes += sign * std::max<int64_t>(bytes, 0);
  } else {
    promised.unbounded += sign;
  }
}

void PoolTally::Count(const PoolVolumeRecord& volume, int64_t sign) {
  for (const PoolLease& lease : volume.leases) {
    int64_t& count = leases_[lease.node];
    count += sign;
    if (count == 0) leases_.erase(lease.node);
  }
  if (IsListed(volume.backend)) return;
  const Result<PoolParameters> parameters = ParsePoolParameters(volume.parameters);
  // A logical volume has whole extents, which may be more than its size.
  const bool is_bounded = !(parameters.ok() && parameters->overcommit) && !IsLvm(volume.backend);
  CountPromise({volume.pool, IsLvm(volume.backend)},
               std::max(volume.capacity_bytes, volume.target_bytes), is_bounded, sign);
}

void PoolTally::Add(const PoolCutRecord& cut) {
  CountPromise({cut.pool, IsLvm(cut.backend)}, cut.allocated_bytes, true, 1);
  if (IsCopied(cut)) copied_[cut.volume].insert(cut.id);
}

void PoolTally::Leave(const PoolCutRecord& cut) {
  CountPromise({cut.pool, IsLvm(cut.backend)}, cut.allocated_bytes, true, -1);
  const auto copied = copied_.find(cut.volume);
  if (copied == copied_.end()) return;
  copied->second.erase(cut.id);
  if (copied->second.empty()) copied_.erase(copied);
}

PoolTally::Promised PoolTally::PromisedOf(const std::string& pool, PoolBackendKind backend) const {
  const auto promised = promised_.find({pool, IsLvm(backend)});
  return promised == promised_.end() ? Promised{} : promised->second;
}

int64_t PoolTally::LeasesOf(const std::string& node) const {
  const auto count = leases_.find(node);
  return count == leases_.end() ? 0 : count->second;
}

std::string PoolTally::CopiedFrom(const std::string& volume) const {
  const auto copied = copied_.find(volume);
  return copied == copied_.end() ? "" : *copied->second.begin();
}

}  // namespace volumed
