// What the binder (volume/claim_binding.cc) knows of each claim and volume while it decides, and
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

struct VolumeState {
  PersistentVolumePtr object;  // null when only a record knows the volume
  std::optional<ClaimBinding> binding;
  bool claim_ref_void = false;
  bool claim_unknown = false;  // its claimRef names a claim that is not there, and has not ended
  bool missing = false;
  std::string note;

  bool IsTaken() const { return binding && binding->state != BindingState::kReclaimed; }
  // Null when the volume is kept for nobody.
  const ClaimReference* Reservation() const {
    const bool counts = object != nullptr && object->spec.claim_ref && !claim_ref_void;
    return counts ? &*object->spec.claim_ref : nullptr;
  }
};

struct ClaimState {
  PersistentVolumeClaimPtr object;
  ClaimDecision decision;

  bool IsSettled() const { return decision.wait != ClaimWait::kNone || IsBound(); }
  bool IsBound() const { return decision.phase == PersistentVolumeClaimPhase::kBound; }
  bool IsBeingDeleted() const { return object->metadata.deletion_unix_millis.has_value(); }
  // By whoever wrote the manifest: a claim taken over from a cluster.
  bool WasBound() const {
    return object->metadata.annotations.contains(std::string(kBindCompletedAnnotation)) ||
           object->status.phase == PersistentVolumeClaimPhase::kBound;
  }
};

// Who uses what; pods are in the order of their names.
class ClaimUses {
 public:
  explicit ClaimUses(const std::vector<ClaimUse>& uses);

  // Empty when no pod does.
  const std::set<std::string>& OfClaim(const ClaimKey& claim) const;
  // That have mounted the volume.
  const std::set<std::string>& OfVolume(const std::string& volume_name) const;
  // That use the claim and have mounted nothing for it.
  const std::set<std::string>& WaitingFor(const ClaimKey& claim) const;

 private:
  std::map<ClaimKey, std::set<std::string>> by_claim_;
  std::map<std::string, std::set<std::string>> by_volume_;
  std::map<ClaimKey, std::set<std::string>> waiting_;
  const std::set<std::string> nobody_;
};

ClaimKey KeyOfReference(const ClaimReference& reference);

// "pod a/b, pod c/d, pod e/f and 3 more".
std::string PodsText(const std::set<std::string>& pods);

Protection ProtectionOf(const ClaimState& claim, const ClaimUses& uses);

// REQUIRES: the volume's object is there.
VolumeDecision DecideVolume(const std::string& name, const VolumeState& volume,
                            const ClaimUses& uses, const BindingInput& input);

}  // namespace volumed
