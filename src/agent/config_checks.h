// Finds settings that cannot be used although each value has the right form. `check-config` and
// `run` report them in the same words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/config.h"
#include "base/result.h"

namespace volumed {

// Each problem begins with the key that it is about: "root: ...". Threads: any.

// The problems that the values alone show; LoadConfig reports them too, once each value has the
// right form. Empty if there are none. Blocks: never.
std::vector<std::string> ProblemsOfValues(const Config& config);

// Checks the file before it is read. Errors: Unavailable, not applied, if it does not answer;
// errno's of starting a process, not applied. A file that is missing answers. REQUIRES: as
// CheckPlaces. Blocks: for fifteen seconds at most, since without its file the agent cannot start,
// and a node that boots may be slow.
Status CheckConfigFile(const std::string& path);

// Whether a place that does not answer counts as a problem. The agent can run without any place but
// its root and its worker, and reports itself what it lacks.
enum class SilentPlaces { kAreProblems, kMayBeLacked };

// Checks the settings against this machine: links, what lies where a directory has to be, the
// worker program. One message has all problems, one a line. A process of its own looks at each
// place, so a place that hangs leaves that process behind. REQUIRES: the process has one thread.
// Errors: InvalidArgument, not applied; errno's of starting a process, not applied. Blocks: for
// three seconds at most, and a moment for the processes to end.
Status CheckPlaces(const Config& config, SilentPlaces silent);

// Checks "host:port" or "[IPv6]:port". The host is a name or an address, and is not looked up; the
// port is 1 to 65535, or 0 for any free one. Errors: InvalidArgument, not applied. Blocks: never.
Status CheckAddress(std::string_view address);

// The path of the volumed-worker program: `configured`; if that is empty, the program that is
// installed or built beside volumed, or in the folder of its library. Errors: NotFound, not
// applied, if it is missing or cannot be executed. Blocks: looks at those places in this process,
// as long as they take to answer.
Result<std::string> FindWorker(const std::string& configured);

}  // namespace volumed
