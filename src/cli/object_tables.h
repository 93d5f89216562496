// Tables of objects that are shown as they are: Secrets, ConfigMaps, Nodes, CSIDrivers, CSINodes,
// VolumeAttachments, VolumeSnapshots, their contents and classes.
//
// Threads: one. Blocks: no.
#pragma once

#include <cstdint>
#include <ostream>

#include "agent.pb.h"
#include "cli/object_kinds.h"
#include "cli/output.h"

namespace volumed {

// Prints kubectl's columns, and the source in the wide table. With `all_namespaces` the objects may
// be from several namespaces, and the table of a kind that has namespaces has a column for them.
// The columns that only one kind has are those that the agent names.
// The values of a Secret are never printed: DATA is how many keys there are. For an object that is
// refused the reason follows below the table. `now` is in Unix milliseconds.
void PrintObjects(const v1::ListObjectsResponse& objects, const CliNoun& noun, OutputFormat format,
                  bool all_namespaces, int64_t now, std::ostream& out);

}  // namespace volumed
