// NodeSnapshotObjects: VolumeSnapshots, and what the control API knows of snapshots, as parts of
// the agent.
#pragma once

#include <functional>
#include <optional>

#include "agent/snapshot_backend.h"
#include "base/log.h"
#include "snapshot/claimed_snapshots.h"
#include "volumemanager/found_at_start.h"
#include "volumemanager/record_writer.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// Threads: the control thread. Blocks: never.
class NodeSnapshotObjects {
 public:
  // All outlive this object.
  struct Parts {
    Scheduler& scheduler;
    Logger& log;
    RecordStore& store;
    ObjectCatalog& catalog;
    HostEvents& events;
    SnapshotEngine& engine;
    PoolVolumes& volumes;
    VolumeOperations& operations;
  };
  // `manager` is asked for once the records are loaded.
  NodeSnapshotObjects(const Parts& parts, std::function<VolumeManager&()> manager);
  NodeSnapshotObjects(const NodeSnapshotObjects&) = delete;
  NodeSnapshotObjects& operator=(const NodeSnapshotObjects&) = delete;

  // The rows that are to be loaded for Restore().
  static OtherRecordKind RecordKind();
  SnapshotObjects& objects() { return objects_; }
  const VolumeContents& contents() const { return contents_; }
  SnapshotBackend& backend() { return backend_; }

 private:
  SnapshotObjects::Hooks MakeHooks() const;

  const std::function<VolumeManager&()> manager_;
  EngineSnapshots maker_;
  RecordWriter records_;
  SnapshotObjects objects_;
  SnapshotObservers observers_;
  ClaimedSnapshots contents_;
  SnapshotBackend backend_;
};

}  // namespace volumed
