// ClaimedSnapshots: finds the snapshot that a new volume is to be made of, for a claim whose data
// source is a VolumeSnapshot.
// Source: external-provisioner@v6.1 pkg/controller/controller.go (getSnapshotSource).
#pragma once

#include <functional>
#include <optional>

#include "kube/data_source.h"
#include "kube/object_catalog.h"
#include "pluginmgr/volume_content.h"
#include "snapshot/snapshot_maker.h"

namespace volumed {

// Whether it names a VolumeSnapshot of its own group. Pure; threads: any.
bool IsSnapshotSource(const DataSource& source);

// Threads: the control thread. Blocks: never. Errors: those of VolumeContents.
class ClaimedSnapshots final : public VolumeContents {
 public:
  // The VolumeSnapshot with its status (SnapshotObjects::Shown): it counts as bound only if its
  // status names a content.
  using Shown = std::function<VolumeSnapshot(const VolumeSnapshot&)>;
  // Catalog and maker outlive this object.
  ClaimedSnapshots(const ObjectCatalog& catalog, const SnapshotMaker& maker, Shown shown)
      : catalog_(catalog), maker_(maker), shown_(std::move(shown)) {}

  Result<std::optional<VolumeContent>> Find(const PersistentVolumeClaim& claim) const override;

 private:
  Result<VolumeContent> ContentOfSnapshot(const ObjectKey& key) const;

  const ObjectCatalog& catalog_;
  const SnapshotMaker& maker_;
  const Shown shown_;
};

}  // namespace volumed
