// The RPCs of the CSI driver that are about snapshots: a CO has volumes of this node's pools cut,
// singly and several at one moment, and is told of what there is. Volumes are made of them by
// CreateVolume (controller_rpcs.h).
//
// A snapshot of a CO is found by the name that it gave (PoolNameOfCsi), and by its id. The ones
// that the node makes for its own objects are in the same engine, and a CO is told of them. Those
// of clones are nobody's but the new volume's: for a CO they are not there.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "csidriver/csi_service.h"
#include "csidriver/csi_volume_wish.h"
#include "pool/pool_volumes.h"
#include "snapshot/snapshot_engine.h"

namespace volumed {

// What the handlers of snapshots and of groups need. It outlives the calls and what they begin.
struct SnapshotRpcParts {
  SnapshotEngine& snapshots;
  const PoolVolumes& volumes;
  CsiPlaces places;  // where snapshots can be asked for
  // Where answers say that they are usable; empty: wherever the driver is.
  CsiPlaces told_places;
  // Whether a snapshot may be deleted at all. Errors, not applied: FailedPrecondition for one that
  // the node has for an object of its own (SnapshotObjects::CheckNotHad), which a CO is told of as
  // of its own.
  std::function<Status(const std::string& id)> check_not_had;
};

// Adds the handlers of CreateSnapshot, DeleteSnapshot, ListSnapshots and GetSnapshot, and says that
// volumes can be made of snapshots and of volumes: what holds these for the pools is the engine.
// Handlers: Threads: control. Blocks: never.
//
// A CreateSnapshot is answered once the point in time exists; it is repeated until the snapshot is
// ready, and what goes wrong until then is its error, once. Errors for a caller are those of the
// engine; FailedPrecondition for an id of a pool that this node does not have. An id that is none
// of a snapshot is NotFound, success for a deletion, and an empty list for a filter. Source: CSI
// spec v1.13.0, "CreateSnapshot", "DeleteSnapshot", "ListSnapshots", "GetSnapshot".
void AddSnapshotRpcs(CsiHandlers& handlers, const SnapshotRpcParts& parts);

}  // namespace volumed
