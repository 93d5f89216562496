// Exposition: what a scrape of this program answers. Written from values in memory: it never waits
// for a filesystem, a worker or the control thread.
#pragma once

#include <cstdint>
#include <string>

#include "metrics/exported_families.h"
#include "metrics/volume_stats_text.h"

namespace volumed {

// Source: prometheus.io/docs/instrumenting/exposition_formats (text format 0.0.4).
inline constexpr const char* kExpositionContentType = "text/plain; version=0.0.4; charset=utf-8";

// All families, each once, as one text; those of volumes come last. `now_unix_ms` is what the ages
// of measurements are counted to. Threads: any. Blocks: never for long.
std::string Serialize(const ExportedFamilies& families, const VolumeStatsText& volumes,
                      int64_t now_unix_ms);

}  // namespace volumed
