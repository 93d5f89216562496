// What of a configuration cannot be used although each value has its form: said by check-config
// and by run alike, in the same words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/config.h"
#include "base/result.h"

namespace volumed {

// Each begins with the key that it is about: "root: ...". Threads: any.

// From the values alone. Blocks: never.
std::vector<std::string> ProblemsOfValues(const Config& config);

// Before the file is read: Unavailable, not applied, if it does not answer. REQUIRES, Blocks: as
// CheckPlaces.
Status CheckConfigFile(const std::string& path);

// Whether a place that does not answer is a problem. The agent runs without all but its root and
// its worker, and says itself what it lacks.
enum class SilentPlaces { kAreProblems, kMayBeLacked };

// From what is on this machine: links, what lies where a directory has to be, the worker program.
// In one message; the first is a part of LoadConfig. Each place is looked at by a process of its
// own. REQUIRES: the process has one thread. Errors: InvalidArgument, not applied; errno's of
// starting a process. Blocks: for three seconds at most.
Status CheckPlaces(const Config& config, SilentPlaces silent);

// "host:port", "[IPv6]:port": the host is a name or an address, the port from 1 to 65535 or 0 for
// any. InvalidArgument, not applied, otherwise.
Status CheckAddress(std::string_view address);

// The volumed-worker program: `configured`, or, if that is empty, the one that is installed, or
// built, beside volumed or in the folder of its library. NotFound, not applied, if it is not there
// or cannot be executed. Blocks: looks at those places.
Result<std::string> FindWorker(const std::string& configured);

}  // namespace volumed
