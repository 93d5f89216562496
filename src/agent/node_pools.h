// NodePools: the pools of this node as parts of the agent. Each is opened beside the others, at the
// start and whenever something is mounted where it should be; one that is not there, or is not any
// more, is a part that does not work, and is tried again until it is.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/agent_parts.h"
#include "agent/config.h"
#include "base/alive_guard.h"
#include "base/log.h"
#include "base/scheduler.h"
#include "operation/volume_record_keeper.h"
#include "os/kernel.h"
#include "pool/pool_volumes.h"
#include "records/record_store.h"
#include "volumehost/irreversible_steps.h"
#include "volumehost/kubelet_paths.h"
#include "volumemanager/found_at_start.h"

namespace volumed {

// The pools as they are configured, in their order. `holder` is for other agents that want them.
std::vector<PoolSettings> PoolSettingsOf(const Config& config, const std::string& holder);

// The devices that are listed as volumes, of the first pool.
std::vector<StaticVolume> StaticVolumesOf(const Config& config);

// Why volumes of a pool cannot be relied upon. The words are those of the CSI driver.
struct PoolTrouble {
  std::string reason;  // kPoolUnreachableReason, kPoolShortReason; empty: nothing
  std::string text;
  friend bool operator==(const PoolTrouble&, const PoolTrouble&) = default;
};

// Threads: the control thread, but for volumes(), which may be had on any. Blocks: never.
class NodePools {
 public:
  // All outlive this object, and it outlives what the scheduler runs.
  struct Parts {
    Scheduler& scheduler;
    Kernel& kernel;
    RecordStore& store;
    Logger& log;
    IrreversibleSteps& irreversible;
    // Says which volumes may be on this node: their devices stay open.
    const DeviceRecordKeeper& devices;
    const KubeletPaths& paths;
    AgentParts& agent_parts;
    // A pool is open that was not: what waits for it is to be tried again.
    std::function<void()> opened;
    // What ails the pool of this path, whose volumes pods may have, is another thing now. May be
    // empty.
    std::function<void(const std::string& path, const PoolTrouble& trouble)> troubled = {};
  };
  // Each of the static volumes is a part of its own, which is tried until its device is there.
  NodePools(Parts parts, std::vector<PoolSettings> pools,
            std::vector<StaticVolume> static_volumes = {});
  NodePools(const NodePools&) = delete;
  NodePools& operator=(const NodePools&) = delete;

  PoolVolumes& volumes() { return volumes_; }

  // The rows that are to be loaded for Restore(), of each kind, also where no pool is configured.
  static std::vector<OtherRecordKind> RecordKinds();
  static bool IsKindOf(const std::string& kind);
  void Restore(const std::string& kind, const LoadedRecords& rows) { volumes_.Restore(kind, rows); }
  // The volumes of pods, and of a CO, that the node has by their rows: whatever throttle they have
  // is kept from the first Open() on.
  void NoteFound(const std::vector<PodVolumeRecord>& volumes);
  // Opens all that are not open, and goes on with what was begun in each. REQUIRES: the rows of
  // pools, volumes and devices are restored.
  void Open();
  // Something was mounted at these paths, or is not any more: the pools at or below them are tried
  // at once, and those that are open are looked at.
  void MountsChanged(const std::vector<std::string>& mount_points);

 private:
  // How the opening of one pool goes on.
  struct Opening {
    bool runs = false;
    bool again = false;  // something has changed while it ran
    bool is_open = false;
    bool was_tried = false;
    Duration delay{};  // until the next try; zero: none has failed
    uint64_t trial = 0;
    PoolTrouble told;
  };
  void OpenPool(Pool& pool);
  void KeepThrottlesLater();
  void NameMissingPools();
  void Tried(Pool& pool, const Status& recovered);
  void TryLater(Pool& pool);
  void LookAt(const Pool& pool);
  // It was open, and somebody has found that it is not there.
  void Away(Pool& pool);
  PoolTrouble TroubleOf(const Pool& pool, const Opening& opening) const;
  void TellTrouble(const Pool& pool);
  // Takes the listed devices of the pool, which is open for the first time.
  void TakeStatic(const Pool& pool);
  Status TryStatic(const StaticVolume& volume);
  // A part of its own is tried as long as no volume is made since one has files and no record, or
  // none that can be read: whoever asks for one hears it, and nobody else would.
  void LookForLost();
  Status CheckNoneIsLost();
  bool MayBeOnNode(const Pool& pool, const std::string& id, const CallOptions& call) const;

  const Parts parts_;
  const std::vector<StaticVolume> static_volumes_;
  std::set<std::string> static_begun_;  // names
  PoolVolumes volumes_;
  std::map<const Pool*, Opening> openings_;
  bool keeps_throttles_ = false;  // a timer runs, or what it has begun
  bool looks_for_lost_ = false;   // likewise
  AliveGuard alive_;
};

}  // namespace volumed
