// StorageViews: shows people and programs persistent volumes and claims, with what was decided
// about their binding.
#pragma once

#include <string>
#include <vector>

#include "kube/object_catalog.h"
#include "volumemanager/claims.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// Says how an object that a command has deleted can exist again while this manifest still has it.
std::string WayBackText(const std::string& file);
// The phase of an object that was deleted and that its manifest still has.
inline constexpr const char* kRefusedPhase = "Refused";
// Says, for an object whose manifest still has it, that it is refused there, and how it can exist
// again.
std::string RefusedText(ObjectKind kind, const ObjectOrigin& origin);

// Threads: the control thread. Blocks: never. Catalog and claims outlive this object.
class StorageViews {
 public:
  StorageViews(const ObjectCatalog& catalog, const Claims& claims)
      : catalog_(catalog), claims_(claims) {}

  // Before the first decision every volume and claim is Pending.
  std::vector<PersistentVolumeView> PersistentVolumes() const;
  std::vector<PersistentVolumeClaimView> PersistentVolumeClaims() const;

 private:
  PersistentVolumeView BuildVolume(const PersistentVolume& volume) const;
  PersistentVolumeClaimView BuildClaim(const PersistentVolumeClaim& claim) const;

  const ObjectCatalog& catalog_;
  const Claims& claims_;
};

}  // namespace volumed
