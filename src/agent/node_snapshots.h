// NodeSnapshots: the snapshots of this node's pools as parts of the agent.
#pragma once

#include <string>
#include <vector>

#include "agent/config.h"
#include "base/alive_guard.h"
#include "snapshot/snapshot_contents.h"
#include "snapshot/snapshot_engine.h"
#include "volumemanager/found_at_start.h"

namespace volumed {

SnapshotSettings SnapshotSettingsOf(const Config& config);

// Threads: the control thread, but for what of engine() says otherwise. Blocks: never. REQUIRES of
// the parts: as SnapshotEngine::Parts, and that no volume was made or opened yet.
class NodeSnapshots {
 public:
  NodeSnapshots(SnapshotEngine::Parts parts, SnapshotSettings settings);
  NodeSnapshots(const NodeSnapshots&) = delete;
  NodeSnapshots& operator=(const NodeSnapshots&) = delete;

  SnapshotEngine& engine() { return engine_; }

  // The rows that are to be loaded for Restore(), of each kind.
  static std::vector<OtherRecordKind> RecordKinds();
  static bool IsKindOf(const std::string& kind);
  void Restore(const std::string& kind, const LoadedRecords& rows) { engine_.Restore(kind, rows); }
  // The rows are restored, those of devices too, and no pool was opened yet.
  void Begin() {
    engine_.FailDoubted();
    engine_.EndFreezes();
  }
  // A pool is open that was not.
  void PoolOpened() { engine_.Start(); }

 private:
  SnapshotEngine engine_;
  SnapshotContents contents_{engine_};
  AliveGuard alive_;
};

}  // namespace volumed
