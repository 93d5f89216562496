#include "pool/pool_capacity.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>

namespace volumed {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// Of two that are not negative.
int64_t Sum(int64_t a, int64_t b) { return a > kMost - b ? kMost : a + b; }

struct Family {
  int64_t promised = 0;
  int64_t writable = 0;   // of that; the rest is never written anew
  int64_t allocated = 0;  // the largest: so much the family has for certain
  bool is_beside = false;
};

// Divided first, so that the product is none that is too large.
int64_t PercentOf(int64_t bytes, int percent) {
  return bytes / 100 * percent + bytes % 100 * percent / 100;
}

}  // namespace

PoolAccount AccountOf(const std::vector<PoolShare>& shares, const FsInfo& filesystem,
                      const PoolLimits& limits) {
  std::map<std::string, Family> families;
  for (const PoolShare& share : shares) {
    // No family has this name: it is longer than that of one.
    Family& family = families[share.family.empty() ? "alone/" + share.id : share.family];
    const int64_t share_promised = std::max<int64_t>(share.promised_bytes, 0);
    family.promised = Sum(family.promised, share_promised);
    if (!share.is_read_only) family.writable = Sum(family.writable, share_promised);
    family.allocated = std::max(family.allocated, share.allocated_bytes);
    family.is_beside = share.is_beside;
  }
  PoolAccount account;
  int64_t beside = 0;
  int64_t to_write = 0;
  int64_t beyond = 0;
  for (const PoolShare& share : shares) {
    if (!share.is_read_only) beyond = Sum(beyond, std::max<int64_t>(share.beyond_bytes, 0));
  }
  for (const auto& [name, family] : families) {
    int64_t& promised = family.is_beside ? beside : account.promised_bytes;
    promised = Sum(promised, family.promised);
    // A filesystem may keep blocks beyond a file's end; these are no room for other families.
    const int64_t outstanding = std::max<int64_t>(family.promised - family.allocated, 0);
    account.outstanding_bytes = Sum(account.outstanding_bytes, outstanding);
    // Each block of a volume is written anew once at most before it is the volume's alone.
    to_write = Sum(to_write, std::min(outstanding, family.writable));
  }
  const int64_t available = std::max<int64_t>(filesystem.available_bytes, 0);
  account.available_bytes = available;
  // Nothing is kept for what was promised beyond what there is, so it is short only at the end.
  const int64_t nearly_full = PercentOf(std::max<int64_t>(filesystem.capacity_bytes, 0), 1);
  account.is_short = available < to_write || available < std::min(beyond, nearly_full);
  const int64_t capacity = limits.capacity_bytes > 0
                               ? limits.capacity_bytes
                               : std::max<int64_t>(filesystem.capacity_bytes, 0);
  account.capacity_bytes = capacity;
  // What is configured is of this pool alone.
  const int64_t unpromised = limits.capacity_bytes > 0
                                 ? capacity - account.promised_bytes
                                 : capacity - Sum(account.promised_bytes, beside);
  const int64_t left = std::min(unpromised, available - account.outstanding_bytes);
  account.free_bytes = std::max<int64_t>(
      std::max<int64_t>(left, 0) - PercentOf(capacity, limits.reserve_percent), 0);
  return account;
}

}  // namespace volumed
