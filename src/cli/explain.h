// `volumectl explain`: says in sentences why a pod is not ready.
#pragma once

#include <cstdint>
#include <ostream>

#include "agent.pb.h"

namespace volumed {

// Prints, for each volume that is not as it should be: the first step that blocks it, since when,
// the last error, who must act, and when the next try is. Holders, sources with problems and recent
// events follow. `status`, which is asked for if the pod is not ready, gives the present deadlines
// of steps.
void Explain(const v1::Pod& pod, const v1::GetSourcesResponse& sources,
             const v1::GetStatusResponse& status, int64_t now_unix_ms, std::ostream& out);

// These print the parts of it.
void ExplainProblem(const v1::Problem& problem, int64_t now_unix_ms, std::ostream& out);
void ExplainVolume(const v1::Volume& volume, int64_t now_unix_ms, std::ostream& out);
void ExplainEvent(const v1::Event& event, int64_t now_unix_ms, std::ostream& out);

}  // namespace volumed
