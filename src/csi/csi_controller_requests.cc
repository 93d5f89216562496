#include "csi/csi_controller_requests.h"

#include "csi/request_maps.h"

namespace volumed {

Result<::csi::v1::ControllerPublishVolumeRequest> ControllerPublishRequest(
    const CsiDriverFacts& driver, const CsiVolume& volume, const std::string& node_id,
    const CsiSecretValues& secrets) {
  ::csi::v1::ControllerPublishVolumeRequest request;
  ASSIGN_OR_RETURN(*request.mutable_volume_capability(), CsiControllerCapability(driver, volume));
  request.set_volume_id(volume.handle);
  request.set_node_id(node_id);
  request.set_readonly(
      volume.source_read_only &&
      driver.HasController(::csi::v1::ControllerServiceCapability_RPC::PUBLISH_READONLY));
  PutSecrets(secrets, *request.mutable_secrets());
  PutTexts(volume.attributes, *request.mutable_volume_context());
  return request;
}

::csi::v1::ControllerUnpublishVolumeRequest ControllerUnpublishRequest(
    const std::string& handle, const std::string& node_id, const CsiSecretValues& secrets) {
  ::csi::v1::ControllerUnpublishVolumeRequest request;
  request.set_volume_id(handle);
  request.set_node_id(node_id);
  PutSecrets(secrets, *request.mutable_secrets());
  return request;
}

Result<::csi::v1::ControllerExpandVolumeRequest> ControllerExpandRequest(
    const CsiDriverFacts& driver, const CsiVolume& volume, int64_t required_bytes,
    const CsiSecretValues& secrets) {
  ::csi::v1::ControllerExpandVolumeRequest request;
  ASSIGN_OR_RETURN(*request.mutable_volume_capability(), CsiControllerCapability(driver, volume));
  request.set_volume_id(volume.handle);
  request.mutable_capacity_range()->set_required_bytes(required_bytes);
  PutSecrets(secrets, *request.mutable_secrets());
  return request;
}

Result<::csi::v1::ValidateVolumeCapabilitiesRequest> ValidateCapabilitiesRequest(
    const CsiDriverFacts& driver, const CsiVolume& volume, const CsiSecretValues& secrets) {
  ::csi::v1::ValidateVolumeCapabilitiesRequest request;
  ASSIGN_OR_RETURN(*request.add_volume_capabilities(), CsiControllerCapability(driver, volume));
  request.set_volume_id(volume.handle);
  PutTexts(volume.attributes, *request.mutable_volume_context());
  PutSecrets(secrets, *request.mutable_secrets());
  return request;
}

::csi::v1::DeleteVolumeRequest ControllerDeleteRequest(const std::string& handle,
                                                       const CsiSecretValues& secrets) {
  ::csi::v1::DeleteVolumeRequest request;
  request.set_volume_id(handle);
  PutSecrets(secrets, *request.mutable_secrets());
  return request;
}

}  // namespace volumed
