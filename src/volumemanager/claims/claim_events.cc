#include "volumemanager/claims/claim_events.h"

namespace volumed {
namespace {

constexpr char kFailedBinding[] = "FailedBinding";

ClaimEvent EventOfLost(const ClaimDecision& decision, bool volume_exists) {
  if (decision.volume_name.empty()) {
    return {EventType::kWarning, "ClaimLost",
            "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"};
  }
  if (!volume_exists) {
    return {EventType::kWarning, "ClaimLost",
            "Bound claim has lost its PersistentVolume. Data on the volume is lost!"};
  }
  return {EventType::kWarning, "ClaimMisbound",
          "Two claims are bound to the same volume, this one is bound incorrectly"};
}

ClaimEvent EventOfNoMatch(const ClaimDecision& decision) {
  std::string message = "no persistent volumes available for this claim";
  message +=
      decision.storage_class.empty() ? " and no storage class is set" : ": " + decision.reason;
  return {EventType::kNormal, kFailedBinding, std::move(message)};
}

}  // namespace

std::optional<ClaimEvent> EventOf(const ClaimDecision& decision, bool volume_exists) {
  const std::string volume = "\"" + decision.volume_name + "\"";
  switch (decision.wait) {
    case ClaimWait::kNone:
    case ClaimWait::kSources:
    case ClaimWait::kBeingDeleted:
    case ClaimWait::kMissing:
      return std::nullopt;
    case ClaimWait::kClassMissing:
      return ClaimEvent{EventType::kWarning, "ProvisioningFailed", decision.reason};
    case ClaimWait::kFirstConsumer:
      return ClaimEvent{EventType::kNormal, "WaitForFirstConsumer",
                        "waiting for first consumer to be created before binding"};
    case ClaimWait::kNoMatch:
      return EventOfNoMatch(decision);
    case ClaimWait::kProvisioning:
      return ClaimEvent{EventType::kNormal, "ExternalProvisioning",
                        "Waiting for a volume to be created either by the external provisioner '" +
                            decision.provisioner +
                            "' or manually by the system administrator. If volume creation is "
                            "delayed, please verify that the provisioner is running and correctly "
                            "registered."};
    case ClaimWait::kVolumeMissing:
      return ClaimEvent{EventType::kWarning, kFailedBinding, decision.reason};
    case ClaimWait::kVolumeTaken:
      return ClaimEvent{EventType::kWarning, kFailedBinding,
                        "volume " + volume + " already bound to a different claim."};
    case ClaimWait::kVolumeUnfit:
      return ClaimEvent{EventType::kWarning, "VolumeMismatch",
                        "Cannot bind to requested volume " + volume + ": " + decision.reason};
    case ClaimWait::kLost:
      return EventOfLost(decision, volume_exists);
  }
  return std::nullopt;
}

}  // namespace volumed
