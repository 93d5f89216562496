// Views of the volume manager as messages of the control API.
#pragma once

#include <vector>

#include "agent.pb.h"
#include "kube/object_catalog.h"
#include "volumehost/event_log.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// `events` are the pod's own, oldest first.
void EncodePod(const PodView& view, const std::vector<PodEvent>& events, v1::Pod* out);
void EncodeSource(const SourceStatus& status, v1::Source* out);
void EncodeProblem(const DecodeProblem& problem, v1::ManifestProblem* out);

}  // namespace volumed
