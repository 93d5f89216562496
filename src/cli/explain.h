// `volumectl explain`: why a pod is not ready, in sentences.
#pragma once

#include <cstdint>
#include <ostream>

#include "agent.pb.h"

namespace volumed {

// For each volume that is not as it should be: the first blocking step, since when, the last error,
// who must act, and when the next try is. Then holders, sources with problems and recent events.
// Of `status`, if it was asked for, the deadlines that steps have now; for a pod that is not ready.
void Explain(const v1::Pod& pod, const v1::GetSourcesResponse& sources,
             const v1::GetStatusResponse& status, int64_t now_unix_ms, std::ostream& out);

// The parts of it.
void ExplainProblem(const v1::Problem& problem, int64_t now_unix_ms, std::ostream& out);
void ExplainVolume(const v1::Volume& volume, int64_t now_unix_ms, std::ostream& out);
void ExplainEvent(const v1::Event& event, int64_t now_unix_ms, std::ostream& out);

}  // namespace volumed
