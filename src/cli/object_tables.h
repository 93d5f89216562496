// Tables of objects of which the agent keeps no state: Secrets, ConfigMaps, Nodes, CSIDrivers.
//
// Threads: one. Blocks: no.
#pragma once

#include <cstdint>
#include <ostream>

#include "agent.pb.h"
#include "cli/object_kinds.h"
#include "cli/output.h"

namespace volumed {

// Prints kubectl's columns. With `all_namespaces` the objects may be from several namespaces, and
// the table has a column for the namespace. The values of a Secret are never printed.
void PrintObjects(const v1::ListObjectsResponse& objects, const CliNoun& noun, OutputFormat format,
                  bool all_namespaces, int64_t now, std::ostream& out);

}  // namespace volumed
