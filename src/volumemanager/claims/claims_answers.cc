// Claims: the answers to others.
#include "kube/ephemeral_claim.h"
#include "volumemanager/claims/claims.h"
#include "volumemanager/claims/provisioning.h"
#include "volumemanager/claims/refused_objects.h"

namespace volumed {
namespace {

constexpr const char* kAdministrator = "an administrator";
constexpr const char* kNobody = "nobody: retried";

// Says who can bring about what the claim waits for.
std::string WhoMustAct(const ClaimDecision& decision) {
  std::string owner = "the owner of claim " + ToString(decision.claim);
  switch (decision.wait) {
    case ClaimWait::kNone:
    case ClaimWait::kSources:
    case ClaimWait::kFirstConsumer:
      return kNobody;
    case ClaimWait::kProvisioning:
      return "provisioner " + decision.provisioner;
    case ClaimWait::kNoMatch:
    case ClaimWait::kVolumeMissing:
    case ClaimWait::kClassMissing:
    case ClaimWait::kLost:
      return kAdministrator;
    case ClaimWait::kVolumeTaken:
    case ClaimWait::kVolumeUnfit:
    case ClaimWait::kBeingDeleted:
    case ClaimWait::kMissing:
      return owner;
  }
  __builtin_unreachable();
}

std::string ClaimOwner(const ObjectKey& claim) {
  return "the owner of claim " + claim.name_space + "/" + claim.name;
}

// Source: desired_state_of_world_populator.go@v1.36.2 (createVolumeSpec).
WantedProblem ProblemOfClaim(const ObjectKey& claim, const char* step, Code code,
                             const std::string& text, std::string who) {
  return {step,
          Error::NotApplied(
              code, "error processing PVC " + claim.name_space + "/" + claim.name + ": " + text),
          std::move(who)};
}

}  // namespace

// Says that these claims and volumes wait for an unreadable record, and not for sources.
void Claims::NameUnreadable(BindingResult& result) const {
  const auto& [record, why] = *unreadable_.begin();
  const std::string text = "the record " + record + " cannot be read (" + why +
                           "): until it is repaired or given up nothing is bound or reclaimed; see "
                           "`volumectl records`";
  for (ClaimDecision& claim : result.claims) {
    if (claim.wait == ClaimWait::kSources) claim.reason = text;
  }
  for (VolumeDecision& volume : result.volumes) {
    if (volume.protection.held_by == "its data is not reclaimed yet") volume.reason = text;
  }
}

// Manifests still have these refused volumes, and people see them there; so the reason names the
// refusal.
void Claims::NameRefused(BindingResult& result) const {
  const std::map<ObjectKey, ObjectOrigin>& refused = parts_.catalog.Refused();
  for (ClaimDecision& claim : result.claims) {
    if (claim.wait != ClaimWait::kVolumeMissing || refused.empty()) continue;
    const PersistentVolumeClaimPtr object =
        parts_.catalog.FindPersistentVolumeClaim(claim.claim.name_space, claim.claim.name);
    if (object == nullptr) continue;
    const std::string& name = object->spec.volume_name;
    const auto found = refused.find({ObjectKind::kPersistentVolume, "", name});
    if (found == refused.end()) continue;
    claim.reason = "PersistentVolume " + name + ", which it names, was " +
                   RefusedText(found->first.kind, found->second);
  }
}

// A driver that is to make the volume may be known here, and something that it needs be missing.
void Claims::NameMissingMakers(BindingResult& result) const {
  for (ClaimDecision& claim : result.claims) {
    const std::string why = parts_.provisioning.WhyNobodyMakes(claim);
    if (!why.empty()) claim.reason += ": " + why;
  }
}

void Claims::NameUnseen(BindingResult& result) const {
  const std::string why = parts_.readiness.WhyUnseen();
  if (why.empty()) return;
  for (VolumeDecision& volume : result.volumes) {
    if (volume.reclaim != ReclaimAction::kNone) volume.reason = why;
  }
  for (ClaimDecision& claim : result.claims) {
    if (parts_.provisioning.IsOurs(claim)) claim.reason += ": " + why;
  }
}

std::optional<WantedProblem> Claims::UnseenProblem() const {
  const std::string why = parts_.readiness.WhyUnseen();
  if (why.empty()) return std::nullopt;
  return WantedProblem{"WaitForSources", Error::NotApplied(Code::kUnavailable, why),
                       parts_.readiness.IsUnseenForAFault() ? kAdministrator : kNobody};
}

ClaimKey Claims::KeyOf(const Pod& pod, const PodVolume& volume) {
  const auto* claim = std::get_if<PersistentVolumeClaimVolumeSource>(&volume.source);
  return {pod.metadata.name_space,
          claim == nullptr ? EphemeralClaimName(pod, volume) : claim->claim_name};
}

// Of a claim about which nothing was decided yet.
WantedProblem Claims::ProblemOfUndecided(const ObjectKey& claim) const {
  if (!parts_.readiness.Ready()) {
    return ProblemOfClaim(claim, "WaitForClaim", Code::kUnavailable,
                          "not every source has delivered a complete list yet", kNobody);
  }
  if (parts_.catalog.FindPersistentVolumeClaim(claim.name_space, claim.name) != nullptr) {
    return ProblemOfClaim(claim, "WaitForClaim", Code::kUnavailable, "its volume is being chosen",
                          kNobody);
  }
  const auto refused = parts_.catalog.Refused().find(claim);
  if (refused != parts_.catalog.Refused().end()) {
    return ProblemOfClaim(claim, "WaitForClaim", Code::kNotFound,
                          "it was " + RefusedText(claim.kind, refused->second), ClaimOwner(claim));
  }
  return ProblemOfClaim(claim, "WaitForClaim", Code::kNotFound, "there is no such claim",
                        ClaimOwner(claim));
}

std::optional<WantedProblem> Claims::ProblemOf(const ObjectKey& claim,
                                               const ClaimDecision* decision,
                                               const Bound* bound) const {
  if (decision == nullptr) return ProblemOfUndecided(claim);
  if (decision->wait == ClaimWait::kSources && parts_.readiness.Ready() && !unreadable_.empty()) {
    const auto& [record, reason] = *unreadable_.begin();
    return ProblemOfClaim(
        claim, "ReadRecord", Code::kDataLoss,
        "the record " + record + " cannot be read (" + reason +
            "): until it is repaired, no other claim is bound; see `volumectl records`",
        kAdministrator);
  }
  if (IsLeaving(claim)) {
    const std::string& held_by = decision->protection.held_by;
    return ProblemOfClaim(
        claim, "WaitForClaim", Code::kFailedPrecondition,
        "PVC is being deleted" + (held_by.empty() ? "" : ": it is still " + held_by),
        ClaimOwner(claim));
  }
  const std::string made = ProvisionedVolumeName(decision->uid);
  if (parts_.provisioning.IsOurs(*decision) && HasLeft({claim, decision->uid}, made)) {
    // A claim of this uid was there before, and was deleted. Nothing is made under the name of its
    // volume as long as that one is there.
    const bool failed = bound_.at(made).record.binding.state == BindingState::kReclaimFailed;
    return ProblemOfClaim(
        claim, "Provision", Code::kFailedPrecondition,
        "PVC is not bound: PersistentVolume " + made +
            ", which has the name of the volume that is to be made for it, is that of a "
            "deleted claim with its uid, and has to be deleted first",
        failed ? kAdministrator : kNobody);
  }
  if (const auto unseen = UnseenProblem(); unseen && parts_.provisioning.IsOurs(*decision)) {
    return ProblemOfClaim(claim, unseen->step.c_str(), Code::kUnavailable,
                          "PVC is not bound: " + unseen->error.message(), unseen->who_must_act);
  }
  if (auto provisioning = parts_.provisioning.ProblemOf(*decision)) return provisioning;
  if (decision->phase != PersistentVolumeClaimPhase::kBound || bound == nullptr) {
    const bool may_come = parts_.provisioning.WhyNobodyMakes(*decision).empty();
    // The pod that asks is the consumer, and the claim is decided anew in a moment.
    const bool passes = decision->wait == ClaimWait::kFirstConsumer;
    return ProblemOfClaim(
        claim, "WaitForBinding", passes ? Code::kUnavailable : Code::kFailedPrecondition,
        "PVC is not bound: " + decision->reason, may_come ? WhoMustAct(*decision) : kAdministrator);
  }
  if (!bound->durable) {
    return ProblemOfClaim(claim, "RecordBinding", Code::kUnavailable,
                          "its binding is being recorded", kNobody);
  }
  if (bound->volume == nullptr) {
    return ProblemOfClaim(
        claim, "FindVolume", Code::kUnavailable,
        "PersistentVolume " + bound->record.binding.volume_name + " is not known yet", kNobody);
  }
  return std::nullopt;
}

Status Claims::CheckOwner(const Pod& pod, const ClaimKey& claim) const {
  const Bound* bound = BoundTo(claim);
  if (IsOf(pod, bound)) return OkStatus();
  if (const auto made = parts_.catalog.FindPersistentVolumeClaim(claim.name_space, claim.name)) {
    return CheckEphemeralClaimOwner(pod, *made);
  }
  if (!IsOfOther(pod, claim, of_pods_)) return OkStatus();
  PersistentVolumeClaim others;
  others.metadata.name_space = claim.name_space;
  others.metadata.name = claim.name;
  return CheckEphemeralClaimOwner(pod, others);
}

ResolvedClaim Claims::Resolve(const Pod& pod, const PodVolume& volume) {
  const ClaimKey key = KeyOf(pod, volume);
  ResolvedClaim resolved;
  resolved.claim = ObjectKeyOf(key);
  resolved.objects = {resolved.claim};
  if (std::holds_alternative<EphemeralVolumeSource>(volume.source)) {
    const Status owned = CheckOwner(pod, key);
    if (!owned.ok()) {
      resolved.problem = WantedProblem{"CheckClaimOwner", owned.error(), ""};
      return resolved;
    }
  }
  const Bound* bound = BoundTo(key);
  resolved.problem = ProblemOf(resolved.claim, FindClaim(key), bound);
  if (bound != nullptr) resolved.claim_uid = bound->record.binding.claim_uid;
  const bool has_it = bound != nullptr && bound->durable && bound->volume != nullptr &&
                      hooks_.has_volume({pod.uid(), SpecName(bound->record.binding.volume_name)});
  // A pod keeps what it has, whatever becomes of the claim.
  if (has_it) resolved.problem.reset();
  if (!resolved.problem) resolved.volume = bound->volume;
  return resolved;
}

std::set<std::string> Claims::BoundVolumes() const {
  std::set<std::string> names = parts_.provisioning.Volumes();
  for (const auto& [name, bound] : bound_) names.insert(name);
  for (const auto& [name, reason] : quarantined_) names.insert(name);
  return names;
}

std::vector<PersistentVolumeClaimPtr> Claims::MadeForPods() const {
  std::vector<PersistentVolumeClaimPtr> made;
  for (const auto& [id, of_pod] : of_pods_) made.push_back(of_pod.claim);
  return made;
}

PersistentVolumeClaimPtr Claims::MadeForPod(const ClaimKey& claim) const {
  PersistentVolumeClaimPtr made;
  const auto first = of_pods_.lower_bound({claim, ""});
  for (auto at = first; at != of_pods_.end() && at->first.claim == claim; ++at) {
    made = at->second.claim;
  }
  return made;
}

std::string Claims::BoundUid(const ClaimKey& claim) const {
  const Bound* bound = BoundTo(claim);
  return bound == nullptr ? "" : bound->record.binding.claim_uid;
}

std::optional<ObjectKey> Claims::UndecidedClaimOf(const std::string& volume_name) const {
  const auto found = bound_.find(volume_name);
  if (found == bound_.end()) return std::nullopt;
  const Bound& bound = found->second;
  if (bound.removing || bound.record.binding.state != BindingState::kBound) return std::nullopt;
  if (decided_with_all_ && bound.durable) return std::nullopt;
  return ObjectKeyOf(bound.record.binding.claim);
}

bool Claims::IsBound(const ObjectKey& object) const {
  if (object.kind == ObjectKind::kPersistentVolumeClaim) {
    return volume_of_.contains({object.name_space, object.name});
  }
  const auto bound = bound_.find(object.name);
  return object.kind == ObjectKind::kPersistentVolume && bound != bound_.end() &&
         bound->second.record.binding.state == BindingState::kBound && !bound->second.removing;
}

bool Claims::Knows(const DeletedObjects::Id& object) const {
  const auto& [key, uid] = object;
  for (const auto& [name, bound] : bound_) {
    if (key.kind == ObjectKind::kPersistentVolume) {
      if (key.name == name && bound.volume && bound.volume->metadata.uid == uid) return true;
      continue;
    }
    const ClaimBinding& binding = bound.record.binding;
    const bool open = binding.state == BindingState::kBound || !bound.durable;
    if (open && ObjectKeyOf(binding.claim) == key && binding.claim_uid == uid) return true;
  }
  return false;
}

bool Claims::HasLeft(const DeletedObjects::Id& claim, const std::string& volume_name) const {
  const auto bound = bound_.find(volume_name);
  if (bound == bound_.end()) return false;
  const ClaimBinding& binding = bound->second.record.binding;
  const bool has_it = binding.state == BindingState::kBound &&
                      ObjectKeyOf(binding.claim) == claim.first &&
                      binding.claim_uid == claim.second;
  return !has_it;
}

const ClaimDecision* Claims::FindClaim(const ClaimKey& claim) const {
  const auto found = claims_.find(claim);
  return found == claims_.end() ? nullptr : &found->second;
}

const VolumeDecision* Claims::FindVolume(const std::string& volume_name) const {
  const auto found = volumes_.find(volume_name);
  return found == volumes_.end() ? nullptr : &found->second;
}

PersistentVolumePtr Claims::FindVolumeObject(const std::string& volume_name) const {
  PersistentVolumePtr known = parts_.catalog.FindPersistentVolume(volume_name);
  if (known != nullptr) return known;
  const auto found = bound_.find(volume_name);
  return found == bound_.end() ? nullptr : found->second.volume;
}

bool Claims::ClaimGoes(const std::string& volume_name) const {
  const auto bound = bound_.find(volume_name);
  if (bound == bound_.end() || bound->second.removing) return false;
  const ClaimBinding& binding = bound->second.record.binding;
  switch (binding.state) {
    case BindingState::kBound:
      return parts_.deleted.Find({ObjectKeyOf(binding.claim), binding.claim_uid}) != nullptr;
    case BindingState::kReleased:
    case BindingState::kReclaimFailed:
      return true;
    case BindingState::kReclaimed:
      return false;
  }
  return false;
}

const FailureHistory* Claims::ReclaimFailure(const std::string& volume_name) const {
  const auto found = bound_.find(volume_name);
  return found == bound_.end() || !found->second.failure ? nullptr : &*found->second.failure;
}

}  // namespace volumed
