// Paths anywhere on the node, outside of the agent's root; and a directory there, with its parents,
// through checked effects.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// A path that an administrator named, as it stands: it may itself be a link.
SafePath HostPath(const std::string& absolute_path);

// Splits an absolute, clean path at its last slash: {"/a/b", "c"} for "/a/b/c", {"/", "c"} for
// "/c", {"/", ""} for "/". Pure.
SafePath SplitLast(const std::string& absolute_path);

// Makes `path` (absolute, clean) and its missing parents, all with `mode`. Links among the parts
// that exist are followed, so the rest may be made in what a link leads to; a link that leads
// nowhere is an error. An existing directory is left as it is: changed = false. Threads: any.
// Blocks: until the deadline.
// Errors: AlreadyExists, not applied, if `path`, or a parent, is something else; those of the
// effects.
Result<Changed> MakeHostDirectory(Kernel& kernel, const std::string& path, uint32_t mode,
                                  const CallOptions& call);

}  // namespace volumed
