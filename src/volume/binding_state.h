// What the binder (volume/claim_binder.h) knows of each claim and volume while it decides, and
// how a state is told. For use by the binder only.
//
// Threads: one. Blocks: never. Errors: none.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "volume/claim_binding.h"

namespace volumed {

inline constexpr const char* kSourcesIncomplete = "not every source has delivered its objects yet";
inline constexpr const char* kLeftItsSource = "it has left its source, and nobody has deleted it";

// One volume, known by its object, by a record, or by both.
struct VolumeState {
  PersistentVolumePtr object;  // null when only a record knows the volume
  std::optional<ClaimBinding> binding;
  bool claim_ref_void = false;  // it was recycled: the claim that its claimRef names is of the past
  bool claim_unknown = false;   // its claimRef names a claim that is not there, and has not ended
  bool missing = false;         // its object has left its source, and nobody has deleted it
  std::string note;             // for people: why its binding is not what it should be, or ""

  // Whether it has, or had, a claim that keeps it from every other one.
  bool IsTaken() const { return binding && binding->state != BindingState::kReclaimed; }
  // The claim that the volume's manifest keeps it for, valid as long as the object; null if it is
  // kept for nobody.
  const ClaimReference* Reservation() const {
    const bool counts = object != nullptr && object->spec.claim_ref && !claim_ref_void;
    return counts ? &*object->spec.claim_ref : nullptr;
  }
};

// One claim that has not ended. `object` is never null.
struct ClaimState {
  PersistentVolumeClaimPtr object;
  ClaimDecision decision;

  // Whether it is decided: bound, or known to wait and for what.
  bool IsSettled() const { return decision.wait != ClaimWait::kNone || IsBound(); }
  bool IsBound() const { return decision.phase == PersistentVolumeClaimPhase::kBound; }
  bool IsBeingDeleted() const { return object->metadata.deletion_unix_millis.has_value(); }
  // Whether whoever wrote the manifest says so: a claim taken over from a cluster.
  bool WasBound() const {
    return object->metadata.annotations.contains(std::string(kBindCompletedAnnotation)) ||
           object->status.phase == PersistentVolumeClaimPhase::kBound;
  }
};

// Which pods use what. A pod is "namespace/name"; they are in the order of their names. References
// are valid as long as this object.
class ClaimUses {
 public:
  explicit ClaimUses(const std::vector<ClaimUse>& uses);

  // The pods that have the claim among their volumes; empty if none has.
  const std::set<std::string>& OfClaim(const ClaimKey& claim) const;
  // The pods that have mounted the volume, for whatever claim.
  const std::set<std::string>& OfVolume(const std::string& volume_name) const;
  // The pods that use the claim and have mounted nothing for it.
  const std::set<std::string>& WaitingFor(const ClaimKey& claim) const;

 private:
  std::map<ClaimKey, std::set<std::string>> by_claim_;
  std::map<std::string, std::set<std::string>> by_volume_;
  std::map<ClaimKey, std::set<std::string>> waiting_;
  const std::set<std::string> nobody_;
};

ClaimKey KeyOfReference(const ClaimReference& reference);

// "pod a/b, pod c/d, pod e/f and 3 more": three at most by name. Empty for nobody.
std::string PodsText(const std::set<std::string>& pods);

// A claim is held by pods that use it, and by finalizers that are not of Kubernetes' own
// protection.
Protection ProtectionOf(const ClaimState& claim, const ClaimUses& uses);

// What is told of a volume once all claims are decided, and whether it is to be reclaimed.
// REQUIRES: the volume's object is there.
VolumeDecision DecideVolume(const std::string& name, const VolumeState& volume,
                            const ClaimUses& uses, const BindingInput& input);

}  // namespace volumed
