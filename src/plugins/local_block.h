// Local volumes as raw block devices: the pod gets the device itself. Private to local.
// Source: kubernetes pkg/volume/local/local.go@v1.36.2 (localVolumeMapper, localVolumeUnmapper).
#pragma once

#include <string>

#include "blockmapper/block_volume_mapper.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Threads: one at a time. Blocks: only GetMetrics.
class LocalVolumeMapper final : public BlockVolumeMapper, public CustomBlockVolumeMapper {
 public:
  // REQUIRES: `spec` is a local persistent volume.
  LocalVolumeMapper(VolumeHost& host, VolumeSpec spec, PodUid pod);

  Result<SafePath> GetGlobalMapPath(const VolumeSpec& spec) const override;
  PodDeviceMapPath GetPodDeviceMapPath() const override;
  bool SupportsMetrics() const override { return true; }
  // Measures the pod's device node, so it works once the volume is mapped.
  Result<Metrics> GetMetrics(const CallOptions& call) override;
  CustomBlockVolumeMapper* AsCustom() override { return this; }

  // Does nothing: the node already has the device.
  Result<std::string> SetUpDevice(const CallOptions&) override { return std::string(); }
  // Returns the path of the volume's source. It is not looked at here.
  Result<std::string> MapPodDevice(const CallOptions&) override;
  bool MapPodDeviceHasEffects() const override { return false; }
  std::string GetStagingPath() const override { return ""; }

 private:
  VolumeHost& host_;
  const VolumeSpec spec_;
  const PodUid pod_;
};

// Takes a block volume away by its name and pod alone. Threads: one at a time. Blocks: only
// GetMetrics.
class LocalVolumeUnmapper final : public BlockVolumeUnmapper {
 public:
  LocalVolumeUnmapper(VolumeHost& host, SpecName spec, PodUid pod);

  Result<SafePath> GetGlobalMapPath(const VolumeSpec& spec) const override;
  PodDeviceMapPath GetPodDeviceMapPath() const override;
  Result<Metrics> GetMetrics(const CallOptions& call) override;

 private:
  VolumeHost& host_;
  const SpecName spec_;
  const PodUid pod_;
};

}  // namespace volumed
