// The requests to the controller's service of a CSI driver about a volume that there is, as
// external-attacher, external-resizer and external-provisioner make them.
//
// All functions are pure; threads: any. Blocks: never. What they answer has secrets in it: it is
// not to be logged, stored, or printed but by csi/rpc.
// Source: external-attacher@v4.10 (csi_handler.go), external-resizer@v2.1 (csi_resizer.go),
// external-provisioner@v6.1 (controller.go).
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "csi.pb.h"
#include "csi/csi_capabilities.h"
#include "csi/csi_driver_record.h"

namespace volumed {

// `node_id` is how the driver calls the node. Read-only is asked for of a driver with
// PUBLISH_READONLY alone. Errors: that of CsiControllerAccessMode().
Result<::csi::v1::ControllerPublishVolumeRequest> ControllerPublishRequest(
    const CsiDriverFacts& driver, const CsiVolume& volume, const std::string& node_id,
    const CsiSecretValues& secrets);
// REQUIRES: a node_id; without one it would be taken from all nodes.
::csi::v1::ControllerUnpublishVolumeRequest ControllerUnpublishRequest(
    const std::string& handle, const std::string& node_id, const CsiSecretValues& secrets);

// Errors: that of CsiControllerAccessMode().
Result<::csi::v1::ControllerExpandVolumeRequest> ControllerExpandRequest(
    const CsiDriverFacts& driver, const CsiVolume& volume, int64_t required_bytes,
    const CsiSecretValues& secrets);
Result<::csi::v1::ValidateVolumeCapabilitiesRequest> ValidateCapabilitiesRequest(
    const CsiDriverFacts& driver, const CsiVolume& volume, const CsiSecretValues& secrets);

::csi::v1::DeleteVolumeRequest ControllerDeleteRequest(const std::string& handle,
                                                       const CsiSecretValues& secrets);

}  // namespace volumed
