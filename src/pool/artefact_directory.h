// The directory of a volume, or of a cut, which is root's alone: what backends do with it alike.
// Private to them.
//
// Threads: any; one call per id at a time. Blocks: until the call's deadline. Errors: those of the
// effects.
#pragma once

#include <string>

#include "base/result.h"
#include "os/kernel.h"
#include "pool/pool_layout.h"

namespace volumed {

// Makes it, and writes down for people what it is. May be repeated. `made` is set as soon as the
// directory is there by this call, also if what follows fails.
Status MakeArtefactDirectory(Kernel& kernel, const PoolLayout& layout, const PoolId& id,
                             const std::string& description, const CallOptions& call,
                             bool* made = nullptr);

// Removes it with its description, and with the file of this name, if that is not empty. The file
// goes first: as long as it is there, its description is, too. What somebody else has put beside
// them stays, and is an error.
Status RemoveArtefactDirectory(Kernel& kernel, const PoolLayout& layout, const PoolId& id,
                               const std::string& file, const CallOptions& call);

}  // namespace volumed
