// Encodes views of the volume manager as messages of the control API. Each function fills `out`,
// which is empty, and leaves a field that says nothing at its default. Threads: any, but for what
// takes the manager, which is called on the control thread. Blocks: never.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "agent.pb.h"
#include "base/clock.h"
#include "kube/object_catalog.h"
#include "os/worker_pool_stats.h"
#include "volumehost/event_log.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// EncodePodSummary leaves out volumes and events, and has only the problem that has to be told
// first; see GetPodsRequest.summary. In EncodePod, `events` are the pod's own, oldest first.
void EncodePodSummary(const PodView& view, v1::Pod* out);
void EncodePod(const PodView& view, const std::vector<KeptEvent>& events, v1::Pod* out);
void EncodeProblemView(const ProblemView& view, v1::Problem* out);
void EncodeVolume(const VolumeView& view, v1::Volume* out);
void EncodeEvent(const KeptEvent& event, v1::Event* out);
// `clock` is the one by which `stuck.since` was taken: the answer has wall time.
void EncodeStuck(const StuckOperation& stuck, const Clock& clock, v1::StuckOperation* out);
v1::ObjectRef MakeObjectRef(const ObjectKey& key);
v1::ObjectRef MakePodRef(const PodView& view);
// Only kind and uid are set if the manager does not know the pod any more.
v1::ObjectRef MakePodRef(const PodUid& pod, const VolumeManager& manager);
// EncodeSource has 200 warnings at most, and EncodeUnreadFiles ten files; both say how many there
// are.
void EncodeSource(const SourceStatus& status, v1::Source* out);
void EncodeUnreadFiles(const std::set<std::string>& files, v1::Source* out);
void EncodeProblem(const DecodeProblem& problem, v1::ManifestProblem* out);

}  // namespace volumed
