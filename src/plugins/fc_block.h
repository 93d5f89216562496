// Fibre Channel volumes as raw block devices. Private to fc.
// Source: kubernetes pkg/volume/fc/fc.go@v1.36.2 (fcDiskMapper, fcDiskUnmapper).
#pragma once

#include <string>

#include "blockmapper/block_volume_mapper.h"
#include "plugins/fc_disk.h"
#include "volumehost/volume_host.h"

namespace volumed {

// The device is the one that WaitForAttach answered. Threads: one at a time. Blocks: only
// GetMetrics.
class FcMapper final : public BlockVolumeMapper {
 public:
  // REQUIRES: `spec` is an fc volume.
  FcMapper(VolumeHost& host, VolumeSpec spec, PodUid pod);

  Result<SafePath> GetGlobalMapPath(const VolumeSpec& spec) const override;
  PodDeviceMapPath GetPodDeviceMapPath() const override;
  bool SupportsMetrics() const override { return true; }
  Result<Metrics> GetMetrics(const CallOptions& call) override;

 private:
  VolumeHost& host_;
  const VolumeSpec spec_;
  const PodUid pod_;
};

class FcUnmapper final : public BlockVolumeUnmapper, public CustomBlockVolumeUnmapper {
 public:
  FcUnmapper(VolumeHost& host, FcDisks& disks, SpecName spec, PodUid pod);

  Result<SafePath> GetGlobalMapPath(const VolumeSpec& spec) const override;
  PodDeviceMapPath GetPodDeviceMapPath() const override;
  // Measures the device to which the pod's link leads.
  Result<Metrics> GetMetrics(const CallOptions& call) override;
  CustomBlockVolumeUnmapper* AsCustom() override { return this; }

  // Removes the volume's disks from the node; `map_path` tells their names.
  Status TearDownDevice(const SafePath& map_path, const std::string& device_path,
                        const CallOptions& call) override;
  Status UnmapPodDevice(const CallOptions&) override { return OkStatus(); }

 private:
  VolumeHost& host_;
  FcDisks& disks_;
  const SpecName spec_;
  const PodUid pod_;
};

}  // namespace volumed
