// `volumectl describe`: all that the agent knows of one object, for people.
#pragma once

#include <cstdint>
#include <ostream>

#include "agent.pb.h"

namespace volumed {

// Prints identity, summary, state, mounts, users, problems and events; a part that is empty is left
// out.
void PrintDescription(const v1::DescribeResponse& described, int64_t now_unix_ms,
                      std::ostream& out);

}  // namespace volumed
