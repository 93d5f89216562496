// What the requests of CSI for snapshots and groups of them ask for, in words of the engine, and
// what an answer says of them.
//
// All are pure; threads: any. Blocks: never.
#pragma once

#include "base/result.h"
#include "csi.pb.h"
#include "csidriver/csi_volume_wish.h"
#include "snapshot/snapshot_engine.h"

namespace volumed {

// Errors, not applied: InvalidArgument for a parameter that is not known, as all are but those of
// sidecars, which are passed over; ResourceExhausted, if no snapshot can be where it has to be.
Result<SnapshotWish> ParseCsiSnapshotWish(const ::csi::v1::CreateSnapshotRequest& request,
                                          const CsiPlaces& places);

// Errors, not applied: InvalidArgument for a parameter that is not known.
Result<SnapshotEngine::GroupWish> ParseCsiGroupWish(
    const ::csi::v1::CreateVolumeGroupSnapshotRequest& request);

// REQUIRES: it is cut (IsCut).
::csi::v1::Snapshot CsiSnapshotOf(const SnapshotRecord& record, const CsiPlaces& places);
// The moment is the one of its snapshots, and it is ready once each of them is.
::csi::v1::VolumeGroupSnapshot CsiGroupOf(const SnapshotGroupView& view, const CsiPlaces& places);

}  // namespace volumed
