// `volumectl get pv|pvc|sc`: tables with kubectl's columns.
// Source: kubernetes pkg/printers/internalversion/printers.go@v1.36.2 (printPersistentVolume,
// printPersistentVolumeClaim, printStorageClass), without VOLUMEATTRIBUTESCLASS.
#pragma once

#include <cstdint>
#include <ostream>

#include "agent.pb.h"
#include "cli/output.h"

namespace volumed {

// An object without a creation time has the age "<unknown>". A long reason is cut, but not in the
// wide table, which adds the volume mode, and for a claim for whom it was made and why it is not
// bound. A line below the table says how many objects the agent left out.
void PrintPersistentVolumes(const v1::GetStorageResponse& storage, OutputFormat format,
                            int64_t now_unix_ms, std::ostream& out);
// With `all_namespaces` there is a column for the namespace. For a claim that is refused the reason
// follows below the table, unless a column has it.
void PrintClaims(const v1::GetStorageResponse& storage, OutputFormat format, bool all_namespaces,
                 int64_t now_unix_ms, std::ostream& out);
// The wide table is the same. Of a class that is refused only the name is known; the reason follows
// below.
void PrintStorageClasses(const v1::GetStorageResponse& storage, OutputFormat format,
                         int64_t now_unix_ms, std::ostream& out);

}  // namespace volumed
