#include "volumemanager/views/storage_views.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/log.h"
#include "kube/ephemeral_claim.h"
#include "kube/storage_enums.h"
#include "operation/provision_operations.h"
#include "operation/reclaim_operations.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "volume/claim_resize.h"
#include "volumemanager/claims/claims.h"
#include "volumemanager/claims/object_commands.h"
#include "volumemanager/claims/provisioning.h"
#include "volumemanager/claims/reclaim_check.h"
#include "volumemanager/claims/refused_objects.h"
#include "volumemanager/claims/storage_expander.h"

namespace volumed {

namespace {

template <typename E>
std::string Text(E value) {
  return std::string(EnumText(value));
}

std::vector<std::string> Texts(const std::vector<AccessMode>& modes) {
  std::vector<std::string> texts;
  texts.reserve(modes.size());
  for (const AccessMode mode : modes) texts.push_back(Text(mode));
  return texts;
}

PersistentVolumeView RefusedVolume(const ObjectKey& key, const ObjectOrigin& origin) {
  PersistentVolumeView view;
  view.name = key.name;
  view.phase = kRefusedPhase;
  view.reason = RefusedText(key.kind, origin);
  return view;
}

PersistentVolumeClaimView RefusedClaim(const ObjectKey& key, const ObjectOrigin& origin) {
  PersistentVolumeClaimView view;
  view.ns = key.name_space;
  view.name = key.name;
  view.phase = kRefusedPhase;
  view.reason = RefusedText(key.kind, origin);
  return view;
}

StorageStatus StatusUnder(const Protection& protection, std::string_view phase) {
  StorageStatus status;
  status.phase = protection.deletion_requested ? "Terminating" : phase;
  status.held_by = protection.held_by;
  return status;
}

}  // namespace

std::vector<PersistentVolumeView> StorageViews::PersistentVolumes() const {
  parts_.claims.DecideNow();
  std::map<std::string, PersistentVolumePtr> volumes;
  for (const PersistentVolumePtr& volume : parts_.catalog.PersistentVolumes()) {
    volumes[volume->metadata.name] = volume;
  }
  for (const auto& [name, decision] : parts_.claims.volumes()) {
    if (!volumes.contains(name)) volumes[name] = parts_.claims.FindVolumeObject(name);
  }
  std::vector<PersistentVolumeView> views;
  for (const auto& [name, volume] : volumes) {
    if (volume != nullptr) views.push_back(BuildVolume(*volume));
  }
  for (PersistentVolumeView& undoing : Undoings()) {
    if (!volumes.contains(undoing.name)) views.push_back(std::move(undoing));
  }
  for (const auto& [key, origin] : parts_.catalog.Refused()) {
    if (key.kind != ObjectKind::kPersistentVolume || volumes.contains(key.name)) continue;
    views.push_back(RefusedVolume(key, origin));
  }
  std::sort(views.begin(), views.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return views;
}

std::optional<PersistentVolumeView> StorageViews::FindPersistentVolume(
    const std::string& name) const {
  parts_.claims.DecideNow();
  PersistentVolumePtr volume = parts_.catalog.FindPersistentVolume(name);
  const bool is_decided = parts_.claims.FindVolume(name) != nullptr;
  if (volume == nullptr && is_decided) volume = parts_.claims.FindVolumeObject(name);
  if (volume != nullptr) return BuildVolume(*volume);
  if (is_decided) return std::nullopt;
  for (PersistentVolumeView& undoing : Undoings()) {
    if (undoing.name == name) return std::move(undoing);
  }
  const auto refused = parts_.catalog.Refused().find({ObjectKind::kPersistentVolume, "", name});
  if (refused == parts_.catalog.Refused().end()) return std::nullopt;
  return RefusedVolume(refused->first, refused->second);
}

PersistentVolumeView StorageViews::BuildVolume(const PersistentVolume& volume) const {
  PersistentVolumeView view;
  view.name = volume.metadata.name;
  view.capacity = volume.spec.capacity.String();
  view.access_modes = Texts(volume.spec.access_modes);
  view.reclaim_policy = Text(volume.spec.reclaim_policy);
  view.phase = Text(PersistentVolumePhase::kPending);
  view.storage_class = volume.spec.storage_class_name;
  view.volume_mode = Text(volume.spec.volume_mode);
  view.created_unix_ms = volume.metadata.creation_unix_millis.value_or(0);
  if (const VolumeDecision* decision = parts_.claims.FindVolume(view.name)) {
    view.phase = Text(decision->phase);
    view.reason = decision->reason;
    view.deleting = decision->protection.deletion_requested;
    view.missing = decision->missing;
    if (decision->claim) view.claim = ToString(*decision->claim);
  } else {
    view.reason = parts_.claims.WhyGivenToNobody(view.name);
  }
  view.problem = ReclaimProblem(view.name);
  if (view.problem) view.reason = view.problem->message;
  AddAwaited(ReclaimKey(view.name), view.reason);
  return view;
}

void StorageViews::AddAwaited(const OperationKey& key, std::string& reason) const {
  const std::optional<RunningOperation> running = parts_.operations.FindRunning(key);
  if (!running || running->awaited.whom.empty()) return;
  reason += (reason.empty() ? "" : "; ") + running->operation + " awaits " + running->awaited.whom +
            " since " + WallTimeText(running->awaited.since_unix_ms);
}

std::vector<PersistentVolumeClaimView> StorageViews::PersistentVolumeClaims() const {
  parts_.claims.DecideNow();
  std::map<ClaimKey, PersistentVolumeClaimView> by_name;
  for (const PersistentVolumeClaimPtr& claim : parts_.catalog.PersistentVolumeClaims()) {
    by_name[KeyOfClaim(*claim)] = BuildClaim(*claim);
  }
  // If a source has a claim with the name of a pod's own claim, it is not used as long as the pod's
  // claim exists.
  for (const PersistentVolumeClaimPtr& claim : parts_.claims.MadeForPods()) {
    by_name[KeyOfClaim(*claim)] = BuildClaimOfPod(*claim);
  }
  for (const auto& [key, origin] : parts_.catalog.Refused()) {
    const ClaimKey name{key.name_space, key.name};
    if (key.kind != ObjectKind::kPersistentVolumeClaim || by_name.contains(name)) continue;
    by_name[name] = RefusedClaim(key, origin);
  }
  std::vector<PersistentVolumeClaimView> views;
  views.reserve(by_name.size());
  for (auto& [name, view] : by_name) views.push_back(std::move(view));
  return views;
}

std::optional<PersistentVolumeClaimView> StorageViews::FindPersistentVolumeClaim(
    const ClaimKey& claim) const {
  parts_.claims.DecideNow();
  if (const auto made = parts_.claims.MadeForPod(claim)) return BuildClaimOfPod(*made);
  const auto known = parts_.catalog.FindPersistentVolumeClaim(claim.name_space, claim.name);
  if (known != nullptr) return BuildClaim(*known);
  const auto refused = parts_.catalog.Refused().find(
      {ObjectKind::kPersistentVolumeClaim, claim.name_space, claim.name});
  if (refused == parts_.catalog.Refused().end()) return std::nullopt;
  return RefusedClaim(refused->first, refused->second);
}

PersistentVolumeClaimView StorageViews::BuildClaimOfPod(const PersistentVolumeClaim& claim) const {
  PersistentVolumeClaimView view = BuildClaim(claim);
  view.uid = ShownUid(claim);
  return view;
}

std::vector<ClaimKey> StorageViews::ClaimsThatWaitIn(const std::string& storage_class) const {
  return ClaimsOf(storage_class, PersistentVolumeClaimPhase::kPending);
}

std::vector<ClaimKey> StorageViews::BoundClaimsOf(const std::string& storage_class) const {
  return ClaimsOf(storage_class, PersistentVolumeClaimPhase::kBound);
}

std::vector<ClaimKey> StorageViews::ClaimsOf(const std::string& storage_class,
                                             PersistentVolumeClaimPhase phase) const {
  parts_.claims.DecideNow();
  std::set<ClaimKey> claims;
  const auto note = [&](const PersistentVolumeClaimPtr& claim) {
    const ClaimDecision* decision = parts_.claims.FindClaim(KeyOfClaim(*claim));
    if (decision == nullptr || decision->storage_class != storage_class) return;
    if (decision->phase != phase) return;
    if (!decision->protection.deletion_requested) claims.insert(decision->claim);
  };
  for (const PersistentVolumeClaimPtr& claim : parts_.catalog.PersistentVolumeClaims()) note(claim);
  for (const PersistentVolumeClaimPtr& claim : parts_.claims.MadeForPods()) note(claim);
  return {claims.begin(), claims.end()};
}

PersistentVolumeClaimView StorageViews::BuildClaim(const PersistentVolumeClaim& claim) const {
  PersistentVolumeClaimView view;
  view.ns = claim.metadata.name_space;
  view.name = claim.metadata.name;
  view.uid = claim.metadata.uid;
  for (const OwnerReference& owner : claim.metadata.owner_references) {
    if (owner.controller) view.owner = owner.kind + "/" + owner.name;
  }
  view.phase = Text(PersistentVolumeClaimPhase::kPending);
  view.volume = claim.spec.volume_name;
  view.storage_class = claim.spec.storage_class_name.value_or("");
  view.volume_mode = Text(claim.spec.volume_mode);
  view.created_unix_ms = claim.metadata.creation_unix_millis.value_or(0);
  const ClaimDecision* decision = parts_.claims.FindClaim(KeyOfClaim(claim));
  if (decision == nullptr) return view;
  view.phase = Text(decision->phase);
  view.storage_class = decision->storage_class;
  view.reason = decision->reason;
  view.deleting = decision->protection.deletion_requested;
  view.missing = decision->missing;
  if (!decision->volume_name.empty()) view.volume = decision->volume_name;
  if (decision->phase != PersistentVolumeClaimPhase::kBound) {
    AddAwaited(ProvisionKey(ProvisionedVolumeName(decision->uid)), view.reason);
    return view;
  }
  const std::string growth = parts_.storage_expander.WaitsFor(decision->volume_name);
  if (view.reason.empty() && !growth.empty()) {
    view.reason = "it asks for more than its volume has: " + growth;
  }
  if (const auto growing = parts_.storage_expander.Growing(decision->volume_name)) {
    AddAwaited(*growing, view.reason);
  }
  // These are the values that the controller writes into the claim's status.
  if (const PersistentVolumePtr volume = parts_.claims.FindVolumeObject(decision->volume_name)) {
    view.capacity = volume->spec.capacity.String();
    view.access_modes = Texts(volume->spec.access_modes);
  }
  // For a volume that was grown on this node the shown status has the better value.
  const ResourceList capacity = parts_.claims.ShownStatus(claim).capacity;
  if (const auto storage = capacity.find("storage"); storage != capacity.end()) {
    view.capacity = storage->second.String();
  }
  return view;
}

bool StorageViews::IsBound(const ObjectKey& object) const {
  parts_.claims.DecideNow();
  return parts_.claims.IsBound(object);
}

PersistentVolumeClaimStatus StorageViews::ClaimStatus(const PersistentVolumeClaim& claim) const {
  PersistentVolumeClaimStatus status = parts_.claims.ShownStatus(claim);
  const ClaimDecision* decision = parts_.claims.FindClaim(KeyOfClaim(claim));
  if (decision == nullptr || decision->volume_name.empty()) return status;
  const std::string growth = parts_.storage_expander.WaitsFor(decision->volume_name);
  for (ClaimCondition& condition : status.conditions) {
    if (condition.type == kResizing && condition.message.empty()) condition.message = growth;
  }
  return status;
}

PodUid StorageViews::PodOfClaim(const ObjectKey& claim) const {
  return parts_.claims.PodOfClaim(claim);
}

bool StorageViews::IsBeingDeleted(const ObjectKey& object) const {
  return parts_.commands.DeletedSince(object).has_value();
}

bool StorageViews::HasEnded(const ObjectKey& object, const std::string& uid) const {
  return parts_.commands.HasEnded(object, uid);
}

std::string StorageViews::UidOnRecord(const ObjectKey& object) const {
  return parts_.commands.UidOnRecord(object);
}

std::optional<StorageStatus> StorageViews::StatusOf(const ObjectKey& object) const {
  parts_.claims.DecideNow();
  if (object.kind == ObjectKind::kPersistentVolumeClaim) {
    return ClaimStatusOf({object.name_space, object.name});
  }
  if (object.kind == ObjectKind::kPersistentVolume) return VolumeStatusOf(object.name);
  return std::nullopt;
}

std::optional<StorageStatus> StorageViews::ClaimStatusOf(const ClaimKey& key) const {
  const ClaimDecision* claim = parts_.claims.FindClaim(key);
  if (claim == nullptr) return std::nullopt;
  StorageStatus status = StatusUnder(claim->protection, EnumText(claim->phase));
  status.reason = claim->reason;
  status.other = claim->volume_name;
  return status;
}

std::optional<StorageStatus> StorageViews::VolumeStatusOf(const std::string& name) const {
  const VolumeDecision* volume = parts_.claims.FindVolume(name);
  if (volume == nullptr) return std::nullopt;
  StorageStatus status = StatusUnder(volume->protection, EnumText(volume->phase));
  status.reason = volume->reason;
  if (volume->claim) status.other = ToString(*volume->claim);
  status.claim_goes = parts_.claims.ClaimGoes(name);
  status.is_missing = volume->missing && !volume->protection.deletion_requested;
  if (const auto known = parts_.catalog.FindPersistentVolume(name)) {
    status.unreclaimable =
        WhyNotReclaimed(parts_.plugins, *known, ReclaimActionOf(known->spec.reclaim_policy));
  }
  return status;
}

}  // namespace volumed
