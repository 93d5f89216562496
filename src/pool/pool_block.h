// A pool's volume as a raw block device. Private to PoolPlugin.
#pragma once

#include <string>

#include "blockmapper/block_volume_mapper.h"
#include "pool/pool_plugin.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Threads: one at a time. Blocks: GetMetrics and what has CallOptions, until the call's deadline.
class PoolVolumeMapper final : public BlockVolumeMapper, public CustomBlockVolumeMapper {
 public:
  // REQUIRES: PoolVolumeIdOf answers `id` for `spec`.
  PoolVolumeMapper(VolumeHost& host, const PoolPluginParts& parts, VolumeSpec spec, std::string id,
                   PodUid pod);

  // Errors: those of PoolVolumeIdOf.
  Result<SafePath> GetGlobalMapPath(const VolumeSpec& spec) const override;
  PodDeviceMapPath GetPodDeviceMapPath() const override;
  bool SupportsMetrics() const override { return true; }
  // Measures the pod's device node, so it works once the volume is mapped.
  Result<Metrics> GetMetrics(const CallOptions& call) override;
  CustomBlockVolumeMapper* AsCustom() override { return this; }

  // Opens the volume, read-only if its source says so. Errors: those of PoolVolumes::Open;
  // InvalidArgument, not applied, if it was made to have a filesystem.
  Result<std::string> SetUpDevice(const CallOptions& call) override;
  // The device, which is open since it was set up: nothing is to be taken back.
  Result<std::string> MapPodDevice(const CallOptions& call) override;
  bool MapPodDeviceHasEffects() const override { return false; }
  std::string GetStagingPath() const override { return ""; }

 private:
  Result<std::string> Open(const CallOptions& call);

  VolumeHost& host_;
  const PoolPluginParts& parts_;  // of the plugin, which outlives this
  const VolumeSpec spec_;
  const std::string id_;
  const PodUid pod_;
};

// Takes a block volume away by its places alone, or by the id that is on record. Threads: one at a
// time. Blocks: GetMetrics and TearDownDevice, until the call's deadline.
class PoolVolumeUnmapper final : public BlockVolumeUnmapper, public CustomBlockVolumeUnmapper {
 public:
  // An empty `id` is not known.
  PoolVolumeUnmapper(VolumeHost& host, const PoolPluginParts& parts, SpecName spec, PodUid pod,
                     std::string id);

  Result<SafePath> GetGlobalMapPath(const VolumeSpec& spec) const override;
  PodDeviceMapPath GetPodDeviceMapPath() const override;
  // Measures the device to which the pod's link leads.
  Result<Metrics> GetMetrics(const CallOptions& call) override;
  CustomBlockVolumeUnmapper* AsCustom() override { return this; }

  // Closes the volume. Errors: InvalidArgument, not applied, if the id is not known and the path is
  // no place of a pool's; those of PoolVolumes::Close.
  Status TearDownDevice(const SafePath& map_path, const std::string& device_path,
                        const CallOptions& call) override;
  Status UnmapPodDevice(const CallOptions&) override { return OkStatus(); }

 private:
  VolumeHost& host_;
  const PoolPluginParts& parts_;  // of the plugin, which outlives this
  const SpecName spec_;
  const PodUid pod_;
  const std::string id_;
};

}  // namespace volumed
