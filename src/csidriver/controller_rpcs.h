// The RPCs of the Controller service that are about volumes: a CO makes and deletes volumes of this
// node's pools, is told of them, and says which node is to have them.
//
// Volumes that are made by CreateVolume and those that are made for the node's own claims are in
// the same pools, and a CO is told of both. But a name of the one never finds the other
// (csi_volume_wish.h), and one that a PersistentVolume of this node names is not deleted by a CO.
//
// They are cut by the RPCs of snapshot_rpcs.h. What a new volume is to have in it from the
// beginning is found by the pools themselves, if somebody holds contents for them.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/scheduler.h"
#include "csidriver/csi_service.h"
#include "csidriver/place_looks.h"
#include "operation/volume_operations.h"
#include "operation/volume_record_keeper.h"
#include "pool/pool_operations.h"

namespace volumed {

struct ControllerRpcParts {
  Scheduler& scheduler;
  VolumeOperations& operations;
  PoolServed& pools;
  const DeviceRecordKeeper& devices;
  PlaceLooks::Parts looks;  // where volumes that are deleted are on the node
  // Why nothing may be deleted yet, for people; empty if it may (VolumeManager::WhyUnseen). Asked
  // on the control thread.
  std::function<std::string()> why_unseen;
  // SnapshotEngine::WhenCopiedForClone. Empty: nothing is copied for clones.
  std::function<void(const std::string& volume, Duration at_most, std::function<void()> done)>
      when_copied = {};
};

struct ControllerRpcSettings {
  std::string node;                   // NodeGetInfo.node_id of this driver
  std::set<std::string> other_nodes;  // to which volumes may be published, too
  int64_t most_volumes = 0;           // that are published to a node; 0: no limit
  Duration capacity_deadline{};       // of a look at a pool
  Duration look_deadline{};           // of a look at the filesystem of a place
};

// Adds the handlers of CreateVolume, DeleteVolume, ValidateVolumeCapabilities, ListVolumes,
// ControllerGetVolume, GetCapacity, ControllerPublishVolume, ControllerUnpublishVolume,
// ControllerExpandVolume, ControllerModifyVolume, ControllerGetVolumeHealth and
// ControllerListVolumeHealth, and what they can do. The parts outlive the calls and what they
// begin. Handlers: Threads: control. Blocks: never.
//
// Errors for a caller are those of CSI: besides those of PoolVolumes and of the operations,
// Unavailable of DeleteVolume while `why_unseen` says something, NotFound for a node that is not
// one of the driver's, and FailedPrecondition for a capability that is beyond the volume.
// Source: CSI spec v1.13.0, "Controller Service RPC".
void AddControllerRpcs(CsiHandlers& handlers, const ControllerRpcParts& parts,
                       const ControllerRpcSettings& settings);

}  // namespace volumed
