// `volumectl top`: what runs now, how far it is, and what is stuck.
#pragma once

#include <ostream>

#include "agent.pb.h"
#include "cli/output.h"

namespace volumed {

void PrintTop(const v1::WatchOperationsResponse& answer, OutputFormat format, std::ostream& out);

}  // namespace volumed
