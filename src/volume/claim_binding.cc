#include "volume/claim_binding.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "volume/binding_state.h"

namespace volumed {
namespace {

std::string ClassText(const std::string& name) {
  return name.empty() ? "no class" : "class \"" + name + "\"";
}

class Binder {
 public:
  explicit Binder(const BindingInput& input)
      : input_(input), default_class_(DefaultClass(input.classes)), uses_(input.uses) {
    for (const PersistentVolumePtr& volume : input.volumes) {
      VolumeState& state = volumes_[volume->metadata.name];
      state.object = volume;
      state.missing = input.missing_volumes.contains(volume->metadata.name);
    }
    for (const PersistentVolumeClaimPtr& claim : input.claims) AddClaim(claim);
    for (const StorageClassPtr& one : input.classes) classes_[one->metadata.name] = one.get();
  }

  BindingResult Run() {
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

 private:
  bool HasEnded(const ClaimKey& claim, const std::string& uid) const {
    return input_.ended.contains({claim, uid});
  }

  bool IsForgotten(const ClaimBinding& record) const {
    return input_.ended_volumes.contains(record.volume_name);
  }

  void AddClaim(const PersistentVolumeClaimPtr& object) {
    // What has ended comes back from nowhere, whatever a source says.
    if (HasEnded(KeyOfClaim(*object), object->metadata.uid)) return;
    ClaimState& claim = claims_[KeyOfClaim(*object)];
    claim.decision.missing = input_.missing_claims.contains(KeyOfClaim(*object));
    claim.object = object;
    claim.decision.claim = KeyOfClaim(*object);
    claim.decision.uid = object->metadata.uid;
    claim.decision.storage_class = ClassOf(*object, default_class_);
  }

  // Null when there is no such claim, or another one of its name.
  ClaimState* SameClaim(const ClaimKey& key, const std::string& uid) {
    const auto found = claims_.find(key);
    return found == claims_.end() || found->second.decision.uid != uid ? nullptr : &found->second;
  }

  // The pods that still hold the volume of a claim that is gone.
  std::set<std::string> PodsHolding(const std::string& volume_name, const ClaimKey& claim) const {
    std::set<std::string> pods = uses_.OfVolume(volume_name);
    // A pod that has mounted nothing yet means the claim that has the name now.
    if (pods.empty() && !claims_.contains(claim)) pods = uses_.WaitingFor(claim);
    return pods;
  }

  void Bind(ClaimState& claim, const std::string& volume_name, VolumeState& volume) {
    claim.decision.phase = PersistentVolumeClaimPhase::kBound;
    claim.decision.volume_name = volume_name;
    claim.decision.newly_bound = true;
    claim.decision.wait = ClaimWait::kNone;
    claim.decision.reason = WhyMissing(claim);
    volume.binding = {claim.decision.claim, claim.decision.uid, volume_name, BindingState::kBound};
    volume.note.clear();
  }

  static std::string WhyMissing(const ClaimState& claim) {
    if (!claim.decision.missing) return "";
    return claim.IsBeingDeleted() ? "it has left its source" : kLeftItsSource;
  }

  static void Wait(ClaimState& claim, ClaimWait wait, std::string reason) {
    claim.decision.wait = wait;
    claim.decision.reason = std::move(reason);
  }

  static void Lose(ClaimState& claim, std::string reason) {
    claim.decision.phase = PersistentVolumeClaimPhase::kLost;
    Wait(claim, ClaimWait::kLost, std::move(reason));
  }

  void ApplyRecords();
  void ApplyBound(const ClaimBinding& record, VolumeState& volume);
  void ApplyReleased(const ClaimBinding& record, VolumeState& volume);
  void ApplyReclaimed(const ClaimBinding& record, VolumeState& volume);
  static void HoldForMissing(ClaimBinding binding, VolumeState& volume);
  void ReleaseOrHold(ClaimBinding binding, VolumeState& volume);
  static bool MayReturn(const ClaimState& claim, const VolumeState& volume,
                        const ClaimBinding& record);
  void BindByUid();
  void BindReserved();
  bool MayGrow(const PersistentVolume& volume) const;
  void SettleUnready(ClaimState& claim);
  void BindNamed(ClaimState& claim);
  struct Obstacle {
    ClaimWait wait;
    std::string reason;
  };
  std::optional<Obstacle> WhyNotNamed(const ClaimState& claim) const;
  std::string WhyTaken(const std::string& name, const VolumeState& volume,
                       const ClaimState& claim) const;
  std::string WhyUnfit(const PersistentVolume& volume, const ClaimState& claim,
                       Misfit misfit) const;
  std::vector<ClaimState*> SmallestFirst();
  VolumeBindingMode ModeOf(const ClaimState& claim) const;
  bool WaitsForConsumer(const ClaimState& claim) const;
  void Match(ClaimState& claim);
  void Explain(ClaimState& claim) const;
  void ExplainNoMatch(ClaimState& claim) const;
  std::string UnfitOfClass(const ClaimNeeds& needs) const;
  const StorageClass* ClassObjectOf(const ClaimState& claim) const;
  std::optional<Misfit> MisfitOfState(const VolumeState& volume, const ClaimNeeds& needs) const;
  BindingResult Collect();

  const BindingInput& input_;
  const StorageClass* const default_class_;
  std::map<std::string, VolumeState> volumes_;
  std::map<ClaimKey, ClaimState> claims_;
  std::map<std::string, const StorageClass*> classes_;
  const ClaimUses uses_;
};

void Binder::ApplyRecords() {
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

void Binder::ApplyBound(const ClaimBinding& record, VolumeState& volume) {
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
void Binder::HoldForMissing(ClaimBinding binding, VolumeState& volume) {
  binding.state = BindingState::kBound;
  volume.note = "its claim is missing: " + std::string(kLeftItsSource);
  volume.binding = std::move(binding);
}

// The claim of `binding` has ended.
void Binder::ReleaseOrHold(ClaimBinding binding, VolumeState& volume) {
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
bool Binder::MayReturn(const ClaimState& claim, const VolumeState& volume,
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

void Binder::ApplyReleased(const ClaimBinding& record, VolumeState& volume) {
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

void Binder::ApplyReclaimed(const ClaimBinding& record, VolumeState& volume) {
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
void Binder::BindByUid() {
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

// What is known of classes counts once every source has delivered.
bool Binder::MayGrow(const PersistentVolume& volume) const {
  const auto found = classes_.find(ClassOf(volume));
  return input_.sources_complete &&
         MayGrowForClaim(volume, found == classes_.end() ? nullptr : found->second);
}

// Volumes whose manifest names a claim, whatever its uid.
void Binder::BindReserved() {
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
void Binder::SettleUnready(ClaimState& claim) {
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

void Binder::BindNamed(ClaimState& claim) {
  const std::string& name = claim.object->spec.volume_name;
  if (claim.IsSettled() || name.empty() || WhyNotNamed(claim)) return;
  Bind(claim, name, volumes_.at(name));
}

std::optional<Binder::Obstacle> Binder::WhyNotNamed(const ClaimState& claim) const {
  const std::string& name = claim.object->spec.volume_name;
  const auto found = volumes_.find(name);
  if (found == volumes_.end() || found->second.object == nullptr) {
    return Obstacle{ClaimWait::kVolumeMissing,
                    "PersistentVolume " + name + ", which it names, does not exist"};
  }
  std::string taken = WhyTaken(name, found->second, claim);
  if (!taken.empty()) return Obstacle{ClaimWait::kVolumeTaken, std::move(taken)};
  if (found->second.missing) {
    return Obstacle{ClaimWait::kVolumeMissing,
                    "PersistentVolume " + name + ", which it names, is missing: " + kLeftItsSource};
  }
  if (claim.WasBound()) return std::nullopt;  // the rules were asked then
  const PersistentVolume& volume = *found->second.object;
  const ClaimNeeds needs{*claim.object, claim.decision.storage_class, input_.node, MayGrow(volume)};
  const std::optional<Misfit> misfit = MisfitOfNamed(volume, needs);
  if (!misfit) return std::nullopt;
  return Obstacle{ClaimWait::kVolumeUnfit, WhyUnfit(volume, claim, *misfit)};
}

// "" when the volume is free for the claim that names it.
std::string Binder::WhyTaken(const std::string& name, const VolumeState& volume,
                             const ClaimState& claim) const {
  const std::string which = "PersistentVolume " + name + ", which it names, ";
  const auto claim_text = [&claim](const ClaimKey& key) {
    const bool namesake = key == claim.decision.claim;
    return (namesake ? "an earlier claim " : "claim ") + ToString(key);
  };
  if (volume.IsTaken()) {
    const bool bound = volume.binding->state == BindingState::kBound;
    return which + (bound ? "is bound to " : "holds the data of ") +
           claim_text(volume.binding->claim);
  }
  if (const ClaimReference* reserved = volume.Reservation()) {
    return which + "is kept for " + claim_text(KeyOfReference(*reserved));
  }
  return "";
}

std::string Binder::WhyUnfit(const PersistentVolume& volume, const ClaimState& claim,
                             Misfit misfit) const {
  std::string text = "PersistentVolume " + volume.metadata.name + ", which it names, is " +
                     std::string(MisfitText(misfit));
  if (misfit == Misfit::kTooSmall) {
    text += ": " + volume.spec.capacity.String() + " for a request of " +
            claim.object->spec.storage.request.String();
  } else if (misfit == Misfit::kStorageClass) {
    text += ": it has " + ClassText(ClassOf(volume)) + ", the claim " +
            ClassText(claim.decision.storage_class);
    const bool by_default = claim.decision.storage_class != ClassOf(*claim.object, nullptr);
    if (by_default) text += ", which is the default";
  }
  return text;
}

std::vector<ClaimState*> Binder::SmallestFirst() {
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

std::optional<Misfit> Binder::MisfitOfState(const VolumeState& volume,
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

const StorageClass* Binder::ClassObjectOf(const ClaimState& claim) const {
  const auto found = classes_.find(claim.decision.storage_class);
  return found == classes_.end() ? nullptr : found->second;
}

VolumeBindingMode Binder::ModeOf(const ClaimState& claim) const {
  const StorageClass* storage_class = ClassObjectOf(claim);
  return storage_class == nullptr ? VolumeBindingMode::kImmediate
                                  : storage_class->volume_binding_mode;
}

bool Binder::WaitsForConsumer(const ClaimState& claim) const {
  return ModeOf(claim) == VolumeBindingMode::kWaitForFirstConsumer &&
         uses_.OfClaim(claim.decision.claim).empty();
}

void Binder::Match(ClaimState& claim) {
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

void Binder::Explain(ClaimState& claim) const {
  if (claim.IsSettled()) return;
  if (claim.object->spec.volume_name.empty()) return ExplainNoMatch(claim);
  claim.decision.volume_name = claim.object->spec.volume_name;
  std::optional<Obstacle> obstacle = WhyNotNamed(claim);
  if (!obstacle) return;  // unreachable: it would be bound
  if (claim.WasBound()) return Lose(claim, std::move(obstacle->reason));
  Wait(claim, obstacle->wait, std::move(obstacle->reason));
}

// Volumes of the class that nobody has, and that do not fit all the same; "" if there is none. That
// others have theirs is no news.
std::string Binder::UnfitOfClass(const ClaimNeeds& needs) const {
  std::map<Misfit, size_t> misfits;
  for (const auto& [name, volume] : volumes_) {
    if (volume.object == nullptr || ClassOf(*volume.object) != needs.storage_class) continue;
    const std::optional<Misfit> misfit = MisfitOfState(volume, needs);
    if (misfit && *misfit != Misfit::kBound) ++misfits[*misfit];
  }
  return misfits.empty() ? "" : ", as " + NoMatchText(misfits);
}

void Binder::ExplainNoMatch(ClaimState& claim) const {
  const std::string& class_name = claim.decision.storage_class;
  if (WaitsForConsumer(claim)) {
    return Wait(claim, ClaimWait::kFirstConsumer,
                "it waits for the first pod on this node that uses it: class \"" + class_name +
                    "\" binds then (WaitForFirstConsumer)");
  }
  const ClaimNeeds needs{*claim.object, class_name, input_.node};
  std::map<Misfit, size_t> misfits;
  for (const auto& [name, volume] : volumes_) {
    if (volume.object == nullptr) continue;
    if (const std::optional<Misfit> misfit = MisfitOfState(volume, needs)) ++misfits[*misfit];
  }
  const std::string no_match = NoMatchText(misfits) + " (" + ClassText(class_name) + ", " +
                               claim.object->spec.storage.request.String() + ")";
  const StorageClass* storage_class = ClassObjectOf(claim);
  if (storage_class != nullptr && storage_class->provisioner != kNoProvisioner) {
    if (input_.missing_classes.contains(class_name)) {
      return Wait(claim, ClaimWait::kClassMissing,
                  no_match + "; none is provisioned, as StorageClass " + class_name +
                      " is missing: " + kLeftItsSource);
    }
    claim.decision.provisioner = storage_class->provisioner;
    return Wait(claim, ClaimWait::kProvisioning,
                storage_class->provisioner + " is to provision one" + UnfitOfClass(needs));
  }
  const bool is_known = storage_class != nullptr || class_name.empty() ||
                        std::any_of(volumes_.begin(), volumes_.end(), [&](const auto& one) {
                          const PersistentVolumePtr& volume = one.second.object;
                          return volume != nullptr && volume->spec.storage_class_name == class_name;
                        });
  Wait(claim, ClaimWait::kNoMatch,
       is_known ? no_match : no_match + "; there is no StorageClass " + class_name);
}

BindingResult Binder::Collect() {
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

}  // namespace

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

BindingResult DecideBindings(const BindingInput& input) { return Binder(input).Run(); }

}  // namespace volumed
