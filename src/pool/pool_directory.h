// What a directory says of itself that is a pool, or may become one: where it is once all links are
// followed, and the marker that makes it a pool.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// The path without links: loop devices show their files so, and the paths of a pool are compared
// with that. The directory itself is what a path of an administrator leads to, at that moment.
// Threads: any. Blocks: until the call's deadline. Errors, not applied: NotFound if nothing is
// there; InvalidArgument for a path that is not absolute; ELOOP; those of the effects.
Result<std::string> FindPoolDirectory(Kernel& kernel, const std::string& path,
                                      const CallOptions& call);

// The marker's content, and the uuid that it says. Pure; threads: any. Errors, not applied:
// DataLoss for a text that is no marker; FailedPrecondition for one of a later version.
std::string PoolMarkerText(const std::string& uuid);
Result<std::string> ParsePoolMarker(std::string_view text);

}  // namespace volumed
