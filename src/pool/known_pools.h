// What is said to whoever names a pool that this node does not have. Pure. Threads: any.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "pool/pool.h"

namespace volumed {

// NotFound, not applied; it names the pools that there are. The name is a caller's text; empty:
// any pool would do.
Error NoSuchPool(const std::vector<std::unique_ptr<Pool>>& pools, const std::string& name);

}  // namespace volumed
