#include "volumemanager/pod_ending.h"

namespace volumed {

std::optional<PodEnding> EndingOf(const Pod& pod) {
  if (pod.status.phase == PodPhase::kSucceeded) return PodEnding{"it has ended (Succeeded)", 0};
  if (pod.status.phase == PodPhase::kFailed) return PodEnding{"it has ended (Failed)", 0};
  if (!pod.deletion_requested()) return std::nullopt;
  // The time counts from when this agent hears of the deletion, as in kubelet: the timestamp comes
  // from another machine's clock.
  return PodEnding{"its deletion was requested",
                   pod.metadata.deletion_grace_period_seconds.value_or(
                       pod.spec.termination_grace_period_seconds)};
}

}  // namespace volumed
