// What is said of an object that a command has deleted and that its manifest still has.
#pragma once

#include <string>

#include "kube/object_catalog.h"

namespace volumed {

// Threads: any. Blocks: never.

// Says how an object that a command has deleted can exist again while this manifest still has it.
std::string WayBackText(const std::string& file);
// The phase of an object that was deleted and that its manifest still has.
inline constexpr const char* kRefusedPhase = "Refused";
// Says, for an object whose manifest still has it, that it is refused there, and how it can exist
// again.
std::string RefusedText(ObjectKind kind, const ObjectOrigin& origin);

}  // namespace volumed
