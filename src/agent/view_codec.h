// Views of the volume manager as messages of the control API.
#pragma once

#include "agent.pb.h"
#include "kube/object_catalog.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

void EncodePod(const PodView& view, v1::Pod* out);
void EncodeSource(const SourceStatus& status, v1::Source* out);
void EncodeProblem(const DecodeProblem& problem, v1::ManifestProblem* out);

}  // namespace volumed
