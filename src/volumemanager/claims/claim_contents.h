// ClaimContents: finds the volume that a new one is to be a clone of, for a claim whose data source
// is another claim.
// Source: external-provisioner@v6.1 pkg/controller/controller.go (getPVCSource).
#pragma once

#include <optional>

#include "kube/data_source.h"
#include "kube/object_catalog.h"
#include "pluginmgr/volume_content.h"
#include "volumemanager/claims/claims.h"

namespace volumed {

// Threads: the control thread. Blocks: never. Errors: those of VolumeContents.
class ClaimContents final : public VolumeContents {
 public:
  // `others` knows sources of other kinds; null: there are none. All outlive this object.
  ClaimContents(const ObjectCatalog& catalog, const Claims& claims, const VolumeContents* others)
      : catalog_(catalog), claims_(claims), others_(others) {}

  Result<std::optional<VolumeContent>> Find(const PersistentVolumeClaim& claim) const override;

 private:
  Result<VolumeContent> CloneOf(const ClaimKey& source) const;

  const ObjectCatalog& catalog_;
  const Claims& claims_;
  const VolumeContents* const others_;
};

}  // namespace volumed
