// The pod that scrubs a volume, as plugins get it, and how long it may take.
// Source: kubernetes pkg/volume/plugins.go@v1.36.2 (NewPersistentVolumeRecyclerPodTemplate,
// ValidateRecyclerPodTemplate), pkg/volume/util/util.go (CalculateTimeoutForVolume).
//
// Threads: any. Blocks: never, unless said otherwise.
#pragma once

#include <cstdint>
#include <string>

#include "base/quantity.h"
#include "base/result.h"
#include "kube/objects.h"

namespace volumed {

// Runs a shell that deletes everything in /scrub and fails unless nothing is left. What a plugin
// has to replace: the source of volumes[0], which is an empty emptyDir; what it should: the active
// deadline, which is 60 s.
Pod NewPersistentVolumeRecyclerPodTemplate();

// The attribute of a plugin's configuration (VolumeConfig::other_attributes) with the manifest of
// its template, if it has no template of its own: read anew for each volume, so that one that is
// put right needs no restart.
inline constexpr char kRecyclerTemplateAttribute[] = "recycler-pod-template";

// The one Pod of a manifest, or, for an empty `path`, the one above. Blocks: reads the file.
// Errors, not applied: those of ReadRegularFile (1 MiB at most), as NotFound; InvalidArgument,
// naming the file: "file was empty: <path>", what the decoder says, and what
// ValidateRecyclerPodTemplate says.
Result<Pod> LoadRecyclerPodTemplate(const std::string& path);

// InvalidArgument, not applied, "does not contain any volume(s)".
Status ValidateRecyclerPodTemplate(const Pod& pod);

// Whether the pod would do exactly what the template above does to its first volume, so that the
// same may be done without a container.
bool ScrubsLikeTemplate(const Pod& pod);

// Returns seconds: the greater of `minimum_seconds`, and `increment_seconds` for each whole Gi.
// (The seed's text has the two added; its code takes the greater.)
int64_t CalculateTimeoutForVolume(int minimum_seconds, int increment_seconds,
                                  const Quantity& capacity);

}  // namespace volumed
