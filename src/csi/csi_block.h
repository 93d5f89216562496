// CSI volumes as raw block devices: NodeStageVolume as SetUpDevice, NodePublishVolume as
// MapPodDevice, and their inverses.
// Source: kubernetes pkg/volume/csi/csi_block.go@v1.36.2.
#pragma once

#include <optional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "blockmapper/block_volume_mapper.h"
#include "csi/csi_capabilities.h"
#include "csi/csi_context.h"
#include "csi/csi_names.h"
#include "kube/objects.h"
#include "os/kernel.h"
#include "volume/volume_spec.h"

namespace volumed {

// MapPodDevice answers the path at which the driver has put the pod's device. That it is a block
// device is proven here; that it is the same one as before, and nobody else's, by the operation
// that holds it. No token is sent, as by kubelet.
// Errors of SetUpDevice and MapPodDevice: as CsiMounter has them; the ...AsRecorded() have
// Internal, maybe applied, if the volume is not as its record says. Threads: one call at a time per
// volume. Blocks: until the call's deadline.
class CsiBlockMapper final : public BlockVolumeMapper, public CustomBlockVolumeMapper {
 public:
  // The context outlives this object. `pod` is not null.
  CsiBlockMapper(const CsiContext& context, SpecName spec, CsiVolume volume, PodPtr pod);

  Result<SafePath> GetGlobalMapPath(const VolumeSpec& spec) const override;
  PodDeviceMapPath GetPodDeviceMapPath() const override;
  // Of the driver if it measures (GET_VOLUME_STATS), else the size of the pod's device node.
  bool SupportsMetrics() const override { return true; }
  Result<Metrics> GetMetrics(const CallOptions& options) override;
  CustomBlockVolumeMapper* AsCustom() override { return this; }

  Result<std::string> SetUpDevice(const CallOptions& call) override;
  Result<std::string> MapPodDevice(const CallOptions& call) override;
  Result<std::string> SetUpDeviceAsRecorded(const CallOptions& call) override;
  Result<std::string> MapPodDeviceAsRecorded(const CallOptions& call) override;
  std::string GetStagingPath() const override;

 private:
  SafePath Target() const;
  Status Publish(const CallOptions& call);

  const CsiContext& context_;
  const SpecName spec_;
  const CsiVolume volume_;
  const PodPtr pod_;
};

// Takes a block volume away by what the record says of it, else by vol_data.json.
// Errors: as CsiUnmounter has them. Threads: one call at a time per volume. Blocks: until the
// call's deadline.
class CsiBlockUnmapper final : public BlockVolumeUnmapper, public CustomBlockVolumeUnmapper {
 public:
  // `recorded` is what the volume's record says; nullopt if there is none. The context outlives
  // this object.
  CsiBlockUnmapper(const CsiContext& context, SpecName spec, PodUid pod,
                   std::optional<CsiVolumeId> recorded);

  Result<SafePath> GetGlobalMapPath(const VolumeSpec& spec) const override;
  PodDeviceMapPath GetPodDeviceMapPath() const override;
  // NotSupported, always: what is unmapped is not measured.
  Result<Metrics> GetMetrics(const CallOptions& options) override;
  CustomBlockVolumeUnmapper* AsCustom() override { return this; }

  Status UnmapPodDevice(const CallOptions& call) override;
  // Removes the map directory too, which nobody uses any more. REQUIRES: no pod has the device.
  Status TearDownDevice(const SafePath& map_path, const std::string& device_path,
                        const CallOptions& call) override;

 private:
  // Nullopt if nothing says which volume it is.
  Result<std::optional<CsiVolumeId>> Volume(const CallOptions& call) const;
  Status RemoveTarget(const CsiVolumeId& volume, const SafePath& target, const CallOptions& call);
  Status RemoveAll(const CallOptions& call);

  const CsiContext& context_;
  const SpecName spec_;
  const PodUid pod_;
  const std::optional<CsiVolumeId> recorded_;
};

}  // namespace volumed
