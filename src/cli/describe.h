// `volumectl describe`: all that the agent knows of one object, for people.
#pragma once

#include <cstdint>
#include <ostream>

#include "agent.pb.h"

namespace volumed {

// Prints identity, summary, volumes with their mounts, users, problems, events, and what the agent
// left out; a part that is empty is left out. Ages are counted to `now_unix_ms`. Texts are printed
// as they are: PlainOutput removes what a terminal would obey.
void PrintDescription(const v1::DescribeResponse& described, int64_t now_unix_ms,
                      std::ostream& out);

}  // namespace volumed
