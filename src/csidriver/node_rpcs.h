// The RPCs of the CSI driver by which a CO has volumes of this node's pools: they are staged,
// published, measured, made larger, and taken away. Each starts an operation (node_volumes.h) and
// answers when that is done, however long it takes and whether anybody waits still; those that ask
// for figures or for the health of something are none.
//
// NodeGetInfo and NodeGetCapabilities are in identity_rpcs.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/scheduler.h"
#include "csidriver/csi_service.h"
#include "csidriver/node_targets.h"
#include "operation/node_volume_operations.h"
#include "operation/volume_record_keeper.h"
#include "os/fault_domain.h"
#include "os/kernel.h"
#include "pool/pool_volumes.h"

namespace volumed {

struct NodeRpcParts {
  Scheduler& scheduler;
  Kernel& kernel;
  PoolVolumes& volumes;
  NodeVolumeOperations& operations;
  const DeviceRecordKeeper& devices;
  // Why nothing may be deleted yet, for people; empty if it may (VolumeManager::WhyUnseen). Asked
  // on the control thread.
  std::function<std::string()> why_unseen = {};
  FaultDomains* fault_domains = nullptr;  // as PlaceLooks has them
};

struct NodeRpcSettings {
  std::string driver;                     // by which PersistentVolumes name the pools
  std::string node;                       // NodeGetInfo.node_id
  std::vector<std::string> target_roots;  // as NodeTargets has them
  std::string own_directory = {};         // as PlaceLooks has it
  NodeTargets::RealRoot real_root = {};   // likewise; asked on the control thread, blocks never
  int64_t most_volumes = 0;               // that the node has leases of; 0: no limit
  Duration stats_deadline{};              // of a look at a filesystem, or at pools
  // NodeExpandVolume asks the pool for what a volume has not been promised yet, as no controller
  // does.
  bool grows_storage = false;
};

// Adds the handlers of NodeStageVolume, NodeUnstageVolume, NodePublishVolume, NodeUnpublishVolume,
// NodeGetVolumeStats, NodeExpandVolume, NodeGetVolumeHealth and NodeGetStorageHealth, and what they
// can do. The parts outlive the calls and what they begin. Handlers: Threads: control. Blocks:
// never.
//
// An id that is none of a volume is NotFound, and success for what takes away; a place of which no
// row tells has to lie below the target roots. A call about a path at which another one works is
// Aborted, as is one about a volume that something else has for itself. Before it begins, the
// filesystems of its paths are looked at (place_looks.h): if one does not answer, it is refused.
//
// A kubelet's inline volume of a pod is made by its NodePublishVolume and deleted by its
// NodeUnpublishVolume (inline_volumes.h), by the kubelet's own handle; those two and the questions
// about it are all that there is for it.
void AddNodeRpcs(CsiHandlers& handlers, const NodeRpcParts& parts, const NodeRpcSettings& settings);

}  // namespace volumed
