// The GroupController service of the CSI driver: volumes that are cut at one moment, or not at all.
// What the service can do is told by identity_rpcs.h.
#pragma once

#include "csidriver/csi_service.h"
#include "csidriver/snapshot_rpcs.h"

namespace volumed {

// Adds the handlers of CreateVolumeGroupSnapshot, DeleteVolumeGroupSnapshot and
// GetVolumeGroupSnapshot. Handlers: Threads: control. Blocks: never.
//
// A group is answered once its members are cut; it is ready once each of them is, and its call is
// repeated until then. The ids of its snapshots may be left out of a request; if they are there,
// they have to be its members, all of them. Errors for a caller are those of the engine;
// FailedPrecondition for an id of a pool that this node does not have. An id that is none of a
// group is NotFound, and success for a deletion. Source: CSI spec v1.13.0,
// "CreateVolumeGroupSnapshot", "DeleteVolumeGroupSnapshot", "GetVolumeGroupSnapshot".
void AddGroupRpcs(CsiHandlers& handlers, const SnapshotRpcParts& parts);

}  // namespace volumed
