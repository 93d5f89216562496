// ClaimBinder: one decision of DecideBindings (claim_binding.h), which alone uses it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "volume/binding_state.h"
#include "volume/claim_binding.h"
#include "volume/claim_matcher.h"

namespace volumed {

// Threads: one. Blocks: never. Errors: none. The input outlives this object.
class ClaimBinder {
 public:
  explicit ClaimBinder(const BindingInput& input);

  BindingResult Run();

 private:
  // claim_binding.cc: what all parts use.
  bool HasEnded(const ClaimKey& claim, const std::string& uid) const;
  bool IsForgotten(const ClaimBinding& record) const;
  void AddClaim(const PersistentVolumeClaimPtr& object);
  // Null when there is no such claim, or another one of its name.
  ClaimState* SameClaim(const ClaimKey& key, const std::string& uid);
  // The pods that still hold the volume of a claim that is gone.
  std::set<std::string> PodsHolding(const std::string& volume_name, const ClaimKey& claim) const;
  void Bind(ClaimState& claim, const std::string& volume_name, VolumeState& volume);
  static std::string WhyMissing(const ClaimState& claim);
  static void Wait(ClaimState& claim, ClaimWait wait, std::string reason);
  static void Lose(ClaimState& claim, std::string reason);

  // claim_binding_records.cc: what was bound before, by the records or by whoever wrote a manifest.
  void ApplyRecords();
  void ApplyBound(const ClaimBinding& record, VolumeState& volume);
  void ApplyReleased(const ClaimBinding& record, VolumeState& volume);
  void ApplyReclaimed(const ClaimBinding& record, VolumeState& volume);
  static void HoldForMissing(ClaimBinding binding, VolumeState& volume);
  void ReleaseOrHold(ClaimBinding binding, VolumeState& volume);
  static bool MayReturn(const ClaimState& claim, const VolumeState& volume,
                        const ClaimBinding& record);
  void BindByUid();

  // claim_binding.cc: what is bound anew.
  void BindReserved();
  // Whether it may be bound by name to a claim that it is too small for.
  bool MayGrow(const PersistentVolume& volume) const;
  void SettleUnready(ClaimState& claim);
  void BindNamed(ClaimState& claim);
  std::vector<ClaimState*> SmallestFirst();
  const StorageClass* ClassObjectOf(const ClaimState& claim) const;
  VolumeBindingMode ModeOf(const ClaimState& claim) const;
  bool WaitsForConsumer(const ClaimState& claim) const;
  std::optional<Misfit> MisfitOfState(const VolumeState& volume, const ClaimNeeds& needs) const;
  void Match(ClaimState& claim);
  BindingResult Collect();

  // claim_binding_reasons.cc: why a claim has no volume.
  struct Obstacle {
    ClaimWait wait;
    std::string reason;
  };
  std::optional<Obstacle> WhyNotNamed(const ClaimState& claim) const;
  std::string WhyTaken(const std::string& name, const VolumeState& volume,
                       const ClaimState& claim) const;
  std::string WhyUnfit(const PersistentVolume& volume, const ClaimState& claim,
                       Misfit misfit) const;
  void Explain(ClaimState& claim) const;
  void ExplainNoMatch(ClaimState& claim) const;
  std::string UnfitOfClass(const ClaimNeeds& needs) const;

  const BindingInput& input_;
  const StorageClass* const default_class_;
  std::map<std::string, VolumeState> volumes_;
  std::map<ClaimKey, ClaimState> claims_;
  std::map<std::string, const StorageClass*> classes_;
  const ClaimUses uses_;
};

}  // namespace volumed
