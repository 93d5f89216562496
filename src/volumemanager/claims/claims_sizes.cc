// Claims: the sizes in the claims' statuses.
#include <utility>

#include "volumemanager/claims/claims.h"

namespace volumed {

std::optional<ClaimResize> Claims::ResizeFor(const ClaimBinding& binding, const Bound& bound,
                                             const PersistentVolumePtr& volume) const {
  // The size as the claim got it; if the volume has changed since, the node has to make that true.
  const PersistentVolumePtr as_bound = bound.volume != nullptr ? bound.volume : volume;
  if (binding.state != BindingState::kBound || as_bound == nullptr) return std::nullopt;
  const ClaimBinding& before = bound.record.binding;
  const bool same_claim = before.claim == binding.claim && before.claim_uid == binding.claim_uid &&
                          before.state == BindingState::kBound;
  const PersistentVolumeClaimPtr object =
      parts_.catalog.FindPersistentVolumeClaim(binding.claim.name_space, binding.claim.name);
  ClaimResize resize =
      FollowClaim(same_claim ? bound.record.resize : std::nullopt, object.get(),
                  same_claim ? as_bound->spec.capacity
                             : (volume != nullptr ? volume : as_bound)->spec.capacity);
  FollowVolume((volume != nullptr ? volume : as_bound)->spec.capacity,
               parts_.scheduler.clock().WallUnixMillis(), resize);
  return resize;
}

std::optional<ClaimResizeState> Claims::FindResize(const std::string& volume_name) const {
  const ClaimResize* resize = ResizeOf(volume_name);
  if (resize == nullptr) return std::nullopt;
  const Bound& bound = bound_.at(volume_name);
  return ClaimResizeState{bound.record.binding.claim, *resize,
                          bound.durable && bound.resize_durable};
}

const ClaimResize* Claims::ResizeOf(const std::string& volume_name) const {
  const auto found = bound_.find(volume_name);
  if (found == bound_.end() || !found->second.record.resize || found->second.removing) {
    return nullptr;
  }
  return &*found->second.record.resize;
}

void Claims::SetResize(const std::string& volume_name, const ClaimResize& resize) {
  if (ResizeOf(volume_name) == nullptr) return;
  Bound& bound = bound_.at(volume_name);
  if (bound.record.resize == resize) return;
  bound.record.resize = resize;
  bound.resize_durable = false;
  Write(volume_name);
  MarkDirty();
}

PersistentVolumeClaimStatus Claims::ShownStatus(const PersistentVolumeClaim& claim) const {
  PersistentVolumeClaimStatus status;
  if (!IsOfUnfinishedGrowth(claim.status)) status = claim.status;
  const Bound* bound = BoundTo(KeyOfClaim(claim));
  if (bound == nullptr || !bound->durable) return status;
  status.phase = PersistentVolumeClaimPhase::kBound;
  if (bound->record.resize) ShowIn(*bound->record.resize, status);
  return status;
}

}  // namespace volumed
