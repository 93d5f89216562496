// Fibre Channel volumes as raw block devices. Private to fc.
// Source: kubernetes pkg/volume/fc/fc.go@v1.36.2 (fcDiskMapper, fcDiskUnmapper).
#pragma once

#include <string>

#include "blockmapper/block_volume_mapper.h"
#include "plugins/fc_disk.h"
#include "volumehost/volume_host.h"

namespace volumed {

// The device is the one that WaitForAttach answered. Threads: one at a time. Blocks: only
// GetMetrics. GetGlobalMapPath gives the errors of FcNamesOf, not applied.
class FcMapper final : public BlockVolumeMapper {
 public:
  // REQUIRES: `spec` is an fc volume.
  FcMapper(VolumeHost& host, VolumeSpec spec, PodUid pod);

  Result<SafePath> GetGlobalMapPath(const VolumeSpec& spec) const override;
  PodDeviceMapPath GetPodDeviceMapPath() const override;
  bool SupportsMetrics() const override { return true; }
  // Measures the pod's device node, so it works once the volume is mapped.
  Result<Metrics> GetMetrics(const CallOptions& call) override;

 private:
  VolumeHost& host_;
  const VolumeSpec spec_;
  const PodUid pod_;
};

// Takes a block volume away by its name and pod alone, without its spec. Threads: one at a time.
// Blocks: GetMetrics and TearDownDevice, until the call's deadline.
class FcUnmapper final : public BlockVolumeUnmapper, public CustomBlockVolumeUnmapper {
 public:
  FcUnmapper(VolumeHost& host, FcDisks& disks, SpecName spec, PodUid pod);

  Result<SafePath> GetGlobalMapPath(const VolumeSpec& spec) const override;
  PodDeviceMapPath GetPodDeviceMapPath() const override;
  // Measures the device to which the pod's link leads.
  Result<Metrics> GetMetrics(const CallOptions& call) override;
  CustomBlockVolumeUnmapper* AsCustom() override { return this; }

  // Removes the volume's disks from the node; `map_path` tells their names. `device_path` is the
  // device that pods had; if it is empty, a multipath device without paths is not found. Errors:
  // InvalidArgument, not applied, if the path is no place of fc's; those of FcDisks::Remove.
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
