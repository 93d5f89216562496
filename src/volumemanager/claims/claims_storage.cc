// Claims: which storage the volumes have, for those who are about to delete some.
#include <optional>

#include "volume/csi_translation.h"
#include "volume/storage_name.h"
#include "volumemanager/claims/claims.h"

namespace volumed {

std::vector<PersistentVolumePtr> Claims::OtherVolumes(const std::string& volume_name) const {
  std::vector<PersistentVolumePtr> others;
  std::set<std::string> there = {volume_name};
  for (const PersistentVolumePtr& volume : parts_.catalog.PersistentVolumes()) {
    const auto bound = bound_.find(volume->metadata.name);
    const bool deleted = bound != bound_.end() && bound->second.record.deleted;
    if (there.insert(volume->metadata.name).second && !deleted) others.push_back(volume);
  }
  for (const auto& [name, bound] : bound_) {
    const bool has_storage = bound.volume != nullptr && !bound.record.deleted;
    if (has_storage && there.insert(name).second) others.push_back(bound.volume);
  }
  return others;
}

// The operations are told in the task in which a volume becomes known. So of a deletion and a
// volume that names the same storage, either the deletion finds the volume, or the next decision
// finds the deletion.
void Claims::NameStorage(const std::string& volume_name) const {
  const PersistentVolumePtr volume = FindVolumeObject(volume_name);
  const auto bound = bound_.find(volume_name);
  const bool deleted = bound != bound_.end() && bound->second.record.deleted;
  std::optional<StorageName> name;
  if (volume != nullptr && !deleted) {
    name = StorageNameOf(AsUsed(VolumeSpec::FromPersistentVolume(*volume, false)));
  }
  // What lies on this node, or on a server, has to be looked at by whoever deletes.
  const bool is_drivers = name && !name->driver.empty();
  parts_.operations.NameStorage(volume_name, is_drivers ? &*name : nullptr);
}

std::string Claims::WhyGivenToNobody(const std::string& volume_name) const {
  const auto found = being_deleted_.find(volume_name);
  return found == being_deleted_.end() || bound_.contains(volume_name) ? "" : found->second;
}

void Claims::NameBeingDeleted(BindingResult& result) const {
  if (being_deleted_.empty()) return;
  for (ClaimDecision& claim : result.claims) {
    if (claim.wait != ClaimWait::kVolumeMissing) continue;
    const PersistentVolumeClaimPtr object =
        parts_.catalog.FindPersistentVolumeClaim(claim.claim.name_space, claim.claim.name);
    if (object == nullptr) continue;
    const std::string& name = object->spec.volume_name;
    const std::string why = WhyGivenToNobody(name);
    if (why.empty()) continue;
    claim.reason = "PersistentVolume " + name + ", which it names, is given to nobody: " + why;
  }
}

}  // namespace volumed
