// KubeletPaths: every path below the agent's root, built and parsed back. The layout is kubelet's:
//
//   <root>/                                                    0750, a shared mount
//   <root>/pods/<uid>/                                         0750
//   <root>/pods/<uid>/volumes/<esc plugin>/<spec name>         the volume
//   <root>/pods/<uid>/plugins/<esc plugin>/<spec name>/ready   readiness marker of wrapped
//   emptyDirs <root>/pods/<uid>/volume-subpaths/<spec name>/<container>/<index of volumeMount>
//   <root>/pods/<uid>/volumeDevices/<esc plugin>/<spec name>   link to a block volume's device
//   <root>/plugins/                                            0750, per-plugin data
//   <root>/plugins/<plugin>/mounts/<volume>                    a device, mounted once for all pods
//   <root>/plugins/kubernetes.io/flexvolume/<driver>/mounts/<volume>   the same, of a flexVolume
//   <root>/plugins/<esc plugin>/volumeDevices/<volume>/<uid>   a block volume's device, bound
//   <root>/plugins/kubernetes.io/fc/<names>                    the same two of Fibre Channel
//   <root>/plugins/kubernetes.io/fc/volumeDevices/<names>/<uid>
// and the agent's own, which a kubelet does not have:
//   <root>/volumed/records.db, <root>/volumed/objects/, <root>/volumed/keys/,
//   <root>/volumed/tokens/
//
// Source: kubernetes pkg/kubelet/kubelet_getters.go@v1.36.2; reference table in docs/FILES.md.
#pragma once

#include <optional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// A value; threads: any; never touches the filesystem. Paths are SafePaths below the root.
class KubeletPaths {
 public:
  // `root` is absolute and clean.
  explicit KubeletPaths(std::string root);

  const std::string& root() const { return root_; }

  SafePath GetPodsDir() const;
  SafePath GetPodDir(const PodUid& pod) const;
  SafePath GetPodVolumesDir(const PodUid& pod) const;
  // <root>/pods/<uid>/volumes/<esc plugin>/<spec name>
  SafePath GetPodVolumeDir(const PodUid& pod, const std::string& plugin,
                           const SpecName& spec) const;
  // <root>/pods/<uid>/plugins/<esc plugin>/<spec name>
  SafePath GetPodPluginDir(const PodUid& pod, const std::string& plugin,
                           const SpecName& spec) const;
  // <root>/pods/<uid>/plugins/<esc plugin>
  SafePath GetPodPluginDir(const PodUid& pod, const std::string& plugin) const;
  // <root>/pods/<uid>/volumeDevices
  SafePath GetPodVolumeDevicesDir(const PodUid& pod) const;
  // <root>/pods/<uid>/volumeDevices/<esc plugin>
  SafePath GetPodVolumeDeviceDir(const PodUid& pod, const std::string& plugin) const;
  // <root>/pods/<uid>/volume-subpaths
  SafePath GetPodVolumeSubpathsDir(const PodUid& pod) const;
  SafePath GetPodVolumeSubpathDir(const PodUid& pod, const SpecName& spec,
                                  const std::string& container, int index) const;
  SafePath GetPluginsDir() const;
  // <root>/plugins/<plugin>: here the slash of the name is kept.
  SafePath GetPluginDir(const std::string& plugin) const;
  // <root>/plugins/<plugin>/mounts/<volume>
  SafePath GetDeviceMountDir(const std::string& plugin, const SpecName& volume) const;
  // <root>/plugins/kubernetes.io/flexvolume/<driver>/mounts/<volume>; "vendor/driver" keeps its
  // slash. Source: kubernetes pkg/volume/flexvolume/plugin.go@v1.36.2 (getDeviceMountPath).
  SafePath GetFlexDeviceMountDir(const std::string& driver, const SpecName& volume) const;
  // <root>/plugins/<esc plugin>/volumeDevices/<volume>: a block volume's global map directory.
  SafePath GetBlockMapDir(const std::string& plugin, const SpecName& volume) const;
  // <root>/plugins/<plugin>/volumeDevices
  SafePath GetVolumeDevicePluginDir(const std::string& plugin) const;
  SafePath AgentDir() const;  // <root>/volumed
  // A path that a record or the mount table names, for effects. InvalidArgument, not applied, when
  // it is not below the root, or not clean.
  Result<SafePath> BelowRoot(const std::string& absolute_path) const;

  struct PodVolume {
    PodUid pod;
    std::string plugin;
    SpecName spec;
    bool is_block = false;
    friend bool operator==(const PodVolume&, const PodVolume&) = default;
  };
  // The volume that an absolute path belongs to (it, or something in it), if it is one of ours; of
  // a block volume, the pod's node in the global map directory.
  std::optional<PodVolume> ParsePodVolume(const std::string& absolute_path) const;
  struct DeviceMount {
    std::string plugin;
    SpecName volume;         // as its plugin's GetVolumeName has it
    bool is_block = false;   // the path is a node in its global map directory
    std::string place = {};  // the device's mount, or the global map directory
    friend bool operator==(const DeviceMount&, const DeviceMount&) = default;
  };
  // The device that is, or was, mounted at exactly this absolute path, or that is bound there.
  std::optional<DeviceMount> ParseDeviceMount(const std::string& absolute_path) const;
  std::optional<PodUid> ParsePod(const std::string& absolute_path) const;

 private:
  std::string root_;
};

}  // namespace volumed
