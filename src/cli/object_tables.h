// Tables of objects of which the agent keeps only the object: Secrets, ConfigMaps, Nodes,
// CSIDrivers.
//
// Threads: one. Blocks: no.
#pragma once

#include <cstdint>
#include <ostream>

#include "agent.pb.h"
#include "cli/object_kinds.h"
#include "cli/output.h"

namespace volumed {

// kubectl's columns. `all_namespaces`: they may be of several, so the table has a column for it.
// Never what a Secret holds.
void PrintObjects(const v1::ListObjectsResponse& objects, const CliNoun& noun, OutputFormat format,
                  bool all_namespaces, int64_t now, std::ostream& out);

}  // namespace volumed
