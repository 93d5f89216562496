#include "volumemanager/claim_events.h"

#include <algorithm>

#include "kube/ephemeral_claim.h"

namespace volumed {

void ClaimEvents::Tell(const ClaimKey& claim, EventType type, const char* reason,
                       const std::string& message) const {
  log_.Log(type == EventType::kWarning ? LogLevel::kWarning : LogLevel::kInfo, "event of a claim",
           {{"claim", ToString(claim)}, {"reason", reason}, {"message", message}});
  for (const std::shared_ptr<const Pod>& pod : catalog_.Pods()) {
    if (pod->metadata.name_space != claim.name_space) continue;
    const std::vector<PodClaim> used = ClaimsOfPod(*pod);
    const bool uses = std::any_of(used.begin(), used.end(), [&claim](const PodClaim& one) {
      return one.claim == claim.name;
    });
    if (uses) events_.RecordPodEvent(pod->uid(), type, reason, message);
  }
}

void ClaimEvents::TellWait(const ClaimDecision& decision) const {
  switch (decision.wait) {
    case ClaimWait::kFirstConsumer:
      Tell(decision.claim, EventType::kNormal, kWaitForFirstConsumer,
           "waiting for first consumer to be created before binding");
      return;
    case ClaimWait::kProvisioning:
      Tell(decision.claim, EventType::kNormal, kExternalProvisioning,
           "Waiting for a volume to be created either by the external provisioner '" +
               decision.provisioner +
               "' or manually by the system administrator. If volume creation is delayed, please "
               "verify that the provisioner is running and correctly registered.");
      return;
    case ClaimWait::kNone:
    case ClaimWait::kSources:
    case ClaimWait::kNoMatch:
    case ClaimWait::kVolumeMissing:
    case ClaimWait::kVolumeTaken:
    case ClaimWait::kVolumeUnfit:
    case ClaimWait::kBeingDeleted:
    case ClaimWait::kLost:
      return;
  }
}

}  // namespace volumed
