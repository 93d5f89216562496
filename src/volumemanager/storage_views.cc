#include "volumemanager/storage_views.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "kube/ephemeral_claim.h"
#include "kube/refusal_text.h"
#include "kube/storage_enums.h"

namespace volumed {

std::string WayBackText(const std::string& file) {
  return "to have one of its name again, take it out of " + file +
         ", wait for removal-settle and put it back, or give it by `volumectl apply`: "
         "it is another one then";
}

std::string RefusedText(ObjectKind kind, const ObjectOrigin& origin) {
  return std::string(HowDeletedText(kind)) + " and " + origin.file + " still has it; " +
         WayBackText(origin.file);
}

namespace {

template <typename E>
std::string Text(E value) {
  return std::string(EnumText(value));
}

std::vector<std::string> Texts(const std::vector<AccessMode>& modes) {
  std::vector<std::string> texts;
  for (const AccessMode mode : modes) texts.push_back(Text(mode));
  return texts;
}

}  // namespace

std::vector<PersistentVolumeView> StorageViews::PersistentVolumes() const {
  std::map<std::string, PersistentVolumePtr> volumes;
  for (const PersistentVolumePtr& volume : catalog_.PersistentVolumes()) {
    volumes[volume->metadata.name] = volume;
  }
  for (const auto& [name, decision] : claims_.volumes()) {
    if (!volumes.contains(name)) volumes[name] = claims_.FindVolumeObject(name);
  }
  std::vector<PersistentVolumeView> views;
  for (const auto& [name, volume] : volumes) {
    if (volume != nullptr) views.push_back(BuildVolume(*volume));
  }
  for (const auto& [key, origin] : catalog_.Refused()) {
    if (key.kind != ObjectKind::kPersistentVolume || volumes.contains(key.name)) continue;
    PersistentVolumeView view;
    view.name = key.name;
    view.phase = kRefusedPhase;
    view.reason = RefusedText(key.kind, origin);
    views.push_back(std::move(view));
  }
  std::sort(views.begin(), views.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return views;
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
  if (const VolumeDecision* decision = claims_.FindVolume(view.name)) {
    view.phase = Text(decision->phase);
    view.reason = decision->reason;
    view.deleting = decision->protection.deletion_requested;
    view.missing = decision->missing;
    if (decision->claim) view.claim = ToString(*decision->claim);
  }
  if (const FailureHistory* failure = claims_.ReclaimFailure(view.name)) {
    view.reason = failure->last.error.message();
  }
  return view;
}

std::vector<PersistentVolumeClaimView> StorageViews::PersistentVolumeClaims() const {
  std::map<ClaimKey, PersistentVolumeClaimView> by_name;
  for (const PersistentVolumeClaimPtr& claim : catalog_.PersistentVolumeClaims()) {
    by_name[KeyOfClaim(*claim)] = BuildClaim(*claim);
  }
  // If a source has a claim with the name of a pod's own claim, it is not used as long as the pod's
  // claim exists.
  for (const PersistentVolumeClaimPtr& claim : claims_.MadeForPods()) {
    PersistentVolumeClaimView& view = by_name[KeyOfClaim(*claim)] = BuildClaim(*claim);
    view.uid = ShownUid(*claim);
  }
  for (const auto& [key, origin] : catalog_.Refused()) {
    const ClaimKey name{key.name_space, key.name};
    if (key.kind != ObjectKind::kPersistentVolumeClaim || by_name.contains(name)) continue;
    PersistentVolumeClaimView& view = by_name[name];
    view.ns = key.name_space;
    view.name = key.name;
    view.phase = kRefusedPhase;
    view.reason = RefusedText(key.kind, origin);
  }
  std::vector<PersistentVolumeClaimView> views;
  for (auto& [name, view] : by_name) views.push_back(std::move(view));
  return views;
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
  const ClaimDecision* decision = claims_.FindClaim(KeyOfClaim(claim));
  if (decision == nullptr) return view;
  view.phase = Text(decision->phase);
  view.storage_class = decision->storage_class;
  view.reason = decision->reason;
  view.deleting = decision->protection.deletion_requested;
  view.missing = decision->missing;
  if (!decision->volume_name.empty()) view.volume = decision->volume_name;
  if (decision->phase != PersistentVolumeClaimPhase::kBound) return view;
  // These are the values that the controller writes into the claim's status.
  if (const PersistentVolumePtr volume = claims_.FindVolumeObject(decision->volume_name)) {
    view.capacity = volume->spec.capacity.String();
    view.access_modes = Texts(volume->spec.access_modes);
  }
  // For a volume that was grown on this node the shown status has the better value.
  const ResourceList capacity = claims_.ShownStatus(claim).capacity;
  if (const auto storage = capacity.find("storage"); storage != capacity.end()) {
    view.capacity = storage->second.String();
  }
  return view;
}

}  // namespace volumed
