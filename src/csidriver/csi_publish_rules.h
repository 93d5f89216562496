// What a NodePublishVolume is to a volume that is published on the node already: the table of the
// second publish.
//
// One cell is softer than the specification recommends: a kubelet without the capability
// SINGLE_NODE_MULTI_WRITER says SINGLE_NODE_WRITER for ReadWriteOnce, and publishes it once for
// each pod of the node that has the claim. Source: CSI spec v1.13.0, NodePublishVolume; kubernetes
// pkg/volume/csi/csi_client.go@v1.36 (asSingleNodeMultiWriterCapableCSIAccessModeV1,
// asCSIAccessModeV1).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "csidriver/csi_capability_wish.h"

namespace volumed {

// A place at which a volume is published, or is to be. The volume_context and the secrets of a
// request are no part of it, as tokens in them change from call to call.
struct CsiPublication {
  std::string target_path;
  CsiCapabilityWish capability;
  bool read_only = false;
};

enum class CsiPublishAnswer {
  kPublish,  // nothing is there: the volume is to be published
  kIsThere,  // this very publication: to make it again is no error
};

// Pure; threads: any. Blocks: never. `there` are the publications of this volume on this node, each
// at another target. Errors, not applied: AlreadyExists, if this target has the volume otherwise;
// FailedPrecondition, naming the other target, if the access mode of the one or of the other allows
// one place alone.
Result<CsiPublishAnswer> DecideCsiPublish(const CsiPublication& wanted,
                                          const std::vector<CsiPublication>& there);

// Whether a volume in this mode is at one target of a node and no more.
bool IsOneTargetMode(CsiAccessMode mode);

}  // namespace volumed
