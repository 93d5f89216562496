// Claims: from what it is decided which claim has which volume.
#include <utility>

#include "kube/ephemeral_claim.h"
#include "volumemanager/claims/claims.h"

namespace volumed {

BindingInput Claims::MakeInput(const std::vector<ClaimPod>& pods) {
  BindingInput input;
  input.claims = parts_.catalog.PersistentVolumeClaims();
  input.classes = parts_.catalog.StorageClasses();
  input.node = {parts_.node.GetNodeName().str(), parts_.node.GetNodeLabels()};
  // If a record cannot be read, any new binding might give away a volume that is taken.
  input.sources_complete = parts_.readiness.Ready() && unreadable_.empty();
  for (const auto& [name, bound] : bound_) {
    if (!bound.removing && !bound.record.deleted) input.recorded.push_back(bound.record.binding);
  }
  being_deleted_ = parts_.operations.VolumesBeingDeleted();
  AddEnds(input);
  AddVolumes(input);
  AddLeavingDevices(input);
  AddPods(pods, input);
  MarkDeleted(input);
  return input;
}

void Claims::AddEnds(BindingInput& input) const {
  for (const PersistentVolumeClaimPtr& claim : input.claims) {
    const ClaimKey key = KeyOfClaim(*claim);
    if (parts_.catalog.IsMissing(ObjectKeyOf(key))) input.missing_claims.insert(key);
  }
  for (const StorageClassPtr& one : input.classes) {
    const std::string& name = one->metadata.name;
    if (parts_.catalog.IsMissing({ObjectKind::kStorageClass, "", name})) {
      input.missing_classes.insert(name);
    }
  }
  for (const DeletedObjectRecord& deleted : parts_.deleted.All()) {
    if (!deleted.ended || deleted.object.kind != ObjectKind::kPersistentVolumeClaim) continue;
    input.ended.insert({{deleted.object.name_space, deleted.object.name}, deleted.uid});
  }
  for (const auto& [name, bound] : bound_) {
    const ClaimBinding& binding = bound.record.binding;
    const bool of_pod = !bound.record.pod_uid.empty();
    if (of_pod && input.sources_complete && !hooks_.has_pod(bound.record.pod_uid)) {
      input.ended.insert({binding.claim, binding.claim_uid});
    }
    const std::string uid = bound.volume == nullptr ? "" : bound.volume->metadata.uid;
    const ObjectKey volume{ObjectKind::kPersistentVolume, "", name};
    if (!uid.empty() && parts_.deleted.HasEnded({volume, uid})) input.ended_volumes.insert(name);
  }
}

// A try would only find the device there. It is no failure that steps have an order.
void Claims::AddLeavingDevices(BindingInput& input) const {
  for (const auto& [name, bound] : bound_) {
    const BindingState state = bound.record.binding.state;
    const bool released = state == BindingState::kReleased || state == BindingState::kReclaimFailed;
    if (!released || bound.removing || bound.reclaiming || bound.volume == nullptr) continue;
    if (hooks_.device_leaves(*bound.volume)) input.leaving_devices.insert(name);
  }
}

// A command marks an object as deleted as an API server does, whichever source has the object.
void Claims::MarkDeleted(BindingInput& input) const {
  const auto mark = [this](ObjectKind kind, auto& object) {
    const ObjectMeta& metadata = object->metadata;
    const ObjectKey key{kind, metadata.name_space, metadata.name};
    const DeletedObjectRecord* deleted = parts_.deleted.Find({key, metadata.uid});
    if (deleted == nullptr || deleted->ended || metadata.deletion_unix_millis) return;
    auto marked = *object;
    marked.metadata.deletion_unix_millis = deleted->since_unix_ms;
    object = std::make_shared<const decltype(marked)>(std::move(marked));
  };
  for (PersistentVolumeClaimPtr& claim : input.claims)
    mark(ObjectKind::kPersistentVolumeClaim, claim);
  for (PersistentVolumePtr& volume : input.volumes) mark(ObjectKind::kPersistentVolume, volume);
}

// Adds the volumes of the sources, and those that are needed although no source has them.
void Claims::AddVolumes(BindingInput& input) const {
  const auto add = [this, &input](PersistentVolumePtr volume) {
    const std::string& name = volume->metadata.name;
    const ReclaimAction action = ReclaimActionOf(volume->spec.reclaim_policy);
    std::string why =
        action == ReclaimAction::kNone ? "" : hooks_.why_not_reclaimed(*volume, action);
    const DeletedObjectRecord* deleted =
        parts_.deleted.Find({{ObjectKind::kPersistentVolume, "", name}, volume->metadata.uid});
    if (deleted != nullptr && deleted->storage_left && action != ReclaimAction::kNone) {
      why = "by command nothing reclaims it";
    }
    if (!why.empty()) input.unreclaimable[name] = why;
    input.volumes.push_back(std::move(volume));
  };
  std::set<std::string> there;
  for (const PersistentVolumePtr& volume : parts_.catalog.PersistentVolumes()) {
    const std::string& name = volume->metadata.name;
    const auto bound = bound_.find(name);
    const bool deleted = bound != bound_.end() && bound->second.record.deleted;
    // Nobody can tell to whom this volume belongs.
    if (deleted || quarantined_.contains(name)) continue;
    if (!WhyGivenToNobody(name).empty()) continue;
    there.insert(name);
    if (parts_.catalog.IsMissing({ObjectKind::kPersistentVolume, "", name})) {
      input.missing_volumes.insert(name);
    }
    add(volume);
  }
  for (const auto& [name, bound] : bound_) {
    if (there.contains(name) || bound.volume == nullptr) continue;
    // Volumes that are being deleted or recycled, and rows that are being removed, are in this
    // state too.
    const BindingState state = bound.record.binding.state;
    const bool needed =
        state == BindingState::kBound ||
        (state != BindingState::kReclaimed &&
         ReclaimActionOf(bound.volume->spec.reclaim_policy) != ReclaimAction::kNone);
    if (!needed || input.ended_volumes.contains(name)) continue;
    if (input.sources_complete) input.missing_volumes.insert(name);
    add(bound.volume);
  }
}

void Claims::AddPods(const std::vector<ClaimPod>& pods, BindingInput& input) {
  const std::map<EndedClaim, PodsClaim> before = std::exchange(of_pods_, {});
  std::map<ClaimKey, size_t> there;
  for (size_t i = 0; i < input.claims.size(); ++i) there.emplace(KeyOfClaim(*input.claims[i]), i);
  for (const ClaimPod& of : pods) {
    const Pod& pod = *of.pod;
    for (const PodVolume& volume : pod.spec.volumes) {
      const bool ephemeral = std::holds_alternative<EphemeralVolumeSource>(volume.source);
      if (!ephemeral && !std::holds_alternative<PersistentVolumeClaimVolumeSource>(volume.source)) {
        continue;
      }
      const ClaimKey key = KeyOf(pod, volume);
      const Bound* bound = BoundTo(key);
      const SpecName spec(bound == nullptr ? "" : bound->record.binding.volume_name);
      const bool present = bound != nullptr && of.present.contains(spec);
      // The pod waits for the end of that other pod; it does not have the claim, nor does it keep
      // the claim from ending.
      if (ephemeral && !present && IsOfOther(pod, key, before)) continue;
      const bool is_new = !there.contains(key);
      if (ephemeral && (is_new || IsOf(pod, bound))) {
        if (is_new) input.claims.emplace_back();
        PersistentVolumeClaimPtr& claim =
            input.claims[there.emplace(key, input.claims.size() - 1).first->second];
        claim = std::make_shared<const PersistentVolumeClaim>(EphemeralClaimOf(pod, volume));
        input.missing_claims.erase(key);
        of_pods_[{key, claim->metadata.uid}] = {pod.uid(), claim};
      }
      if (!of.wanted && !present) continue;
      // The pod does not get the claim, so the claim must not wait for it.
      const bool refused = !present && IsLeaving(ObjectKeyOf(key)) &&
                           (bound == nullptr || !hooks_.has_volume({pod.uid(), spec}));
      if (refused) continue;
      input.uses.push_back({pod.metadata.name_space + "/" + pod.metadata.name, key,
                            present ? bound->record.binding.volume_name : ""});
    }
  }
}

bool Claims::IsLeaving(const ObjectKey& claim) const {
  const ObjectPtr object = parts_.catalog.FindObject(claim);
  if (object == nullptr) return false;
  const ObjectMeta& metadata = MetaOf(*object);
  return metadata.deletion_unix_millis || parts_.deleted.Find({claim, metadata.uid}) != nullptr;
}

// A claim of the same name that somebody has made since is not used as long as the pod has its own
// claim.
bool Claims::IsOf(const Pod& pod, const Bound* bound) {
  return bound != nullptr && bound->record.pod_uid == pod.uid();
}

PodUid Claims::OwnerAmong(const ClaimKey& claim, const std::map<EndedClaim, PodsClaim>& of_pods) {
  const auto found = of_pods.lower_bound({claim, ""});
  return found != of_pods.end() && found->first.claim == claim ? found->second.pod : PodUid();
}

// The claims of two pods may have one name: that of pod "x" for volume "y-z", and that of pod "x-y"
// for volume "z". The pod whose claim was there first has the name until that claim is gone.
bool Claims::IsOfOther(const Pod& pod, const ClaimKey& claim,
                       const std::map<EndedClaim, PodsClaim>& before) const {
  const Bound* bound = BoundTo(claim);
  PodUid owner = bound == nullptr ? OwnerAmong(claim, before) : bound->record.pod_uid;
  if (owner.empty() || !hooks_.has_pod(owner)) owner = OwnerAmong(claim, of_pods_);
  return !owner.empty() && owner != pod.uid();
}

}  // namespace volumed
