// `volumectl explain`: says in sentences why a pod is not ready.
#pragma once

#include <cstdint>
#include <ostream>

#include "agent.pb.h"

namespace volumed {

// Prints the pod's phase and holders, its own problems, and each volume; for one that is not as it
// should be: the first step that blocks it, since when, the last error, who must act, and when the
// next try is. Sources that concern the pod and are not in order, and its events, follow. `status`
// gives the present deadlines of steps, which are printed if the pod is not ready; `sources` and
// `status` may be empty.
void Explain(const v1::Pod& pod, const v1::GetSourcesResponse& sources,
             const v1::GetStatusResponse& status, int64_t now_unix_ms, std::ostream& out);

// These print the parts of it. Ages and waits are counted to `now_unix_ms`.
void ExplainProblem(const v1::Problem& problem, int64_t now_unix_ms, std::ostream& out);
void ExplainVolume(const v1::Volume& volume, int64_t now_unix_ms, std::ostream& out);
void ExplainEvent(const v1::Event& event, int64_t now_unix_ms, std::ostream& out);

}  // namespace volumed
