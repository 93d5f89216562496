#include "volume/binding_state.h"

#include "kube/refused_sources.h"

namespace volumed {
namespace {

template <typename Key>
const std::set<std::string>& FindOr(const std::map<Key, std::set<std::string>>& pods,
                                    const Key& key, const std::set<std::string>& nobody) {
  const auto found = pods.find(key);
  return found == pods.end() ? nobody : found->second;
}

// "" when every finalizer of the object is one of those that this program stands for.
std::string ForeignFinalizer(const ObjectMeta& metadata) {
  for (const std::string& finalizer : metadata.finalizers) {
    if (finalizer != kPersistentVolumeProtection && finalizer != kPersistentVolumeClaimProtection) {
      return "finalizer " + finalizer;
    }
  }
  return "";
}

void DecideRecorded(const VolumeState& volume, const ClaimUses& uses, const BindingInput& input,
                    VolumeDecision& decision) {
  const PersistentVolume& object = *volume.object;
  const std::string claim = "claim " + ToString(volume.binding->claim);
  decision.claim = volume.binding->claim;
  decision.reason = volume.note;
  if (volume.binding->state == BindingState::kBound) {
    decision.phase = PersistentVolumePhase::kBound;
    if (const auto refusal = RefusalOf(object.spec.source)) decision.reason = *refusal;
    decision.protection.held_by = "bound to " + claim;
    return;
  }
  const bool failed = volume.binding->state == BindingState::kReclaimFailed;
  decision.phase = failed ? PersistentVolumePhase::kFailed : PersistentVolumePhase::kReleased;
  decision.reason = claim + " is gone";
  const ReclaimAction action = ReclaimActionOf(object.spec.reclaim_policy);
  if (action == ReclaimAction::kNone) {
    decision.reason += "; its data is retained";
    if (!decision.protection.deletion_requested) {
      decision.reason +=
          ", for a claim that comes once its PersistentVolume is deleted and given anew";
    }
    return;
  }
  const auto why_not = input.unreclaimable.find(decision.volume_name);
  if (why_not != input.unreclaimable.end() && decision.protection.deletion_requested) {
    decision.reason +=
        "; its object goes, and its storage stays as it is, with its data: " + why_not->second;
    return;
  }
  // Its object is what its data is reclaimed by. Source: kubernetes v1.36.2 (finalizer
  // kubernetes.io/pv-controller of HonorPVReclaimPolicy).
  decision.protection.held_by = "its data is not reclaimed yet";
  if (!input.sources_complete) {
    decision.reason += "; it is reclaimed when every source has delivered";
  } else if (decision.missing && !decision.protection.deletion_requested) {
    decision.reason += "; it is not reclaimed while its PersistentVolume is missing";
  } else if (const auto& pods = uses.OfVolume(decision.volume_name); !pods.empty()) {
    decision.reason += "; it is reclaimed when " + PodsText(pods) + " has left";
  } else if (input.leaving_devices.contains(decision.volume_name)) {
    decision.reason += "; it waits until its device has left this node";
  } else {
    decision.reclaim = action;
    if (failed) decision.reason += "; the last attempt to reclaim it failed";
  }
}

void DecideFree(const VolumeState& volume, const BindingInput& input, VolumeDecision& decision) {
  const PersistentVolume& object = *volume.object;
  if (const ClaimReference* reserved = volume.Reservation()) {
    decision.claim = KeyOfReference(*reserved);
    decision.reason = "kept for claim " + ToString(*decision.claim);
  }
  if (volume.claim_unknown) {
    decision.phase = PersistentVolumePhase::kBound;
    decision.reason =
        "claim " + ToString(*decision.claim) + " with the uid " + volume.Reservation()->uid +
        ", to which its manifest binds it, is not known here: it is kept for that one";
    // Without a source that is yet to deliver, no command can name that claim.
    if (!input.sources_complete) {
      decision.protection.held_by = "bound to claim " + ToString(*decision.claim);
    }
  } else if (const auto refusal = RefusalOf(object.spec.source)) {
    decision.phase = PersistentVolumePhase::kFailed;
    decision.reason = *refusal;
  } else if (object.status.phase == PersistentVolumePhase::kFailed) {
    decision.phase = PersistentVolumePhase::kFailed;
    decision.reason =
        object.status.message.empty() ? "its manifest says so" : object.status.message;
  }
}

}  // namespace

ClaimUses::ClaimUses(const std::vector<ClaimUse>& uses) {
  for (const ClaimUse& use : uses) {
    by_claim_[use.claim].insert(use.pod);
    if (use.volume_name.empty()) {
      waiting_[use.claim].insert(use.pod);
    } else {
      by_volume_[use.volume_name].insert(use.pod);
    }
  }
}

const std::set<std::string>& ClaimUses::OfClaim(const ClaimKey& claim) const {
  return FindOr(by_claim_, claim, nobody_);
}

const std::set<std::string>& ClaimUses::OfVolume(const std::string& volume_name) const {
  return FindOr(by_volume_, volume_name, nobody_);
}

const std::set<std::string>& ClaimUses::WaitingFor(const ClaimKey& claim) const {
  return FindOr(waiting_, claim, nobody_);
}

ClaimKey KeyOfReference(const ClaimReference& reference) {
  return {reference.name_space, reference.name};
}

// "pod a/b, pod c/d and 3 more".
std::string PodsText(const std::set<std::string>& pods) {
  constexpr size_t kShown = 3;
  std::string text;
  size_t shown = 0;
  for (const std::string& pod : pods) {
    if (shown == kShown) return text + " and " + std::to_string(pods.size() - kShown) + " more";
    text += (shown++ == 0 ? "pod " : ", pod ") + pod;
  }
  return text;
}

Protection ProtectionOf(const ClaimState& claim, const ClaimUses& uses) {
  const std::set<std::string>& pods = uses.OfClaim(claim.decision.claim);
  Protection protection;
  protection.deletion_requested = claim.IsBeingDeleted();
  protection.held_by =
      pods.empty() ? ForeignFinalizer(claim.object->metadata) : "used by " + PodsText(pods);
  return protection;
}

VolumeDecision DecideVolume(const std::string& name, const VolumeState& volume,
                            const ClaimUses& uses, const BindingInput& input) {
  const ObjectMeta& metadata = volume.object->metadata;
  VolumeDecision decision;
  decision.volume_name = name;
  decision.missing = volume.missing;
  decision.protection.deletion_requested = metadata.deletion_unix_millis.has_value();
  if (volume.IsTaken()) {
    DecideRecorded(volume, uses, input, decision);
  } else {
    DecideFree(volume, input, decision);
  }
  if (!decision.protection.held_by.empty()) return decision;
  const std::set<std::string>& pods = uses.OfVolume(name);
  decision.protection.held_by =
      pods.empty() ? ForeignFinalizer(metadata) : "used by " + PodsText(pods);
  return decision;
}

}  // namespace volumed
