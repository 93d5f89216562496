// Whether, and to which size, the storage of a volume is to be made larger for its claim, and what
// a failure of that means, as pure functions.
// Source: external-resizer@v2.1 pkg/controller/{expand_and_recover,resize_status}.go; kubernetes
// pkg/volume/util/types/types.go@v1.36.2 (IsInfeasibleError).
//
// Threads: any. Blocks: never. Errors: none.
#pragma once

#include <optional>
#include <string>

#include "base/quantity.h"
#include "base/result.h"
#include "volume/claim_resize.h"

namespace volumed {

// What is known of a volume and its claim.
struct StorageGrowthQuestion {
  Quantity volume_capacity;  // EffectiveCapacity()
  Quantity claim_request;    // of the claim's spec
  // The claim's status.
  std::optional<Quantity> allocated;
  std::string resize_status;
  bool class_allows = false;  // allowVolumeExpansion of the claim's class
  bool is_on_node = false;    // something of the volume is, or may be, on the node
  bool only_unused = false;   // the storage grows only while that is not so
};

enum class StorageGrowthAction {
  kNothing,
  kIntend,    // the claim's status is to say that the storage grows to `size`
  kExpand,    // that is on record: the plugin is called
  kWait,      // for the reason in `waits_for`
  kTakeBack,  // the claim asks for no more than there is: its status is to say nothing of a growth
};

struct StorageGrowth {
  StorageGrowthAction action = StorageGrowthAction::kNothing;
  Quantity size;
  std::string waits_for;
  bool for_class = false;  // it waits for allowVolumeExpansion of the class
  bool for_users = false;  // it waits until nothing of the volume is on the node
};

StorageGrowth DecideStorageGrowth(const StorageGrowthQuestion& question);

// Whether the size is impossible: the driver is not asked for it again. InvalidArgument, NotFound
// and OutOfRange, if not applied.
bool IsInfeasibleGrowth(const Error& error);

}  // namespace volumed
