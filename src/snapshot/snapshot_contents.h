// SnapshotContents: the content of a new volume, a snapshot or a volume that is cloned, held for
// PoolVolumes while the volume is made of it.
#pragma once

#include <memory>
#include <string>

#include "pluginmgr/volume_content.h"
#include "snapshot/snapshot_engine.h"

namespace volumed {

// Threads, blocking and errors: as ContentHolder; InvalidArgument, not applied, for a content of
// another driver.
class SnapshotContents final : public ContentHolder {
 public:
  // The engine outlives this object, and what it has answered.
  explicit SnapshotContents(SnapshotEngine& engine) : engine_(engine) {}

  Result<std::unique_ptr<HeldContent>> Hold(const VolumeContent& content,
                                            const std::string& for_volume,
                                            const CallOptions& call) override;

 private:
  SnapshotEngine& engine_;
};

}  // namespace volumed
