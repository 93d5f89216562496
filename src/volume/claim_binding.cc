#include "volume/claim_binding.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "volume/claim_binder.h"

namespace volumed {

ClaimBinder::ClaimBinder(const BindingInput& input)
    : input_(input), default_class_(DefaultClass(input.classes)), uses_(input.uses) {
  for (const PersistentVolumePtr& volume : input.volumes) {
    VolumeState& state = volumes_[volume->metadata.name];
    state.object = volume;
    state.missing = input.missing_volumes.contains(volume->metadata.name);
  }
  for (const PersistentVolumeClaimPtr& claim : input.claims) AddClaim(claim);
  for (const StorageClassPtr& one : input.classes) classes_[one->metadata.name] = one.get();
}

BindingResult ClaimBinder::Run() {
  ApplyRecords();
  BindByUid();
  BindReserved();
  for (auto& [key, claim] : claims_) SettleUnready(claim);
  for (auto& [key, claim] : claims_) BindNamed(claim);
  for (ClaimState* claim : SmallestFirst()) Match(*claim);
  // Last, when it is known who has which volume: so a restart tells the same.
  for (auto& [key, claim] : claims_) Explain(claim);
  return Collect();
}

bool ClaimBinder::HasEnded(const ClaimKey& claim, const std::string& uid) const {
  return input_.ended.contains({claim, uid});
}

bool ClaimBinder::IsForgotten(const ClaimBinding& record) const {
  return input_.ended_volumes.contains(record.volume_name);
}

void ClaimBinder::AddClaim(const PersistentVolumeClaimPtr& object) {
  // What has ended comes back from nowhere, whatever a source says.
  if (HasEnded(KeyOfClaim(*object), object->metadata.uid)) return;
  ClaimState& claim = claims_[KeyOfClaim(*object)];
  claim.decision.missing = input_.missing_claims.contains(KeyOfClaim(*object));
  claim.object = object;
  claim.decision.claim = KeyOfClaim(*object);
  claim.decision.uid = object->metadata.uid;
  claim.decision.storage_class = ClassOf(*object, default_class_);
}

ClaimState* ClaimBinder::SameClaim(const ClaimKey& key, const std::string& uid) {
  const auto found = claims_.find(key);
  return found == claims_.end() || found->second.decision.uid != uid ? nullptr : &found->second;
}

std::set<std::string> ClaimBinder::PodsHolding(const std::string& volume_name,
                                               const ClaimKey& claim) const {
  std::set<std::string> pods = uses_.OfVolume(volume_name);
  // A pod that has mounted nothing yet means the claim that has the name now.
  if (pods.empty() && !claims_.contains(claim)) pods = uses_.WaitingFor(claim);
  return pods;
}

void ClaimBinder::Bind(ClaimState& claim, const std::string& volume_name, VolumeState& volume) {
  claim.decision.phase = PersistentVolumeClaimPhase::kBound;
  claim.decision.volume_name = volume_name;
  claim.decision.newly_bound = true;
  claim.decision.wait = ClaimWait::kNone;
  claim.decision.reason = WhyMissing(claim);
  volume.binding = {claim.decision.claim, claim.decision.uid, volume_name, BindingState::kBound};
  volume.note.clear();
}

std::string ClaimBinder::WhyMissing(const ClaimState& claim) {
  if (!claim.decision.missing) return "";
  return claim.IsBeingDeleted() ? "it has left its source" : kLeftItsSource;
}

void ClaimBinder::Wait(ClaimState& claim, ClaimWait wait, std::string reason) {
  claim.decision.wait = wait;
  claim.decision.reason = std::move(reason);
}

void ClaimBinder::Lose(ClaimState& claim, std::string reason) {
  claim.decision.phase = PersistentVolumeClaimPhase::kLost;
  Wait(claim, ClaimWait::kLost, std::move(reason));
}

// What is known of classes counts once every source has delivered.
bool ClaimBinder::MayGrow(const PersistentVolume& volume) const {
  const auto found = classes_.find(ClassOf(volume));
  return input_.sources_complete &&
         MayGrowForClaim(volume, found == classes_.end() ? nullptr : found->second);
}

// Volumes whose manifest names a claim, whatever its uid.
void ClaimBinder::BindReserved() {
  std::map<ClaimKey, std::string> chosen;
  std::map<ClaimKey, std::vector<std::string>> outgrown;
  for (const auto& [name, volume] : volumes_) {
    const ClaimReference* reserved = volume.Reservation();
    if (volume.IsTaken() || volume.missing || reserved == nullptr || !reserved->uid.empty()) {
      continue;
    }
    const auto claim = claims_.find(KeyOfReference(*reserved));
    if (claim == claims_.end() || claim->second.IsSettled() || claim->second.IsBeingDeleted() ||
        claim->second.decision.missing) {
      continue;
    }
    const PersistentVolumeClaim& object = *claim->second.object;
    if (object.spec.volume_name == name) {
      chosen[claim->first] = name;  // both name each other: no rule is asked
      continue;
    }
    const ClaimNeeds needs{object, claim->second.decision.storage_class, input_.node};
    if (!object.spec.volume_name.empty()) continue;
    if (const std::optional<Misfit> misfit = MisfitOfReserved(*volume.object, needs)) {
      const bool may_grow = misfit == Misfit::kTooSmall && MayGrow(*volume.object);
      if (may_grow) outgrown[claim->first].push_back(name);
      continue;
    }
    const auto [best, first] = chosen.emplace(claim->first, name);
    if (!first && IsBetterFit(*volume.object, *volumes_.at(best->second).object,
                              VolumeBindingMode::kWaitForFirstConsumer)) {
      best->second = name;
    }
  }
  // Of several that are too small, nothing says which one the claim had.
  for (const auto& [key, names] : outgrown) {
    if (names.size() == 1) chosen.emplace(key, names.front());
  }
  for (const auto& [key, name] : chosen) Bind(claims_.at(key), name, volumes_.at(name));
}

// What can be said of an unbound claim without looking at volumes.
void ClaimBinder::SettleUnready(ClaimState& claim) {
  if (claim.IsSettled()) return;
  if (claim.IsBeingDeleted()) {
    Wait(claim, ClaimWait::kBeingDeleted, "it is being deleted");
  } else if (claim.decision.missing) {
    Wait(claim, ClaimWait::kMissing, std::string(kLeftItsSource) + "; it is not bound while so");
  } else if (!input_.sources_complete) {
    Wait(claim, ClaimWait::kSources, kSourcesIncomplete);
  } else if (claim.WasBound() && claim.object->spec.volume_name.empty()) {
    Lose(claim, "it was bound, and does not say to which PersistentVolume");
  }
}

void ClaimBinder::BindNamed(ClaimState& claim) {
  const std::string& name = claim.object->spec.volume_name;
  if (claim.IsSettled() || name.empty() || WhyNotNamed(claim)) return;
  Bind(claim, name, volumes_.at(name));
}

std::vector<ClaimState*> ClaimBinder::SmallestFirst() {
  std::vector<ClaimState*> open;
  for (auto& [key, claim] : claims_) {
    if (!claim.IsSettled() && claim.object->spec.volume_name.empty()) open.push_back(&claim);
  }
  // Equal requests stay in the order of their keys.
  std::stable_sort(open.begin(), open.end(), [](const ClaimState* a, const ClaimState* b) {
    return a->object->spec.storage.request < b->object->spec.storage.request;
  });
  return open;
}

std::optional<Misfit> ClaimBinder::MisfitOfState(const VolumeState& volume,
                                                 const ClaimNeeds& needs) const {
  if (volume.IsTaken()) {
    switch (volume.binding->state) {
      case BindingState::kBound:
        return Misfit::kBound;
      case BindingState::kReleased:
        return Misfit::kReleased;
      case BindingState::kReclaimFailed:
        return Misfit::kFailed;
      case BindingState::kReclaimed:
        break;
    }
  }
  if (const ClaimReference* reserved = volume.Reservation()) {
    // What was kept for this very claim and did not fit was not bound to it before.
    const bool mine = KeyOfReference(*reserved) == KeyOfClaim(needs.claim) && reserved->uid.empty();
    if (!mine) return Misfit::kReserved;
    return volume.missing ? Misfit::kMissing : MisfitOfReserved(*volume.object, needs);
  }
  if (volume.missing) return Misfit::kMissing;
  if (volume.object->status.phase == PersistentVolumePhase::kFailed) return Misfit::kFailed;
  return MisfitOf(*volume.object, needs);
}

const StorageClass* ClaimBinder::ClassObjectOf(const ClaimState& claim) const {
  const auto found = classes_.find(claim.decision.storage_class);
  return found == classes_.end() ? nullptr : found->second;
}

VolumeBindingMode ClaimBinder::ModeOf(const ClaimState& claim) const {
  const StorageClass* storage_class = ClassObjectOf(claim);
  return storage_class == nullptr ? VolumeBindingMode::kImmediate
                                  : storage_class->volume_binding_mode;
}

bool ClaimBinder::WaitsForConsumer(const ClaimState& claim) const {
  return ModeOf(claim) == VolumeBindingMode::kWaitForFirstConsumer &&
         uses_.OfClaim(claim.decision.claim).empty();
}

void ClaimBinder::Match(ClaimState& claim) {
  if (WaitsForConsumer(claim)) return;
  const VolumeBindingMode mode = ModeOf(claim);
  const ClaimNeeds needs{*claim.object, claim.decision.storage_class, input_.node};
  VolumeState* best = nullptr;
  for (auto& [name, volume] : volumes_) {
    if (volume.object == nullptr || MisfitOfState(volume, needs)) continue;
    if (best == nullptr || IsBetterFit(*volume.object, *best->object, mode)) best = &volume;
  }
  if (best != nullptr) Bind(claim, best->object->metadata.name, *best);
}

BindingResult ClaimBinder::Collect() {
  BindingResult result;
  for (auto& [key, claim] : claims_) {
    claim.decision.protection = ProtectionOf(claim, uses_);
    result.claims.push_back(std::move(claim.decision));
  }
  for (const auto& [name, volume] : volumes_) {
    if (volume.object != nullptr)
      result.volumes.push_back(DecideVolume(name, volume, uses_, input_));
    if (volume.binding) result.bindings.push_back(*volume.binding);
  }
  return result;
}

std::string ToString(const ClaimKey& key) { return key.name_space + "/" + key.name; }

ClaimKey KeyOfClaim(const PersistentVolumeClaim& claim) {
  return {claim.metadata.name_space, claim.metadata.name};
}

ObjectKey ObjectKeyOf(const ClaimKey& claim) {
  return {ObjectKind::kPersistentVolumeClaim, claim.name_space, claim.name};
}

ReclaimAction ReclaimActionOf(ReclaimPolicy policy) {
  switch (policy) {
    case ReclaimPolicy::kRetain:
      return ReclaimAction::kNone;
    case ReclaimPolicy::kDelete:
      return ReclaimAction::kDelete;
    case ReclaimPolicy::kRecycle:
      return ReclaimAction::kRecycle;
  }
  return ReclaimAction::kNone;
}

BindingResult DecideBindings(const BindingInput& input) { return ClaimBinder(input).Run(); }

}  // namespace volumed
