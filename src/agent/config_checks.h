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
// From what is on this machine: links, what lies where a directory has to be, the worker program.
// Blocks: looks at the paths.
std::vector<std::string> ProblemsOfPlaces(const Config& config);

// The second in one message; the first is a part of LoadConfig. Errors: InvalidArgument, not
// applied. Blocks: as ProblemsOfPlaces.
Status CheckPlaces(const Config& config);

// "host:port", "[IPv6]:port": the host is a name or an address, the port from 1 to 65535 or 0 for
// any. InvalidArgument, not applied, otherwise.
Status CheckAddress(std::string_view address);

// The volumed-worker program: `configured`, or, if that is empty, the one that is installed, or
// built, beside volumed or in the folder of its library. NotFound, not applied, if it is not there
// or cannot be executed. Blocks: looks at those places.
Result<std::string> FindWorker(const std::string& configured);

}  // namespace volumed
