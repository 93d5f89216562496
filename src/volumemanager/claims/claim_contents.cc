#include "volumemanager/claims/claim_contents.h"

#include <utility>

namespace volumed {

Result<std::optional<VolumeContent>> ClaimContents::Find(const PersistentVolumeClaim& claim) const {
  ASSIGN_OR_RETURN(const std::optional<DataSource> source, DataSourceOf(claim.spec));
  if (!source) return std::optional<VolumeContent>();
  const std::string& own = claim.metadata.name_space;
  if (!source->name_space.empty() && source->name_space != own) {
    return Error::NotApplied(Code::kInvalidArgument, "its data source is in namespace " +
                                                         source->name_space + ", and not in " +
                                                         own + ", its own");
  }
  if (source->api_group.empty() && source->kind == "PersistentVolumeClaim") {
    ASSIGN_OR_RETURN(VolumeContent content, CloneOf({own, source->name}));
    return std::optional(std::move(content));
  }
  if (others_ != nullptr) return others_->Find(claim);
  return Error::NotApplied(Code::kInvalidArgument, "its data source is a " + source->kind +
                                                       ", from which nothing here makes volumes");
}

Result<VolumeContent> ClaimContents::CloneOf(const ClaimKey& key) const {
  const std::string name = "claim " + ToString(key) + ", its data source, ";
  const PersistentVolumeClaimPtr source =
      catalog_.FindPersistentVolumeClaim(key.name_space, key.name);
  if (source == nullptr) {
    return Error::NotApplied(Code::kNotFound, name + "does not exist");
  }
  const ClaimDecision* decision = claims_.FindClaim(key);
  const bool is_bound = decision != nullptr &&
                        decision->phase == PersistentVolumeClaimPhase::kBound &&
                        claims_.BoundUid(key) == source->metadata.uid;
  if (!is_bound) return Error::NotApplied(Code::kUnavailable, name + "is not bound");
  if (decision->protection.deletion_requested) {
    return Error::NotApplied(Code::kFailedPrecondition, name + "is being deleted");
  }
  const PersistentVolumePtr volume = claims_.FindVolumeObject(decision->volume_name);
  if (volume == nullptr) {
    return Error::NotApplied(Code::kUnavailable, name + "has a volume that is not known yet");
  }
  const auto* csi = std::get_if<CsiPersistentVolumeSource>(&volume->spec.source);
  if (csi == nullptr) {
    return Error::NotApplied(Code::kInvalidArgument, name + "has no volume of a CSI driver");
  }
  const std::optional<ClaimResizeState> state = claims_.FindResize(decision->volume_name);
  VolumeContent content;
  content.driver = csi->driver;
  content.handle = csi->volume_handle;
  content.volume_name = decision->volume_name;
  content.volume_mode = volume->spec.volume_mode;
  content.size =
      state ? EffectiveCapacity(volume->spec.capacity, state->resize) : volume->spec.capacity;
  return content;
}

}  // namespace volumed
