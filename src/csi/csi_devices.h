// Staging of CSI volumes: NodeStageVolume as MountDevice, NodeUnstageVolume as UnmountDevice.
// Source: kubernetes pkg/volume/csi/csi_attacher.go@v1.36.2 (MountDevice, UnmountDevice).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "attacher/attacher.h"
#include "base/result.h"
#include "csi/csi_capabilities.h"
#include "csi/csi_context.h"
#include "csi/csi_names.h"
#include "csi/csi_node_requests.h"
#include "kube/object_meta.h"
#include "operation/volume_record.h"
#include "os/kernel.h"

namespace volumed {

// What is on record of how a volume is on the node. Of an inline volume nothing is.
struct CsiStaging {
  StringMap publish_context;
  StagedState staged = StagedState::kNotKnown;
  SafePath path;  // where it is staged, or would be
  // What was mounted there by the record; nullopt: that is not on record.
  std::optional<MountedSource> source = {};
};

// A volume that a kubelet before 1.24 staged keeps the place that it has. Threads: any. Blocks:
// never. Errors, not applied: InvalidArgument if the recorded place is not below the root.
Result<CsiStaging> StagingOf(const CsiContext& context, const CsiVolume& volume);

// The staging path that NodePublishVolume is given; empty if the volume is not staged.
std::string StagingPathFor(const CsiDriverFacts& driver, const CsiStaging& staging);

// Calls the driver to stage at this place, with the fact on record before the call. REQUIRES: the
// wish has the place's path. Threads: one call at a time per volume. Blocks: until the deadline.
// Errors: those of the driver; that of DriverLied(); those of the record store, not applied.
Status StageVolume(const CsiContext& context, const CsiDriverFacts& driver, const CsiVolume& volume,
                   const CsiStageWish& wish, const SafePath& place, const CallOptions& call);

// Calls the driver to take back what it has staged there, if it has; the record decides, then
// whether the driver says that it stages. A driver that does not know the volume has taken it back
// if nothing is mounted there. Nothing is removed. Threads, Blocks: as above. Errors, besides:
// FailedPrecondition, not applied, if something is mounted that was not staged; Unavailable, not
// applied, if nobody knows whether it was.
Status UnstageVolume(const CsiContext& context, const CsiVolumeId& volume, const SafePath& place,
                     const CallOptions& call);

// The context outlives what is made.
//
// MountDevice makes the directories and vol_data.json, and calls the driver if it stages at all; if
// not, that goes on record and nothing is made. UnmountDevice knows the volume by vol_data.json.
// Errors of both: those of StageVolume() and UnstageVolume(); of UnmountDevice also
// FailedPrecondition, not applied, if something is mounted of which nothing says whose it is.
std::unique_ptr<DeviceMounter> MakeCsiStager(const CsiContext& context);
std::unique_ptr<DeviceUnmounter> MakeCsiUnstager(const CsiContext& context);

}  // namespace volumed
