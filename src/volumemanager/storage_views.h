// StorageViews: persistent volumes and claims with what the binder decided about them, for people
// and programs.
#pragma once

#include <string>
#include <vector>

#include "kube/object_catalog.h"
#include "volumemanager/claims.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// How an object that a command has deleted comes to be again, while this manifest still has it.
std::string WayBackText(const std::string& file);
// Of an object that was deleted and that its manifest still has.
inline constexpr const char* kRefusedPhase = "Refused";
// Of an object whose manifest still has it: that it is refused there, and the way back.
std::string RefusedText(ObjectKind kind, const ObjectOrigin& origin);

// Threads: the control thread. Blocks: never. Both outlive it.
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
