// From the appearance of a device to its mount.
#pragma once

#include <string>

#include "integration/attacher/waiter_on_node.h"

namespace volumed {

// Prints how long one device takes, and `many` attached one after another: found by the waiter, and
// by looks at their links, in turns; and what they cost the processors.
void UntilMounted(const std::string& scratch, WaiterOnNode& node, int many, int rounds);

}  // namespace volumed
