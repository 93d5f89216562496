// `volumectl top`: what runs now, how far it is, and what is stuck.
#pragma once

#include <ostream>

#include "agent.pb.h"
#include "cli/output.h"

namespace volumed {

// Prints one answer of WatchOperations: the operations, and the stuck calls if there are any, each
// with how many the agent left out. Ages are counted to the answer's own time. Clearing the screen
// is the caller's matter.
void PrintTop(const v1::WatchOperationsResponse& answer, OutputFormat format, std::ostream& out);

}  // namespace volumed
