// PoolAccount: how much of a pool is promised to its volumes, and how much more can be.
//
// Pure; threads: any. Blocks: never. Errors: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "os/kernel_answers.h"

namespace volumed {

// A volume, for its size alone.
struct PoolShare {
  std::string id;
  // Shares of one family may have blocks in common, so that what they have allocated may be the
  // same bytes. Empty: it has nothing in common with any other.
  std::string family;
  int64_t promised_bytes = 0;   // of an overcommitted volume: what it has allocated
  int64_t allocated_bytes = 0;  // by its file; blocks that are shared count in each
  bool is_beside = false;       // of another pool on the same filesystem
  bool is_read_only = false;    // nobody writes to it any more
  int64_t beyond_bytes = 0;     // of an overcommitted volume: what it may write besides
};

struct PoolLimits {
  int64_t capacity_bytes = 0;  // configured; 0: what the filesystem has
  int reserve_percent = 5;     // of the capacity, for the filesystem's own needs
};

struct PoolAccount {
  int64_t promised_bytes = 0;
  // Promised, and certainly not allocated yet; by pools beside it, too.
  int64_t outstanding_bytes = 0;
  int64_t free_bytes = 0;  // what can still be promised; never negative
  // The filesystem has less left than what may still be written, as others have filled it; or it is
  // nearly full (a hundredth is left), and overcommitted volumes may still write. Whether volumes
  // that have blocks in common with others still have them is not known: what they may write is
  // taken for all that they were promised then.
  bool is_short = false;
  int64_t capacity_bytes = 0;   // of which it is promised
  int64_t available_bytes = 0;  // what the filesystem has left
};

// What is wrong with a pool, in words for programs that stay as they are, and of one that is short
// for people.
inline constexpr char kPoolUnreachableReason[] = "PoolUnreachable";
inline constexpr char kPoolShortReason[] = "PoolShort";
inline constexpr char kPoolShortText[] =
    "its filesystem has less left than its volumes may still write: something else has filled it, "
    "or "
    "they were promised more than there is";

// Numbers that the filesystem cannot mean (negative ones, sums that are too large) are taken for
// the worst that they may stand for.
PoolAccount AccountOf(const std::vector<PoolShare>& shares, const FsInfo& filesystem,
                      const PoolLimits& limits);

}  // namespace volumed
