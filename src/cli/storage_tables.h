// `volumectl get pv|pvc|sc`: tables with kubectl's columns.
// Source: kubernetes pkg/printers/internalversion/printers.go@v1.36.2 (printPersistentVolume,
// printPersistentVolumeClaim, printStorageClass), without VOLUMEATTRIBUTESCLASS.
#pragma once

#include <cstdint>
#include <ostream>

#include "agent.pb.h"
#include "cli/output.h"

namespace volumed {

// An object without a creation time has the age "<unknown>". The wide table adds the volume mode,
// and for a claim for whom it was made and why it is not bound.
void PrintPersistentVolumes(const v1::GetStorageResponse& storage, OutputFormat format,
                            int64_t now_unix_ms, std::ostream& out);
// With `all_namespaces` there is a column for the namespace.
void PrintClaims(const v1::GetStorageResponse& storage, OutputFormat format, bool all_namespaces,
                 int64_t now_unix_ms, std::ostream& out);
void PrintStorageClasses(const v1::GetStorageResponse& storage, OutputFormat format,
                         int64_t now_unix_ms, std::ostream& out);

}  // namespace volumed
