// The columns that `volumectl get` has for a kind between NAME and AGE: kubectl's.
// Source: kubernetes pkg/printers/internalversion/printers.go@v1.36.2 (printCSIDriver,
// printCSINode, printVolumeAttachment).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/objects.h"

namespace volumed {

// Threads: any. Blocks: never. Errors: none.

// The heads of the columns, in their order. Empty for a kind that has none, or whose columns are
// fields of the answer (Secret, ConfigMap) or have a table of their own (volumes, claims, classes).
std::vector<std::string_view> ColumnsOf(ObjectKind kind);
// What stands below them, one text for each.
std::vector<std::string> CellsOf(const Object& object);

}  // namespace volumed
