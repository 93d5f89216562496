// BlockVolumeMapper and BlockVolumeUnmapper: one raw block volume of one pod. What the two do is
// the same for every plugin (links and binds of a device node) and belongs to the pipeline; a
// plugin that has more to do is a custom one as well. Source: kubernetes
// pkg/volume/volume.go@v1.36.2 (BlockVolume, BlockVolumeMapper, CustomBlockVolumeMapper,
// BlockVolumeUnmapper, CustomBlockVolumeUnmapper).
#pragma once

#include <string>

#include "base/result.h"
#include "metrics/metrics_provider.h"
#include "os/kernel.h"
#include "volume/volume_spec.h"

namespace volumed {

// Where the pod's link to the device is: <directory>/<link_name>.
struct PodDeviceMapPath {
  SafePath directory;
  std::string link_name;
  friend bool operator==(const PodDeviceMapPath&, const PodDeviceMapPath&) = default;
};

// What the mapper and the unmapper of a volume share. Threads: one at a time. The paths never
// block.
class BlockVolume : public MetricsProvider {
 public:
  // plugins/<plugin>/volumeDevices/<volume>: has one bind of the device per pod.
  virtual Result<SafePath> GetGlobalMapPath(const VolumeSpec& spec) const = 0;
  // pods/<uid>/volumeDevices/<escaped plugin>, and the spec's name.
  virtual PodDeviceMapPath GetPodDeviceMapPath() const = 0;
  virtual bool SupportsMetrics() const { return false; }
};

// Threads: one call at a time per volume. Blocks: until the deadline. All are idempotent.
class CustomBlockVolumeMapper {
 public:
  virtual ~CustomBlockVolumeMapper() = default;
  // Prepares the device on the node; returns the staging path, or "" if there is none.
  virtual Result<std::string> SetUpDevice(const CallOptions& call) = 0;
  // Returns the path at which the pod's device is; "" stands for the path that attaching returned.
  virtual Result<std::string> MapPodDevice(const CallOptions& call) = 0;
  // The same for a volume that is set up, and mapped, as a certain record of this boot says: to be
  // proven on the node alone, without a call to a driver. If it cannot be, that is maybe applied,
  // and the next call is a whole one.
  virtual Result<std::string> SetUpDeviceAsRecorded(const CallOptions& call) {
    return SetUpDevice(call);
  }
  virtual Result<std::string> MapPodDeviceAsRecorded(const CallOptions& call) {
    return MapPodDevice(call);
  }
  // False if MapPodDevice only names a path: there is nothing then to be taken back.
  virtual bool MapPodDeviceHasEffects() const { return true; }
  virtual std::string GetStagingPath() const = 0;
};

class BlockVolumeMapper : public BlockVolume {
 public:
  // Null if the plugin adds nothing; owned by the mapper.
  virtual CustomBlockVolumeMapper* AsCustom() { return nullptr; }
};

// Threads: one call at a time per volume. Blocks: until the deadline. All are idempotent.
class CustomBlockVolumeUnmapper {
 public:
  virtual ~CustomBlockVolumeUnmapper() = default;
  // The inverse of SetUpDevice; it detaches too if the plugin has no Detacher.
  virtual Status TearDownDevice(const SafePath& map_path, const std::string& device_path,
                                const CallOptions& call) = 0;
  // The inverse of MapPodDevice.
  virtual Status UnmapPodDevice(const CallOptions& call) = 0;
};

// The inverse of BlockVolumeMapper, made from what is on disk.
class BlockVolumeUnmapper : public BlockVolume {
 public:
  virtual CustomBlockVolumeUnmapper* AsCustom() { return nullptr; }
};

}  // namespace volumed
