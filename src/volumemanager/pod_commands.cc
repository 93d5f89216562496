#include "volumemanager/pod_commands.h"

#include <utility>

#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/adopted_pods.h"
#include "volumemanager/claims/claims.h"
#include "volumemanager/claims/volume_expander.h"
#include "volumemanager/desired_state_of_world.h"
#include "volumemanager/pod_deletion_answers.h"
#include "volumemanager/pod_lifecycle.h"
#include "volumemanager/pod_observers.h"
#include "volumemanager/pod_tombstones.h"
#include "volumemanager/readiness.h"
#include "volumemanager/reconciler.h"

namespace volumed {
namespace {

Error NoSuchPod(const PodUid& pod) {
  return Error::NotApplied(Code::kNotFound, "no pod with uid " + pod.str() + " is known");
}

}  // namespace

std::optional<Error> PodCommands::RefuseDelete(const PodUid& uid) const {
  if (!parts_.readiness.loaded()) return NotLoaded();
  const ActualPod* pod = parts_.actual.FindPod(uid);
  if (pod == nullptr) {
    if (parts_.catalog.FindPod(uid) == nullptr) return NoSuchPod(uid);
    return std::nullopt;
  }
  if (pod->quarantine_reason.empty()) return std::nullopt;
  return Error::NotApplied(Code::kFailedPrecondition,
                           "pod " + uid.str() + " is left alone: " + pod->quarantine_reason);
}

void PodCommands::Delete(const PodUid& uid, bool force, Done done) {
  if (const std::optional<Error> refused = RefuseDelete(uid)) {
    PostAnswer(parts_.scheduler, done, *refused);
    return;
  }
  ActualPod* pod = parts_.actual.FindPod(uid);
  if (pod == nullptr) {
    if (parts_.tombstones.Find(uid) == nullptr) {
      // It has ended: nothing of it is or will be here.
      PostAnswer(parts_.scheduler, done, OkStatus());
      return;
    }
    // The disk may have refused the row when the pod went, so it is written again.
    parts_.answers.Wait(uid, std::move(done));
    parts_.tombstones.Write(uid);
    return;
  }
  parts_.lifecycle.LeaveByCommand(uid, *pod, force);
  if (pod->record_durable && !pod->record_outdated && !pod->record_writing) {
    PostAnswer(parts_.scheduler, done, OkStatus());
  } else {
    parts_.answers.Wait(uid, std::move(done));
  }
  parts_.reconciler.ResetBackoff(uid);
  parts_.reconciler.MarkDirty(uid);
}

void PodCommands::Hold(const HoldRequest& request, Done done) {
  const ActualPod* pod = parts_.actual.FindPod(request.pod);
  std::optional<Error> refused;
  if (!parts_.readiness.loaded()) {
    refused = NotLoaded();
  } else if (pod == nullptr) {
    refused = NoSuchPod(request.pod);
  } else if (pod->teardown_begun) {
    refused = Error::NotApplied(Code::kFailedPrecondition,
                                "pod " + pod->identity.DisplayName() + " is being torn down");
  }
  if (refused) return PostAnswer(parts_.scheduler, done, *refused);
  parts_.consumers.Hold(request, std::move(done));
  parts_.observers.Tell(request.pod);
}

void PodCommands::ReleaseHold(const HoldRequest& request, Done done) {
  if (!parts_.readiness.loaded()) return PostAnswer(parts_.scheduler, done, NotLoaded());
  parts_.consumers.Release(request, std::move(done));
}

Status PodCommands::Retry(const PodUid& uid) {
  if (!parts_.readiness.loaded()) return NotLoaded();
  if (parts_.actual.FindPod(uid) == nullptr) return NoSuchPod(uid);
  parts_.reconciler.ResetBackoff(uid);
  if (const WantedPod* wanted = parts_.desired.Find(uid)) {
    for (const auto& [spec, volume] : wanted->volumes) {
      parts_.expander.Retry(volume.unique_name);
      RetryMaker(volume);
    }
  }
  parts_.lifecycle.Evaluate(uid);
  return OkStatus();
}

void PodCommands::RetryMaker(const WantedVolume& wanted) {
  for (const WantedProblem& problem : wanted.problems) {
    if (!problem.operation) continue;
    parts_.operations.ResetBackoff(*problem.operation);
    parts_.claims.MarkDirty();
  }
}

Status PodCommands::RetryVolume(const PodVolumeKey& key) {
  if (!parts_.readiness.loaded()) return NotLoaded();
  const ActualPod* pod = parts_.actual.FindPod(key.pod);
  if (pod == nullptr) return NoSuchPod(key.pod);
  const WantedVolume* wanted = parts_.desired.Find(key);
  if (parts_.actual.FindVolume(key) == nullptr && wanted == nullptr) {
    return Error::NotApplied(Code::kNotFound, "pod " + pod->identity.DisplayName() +
                                                  " has no volume \"" + key.spec.str() + "\"");
  }
  parts_.reconciler.ResetBackoff(key);
  if (wanted != nullptr) {
    parts_.reconciler.RetryDevice(*wanted);
    parts_.expander.Retry(wanted->unique_name);
    RetryMaker(*wanted);
  }
  parts_.lifecycle.Evaluate(key.pod);
  return OkStatus();
}

void PodCommands::AcceptAdopted() {
  for (const PodUid& uid : parts_.adopted.Accept()) parts_.lifecycle.Evaluate(uid);
}

}  // namespace volumed
