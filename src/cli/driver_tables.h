// `volumectl get drivers`, `describe driver` and `csi`: CSI drivers for people.
#pragma once

#include <cstdint>
#include <ostream>

#include "agent.pb.h"
#include "cli/output.h"

namespace volumed {

// A table of the drivers, and one of the sockets that are not registered, if there are any. The
// wide table also says what a driver calls the node, and where it is. Moments are Unix
// milliseconds.
void PrintDrivers(const v1::GetDriversResponse& drivers, OutputFormat format, int64_t now_unix_ms,
                  std::ostream& out);
// All that is known of the drivers, each for itself, and of the sockets that name them.
void PrintDriverDescription(const v1::GetDriversResponse& drivers, int64_t now_unix_ms,
                            std::ostream& out);
// One call a line: when, how long, which, what about, and how it ended; the wide form also has the
// messages.
void PrintTrace(const v1::GetDriverTraceResponse& trace, OutputFormat format, int64_t now_unix_ms,
                std::ostream& out);

}  // namespace volumed
