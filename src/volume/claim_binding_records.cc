// ClaimBinder: what was bound before, by the records or by whoever wrote a volume's manifest.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "volume/claim_binder.h"

namespace volumed {

void ClaimBinder::ApplyRecords() {
  std::vector<ClaimBinding> records = input_.recorded;
  std::sort(records.begin(), records.end(), [](const ClaimBinding& a, const ClaimBinding& b) {
    return std::tie(a.volume_name, a.state, a.claim, a.claim_uid) <
           std::tie(b.volume_name, b.state, b.claim, b.claim_uid);
  });
  for (const ClaimBinding& record : records) {
    VolumeState& volume = volumes_[record.volume_name];
    if (volume.binding) continue;
    switch (record.state) {
      case BindingState::kBound:
        ApplyBound(record, volume);
        break;
      case BindingState::kReleased:
      case BindingState::kReclaimFailed:
        ApplyReleased(record, volume);
        break;
      case BindingState::kReclaimed:
        ApplyReclaimed(record, volume);
        break;
    }
  }
}

void ClaimBinder::ApplyBound(const ClaimBinding& record, VolumeState& volume) {
  ClaimState* claim = SameClaim(record.claim, record.claim_uid);
  if (claim == nullptr) {
    return HasEnded(record.claim, record.claim_uid) ? ReleaseOrHold(record, volume)
                                                    : HoldForMissing(record, volume);
  }
  if (claim->IsSettled()) {
    // Never released on such evidence: a release may delete data.
    volume.binding = record;
    volume.note = "claim " + ToString(record.claim) + " is bound to PersistentVolume " +
                  claim->decision.volume_name + " too";
    return;
  }
  Bind(*claim, record.volume_name, volume);
  claim->decision.newly_bound = false;
  if (volume.object != nullptr) return;
  if (input_.sources_complete) {
    Lose(*claim, "its PersistentVolume " + record.volume_name + " is gone, and the data with it");
  } else {
    claim->decision.reason =
        "its PersistentVolume " + record.volume_name + " is not known yet: " + kSourcesIncomplete;
  }
}

// The claim of `binding` is not there, and has not ended: it may come back at any time.
void ClaimBinder::HoldForMissing(ClaimBinding binding, VolumeState& volume) {
  binding.state = BindingState::kBound;
  volume.note = "its claim is missing: " + std::string(kLeftItsSource);
  volume.binding = std::move(binding);
}

// The claim of `binding` has ended.
void ClaimBinder::ReleaseOrHold(ClaimBinding binding, VolumeState& volume) {
  binding.state = BindingState::kBound;
  if (!input_.sources_complete) {
    volume.note = "its claim has ended; it is released when every source has delivered";
    volume.binding = std::move(binding);
    return;
  }
  const std::set<std::string> pods = PodsHolding(binding.volume_name, binding.claim);
  if (!pods.empty()) {
    volume.note = "its claim is gone; it is released when " + PodsText(pods) + " has left";
    volume.binding = std::move(binding);
    return;
  }
  if (volume.object == nullptr && IsForgotten(binding)) return;
  binding.state = BindingState::kReleased;
  volume.binding = std::move(binding);
}

// A retained volume goes back to its claim when that is certainly the same one, or when both
// manifests name each other, which is a decision of whoever wrote them.
bool ClaimBinder::MayReturn(const ClaimState& claim, const VolumeState& volume,
                            const ClaimBinding& record) {
  if (record.state != BindingState::kReleased || claim.IsSettled() || claim.IsBeingDeleted() ||
      claim.decision.missing || volume.missing ||
      volume.object->spec.reclaim_policy != ReclaimPolicy::kRetain) {
    return false;
  }
  const std::string& named = claim.object->spec.volume_name;
  if (!record.claim_uid.empty()) return named.empty() || named == record.volume_name;
  const ClaimReference* reserved = volume.Reservation();
  return named == record.volume_name && reserved != nullptr &&
         KeyOfReference(*reserved) == record.claim && reserved->uid.empty();
}

void ClaimBinder::ApplyReleased(const ClaimBinding& record, VolumeState& volume) {
  if (IsForgotten(record)) return;
  if (volume.object == nullptr) {
    volume.binding = record;  // it may come back, and must not look free then
    return;
  }
  ClaimState* claim = SameClaim(record.claim, record.claim_uid);
  if (claim != nullptr && MayReturn(*claim, volume, record)) {
    return Bind(*claim, record.volume_name, volume);
  }
  volume.binding = record;
}

void ClaimBinder::ApplyReclaimed(const ClaimBinding& record, VolumeState& volume) {
  if (IsForgotten(record)) return;
  if (volume.object == nullptr) {
    volume.binding = record;
    return;
  }
  const ClaimReference* reserved = volume.Reservation();
  if (reserved == nullptr || reserved->uid.empty()) return;  // its manifest has nothing to void
  if (SameClaim(KeyOfReference(*reserved), reserved->uid) != nullptr) return;
  volume.claim_ref_void = true;
  volume.binding = record;
}

// Volumes whose manifest names a claim by its uid: bound once, by whatever wrote it.
void ClaimBinder::BindByUid() {
  for (auto& [name, volume] : volumes_) {
    const ClaimReference* reserved = volume.Reservation();
    if (volume.IsTaken() || reserved == nullptr || reserved->uid.empty()) continue;
    const ClaimKey key = KeyOfReference(*reserved);
    ClaimState* claim = SameClaim(key, reserved->uid);
    if (claim == nullptr && !HasEnded(key, reserved->uid)) {
      volume.claim_unknown = true;
    } else if (claim == nullptr) {
      ReleaseOrHold({key, reserved->uid, name, BindingState::kBound}, volume);
    } else if (const std::string& named = claim->object->spec.volume_name;
               !claim->IsSettled() && (named.empty() || named == name)) {
      Bind(*claim, name, volume);
    }
  }
}

}  // namespace volumed
