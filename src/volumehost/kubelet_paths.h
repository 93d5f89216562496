// KubeletPaths: builds every path below the agent's root, and parses such paths. The layout is
// kubelet's:
//
//   <root>/                                                    0750, a shared mount
//   <root>/pods/<uid>/                                         0750
//   <root>/pods/<uid>/volumes/<esc plugin>/<spec name>         the volume
//   <root>/pods/<uid>/plugins/<esc plugin>/<spec name>/ready   a wrapped emptyDir is ready
//   <root>/pods/<uid>/volume-subpaths/<spec name>/<container>/<index of volumeMount>
//   <root>/pods/<uid>/volumeDevices/<esc plugin>/<spec name>   link to a block volume's device
//   <root>/plugins/                                            0750, per-plugin data
//   <root>/plugins/<plugin>/mounts/<volume>                    a device, mounted once for all pods
//   <root>/plugins/<esc plugin>/volumeDevices/<volume>/<uid>   a block volume's device, bound
// Plugins whose devices lie in another way below plugins/ bring a DeviceLayout. And the agent's
// own, which a kubelet does not have:
//   <root>/volumed/records.db, <root>/volumed/objects/, <root>/volumed/keys/,
//   <root>/volumed/tokens/
//
// Source: kubernetes pkg/kubelet/kubelet_getters.go@v1.36.2; reference table in docs/FILES.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

// Source: kubernetes pkg/kubelet/config/defaults.go@v1.36.2 (DefaultKubeletVolumeDevicesDirName).
inline constexpr char kVolumeDevicesDirName[] = "volumeDevices";

// This is a value; threads: any. It never touches the filesystem. Paths are SafePaths below the
// root.
class KubeletPaths {
 public:
  // A device of a plugin, found again by a path.
  struct DeviceMount {
    std::string plugin;
    SpecName volume;  // as its plugin's GetVolumeName answers
    // The path is a device node in the volume's global map directory.
    bool is_block = false;
    std::string place = {};  // the device's mount, or the global map directory
    // Of a block volume: the name that its places have, if its plugin says it; else it is `volume`.
    std::optional<SpecName> spec = std::nullopt;
    // Of a block volume that its plugin has elsewhere, too: the directory in which each pod has it
    // by the pod's uid, and the place that it has for the node. Empty: there is none.
    std::string pods_place = {};
    std::string node_place = {};
    PodUid pod = {};  // of such a volume: what is at the path is this pod's; empty: the node's
    friend bool operator==(const DeviceMount&, const DeviceMount&) = default;
  };
  // Reads a path of a plugin whose devices lie in a way of their own: gets the elements below
  // <root>/plugins, none of which is empty, "." or ".."; nullopt for the paths of others. The
  // places in what it answers are below <root>/plugins, too; an empty `place` is the path itself,
  // or, of a block volume, the directory in which it lies. Pure.
  using DeviceLayout = std::optional<DeviceMount> (*)(const std::vector<std::string>& elements);

  // `root` is absolute and clean. `layouts` are asked for what does not lie in the common way.
  explicit KubeletPaths(std::string root, std::vector<DeviceLayout> layouts = {});

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
  // <root>/pods/<uid>/volume-subpaths/<spec name>/<container>/<index>; `index` is that of the
  // volumeMount in the container.
  SafePath GetPodVolumeSubpathDir(const PodUid& pod, const SpecName& spec,
                                  const std::string& container, int index) const;
  // <root>/plugins
  SafePath GetPluginsDir() const;
  // <root>/plugins/<plugin>: the slash of the plugin's name is kept here.
  SafePath GetPluginDir(const std::string& plugin) const;
  // <root>/plugins/<plugin>/mounts/<volume>
  SafePath GetDeviceMountDir(const std::string& plugin, const SpecName& volume) const;
  // <root>/plugins/<esc plugin>/volumeDevices/<volume>: a block volume's global map directory.
  SafePath GetBlockMapDir(const std::string& plugin, const SpecName& volume) const;
  // <root>/plugins/<plugin>/volumeDevices; `plugin` is written as it is, so a block volume's is
  // given escaped.
  SafePath GetVolumeDevicePluginDir(const std::string& plugin) const;
  SafePath AgentDir() const;  // <root>/volumed
  // A path that a record or the mount table names, in the form that effects take. Errors:
  // InvalidArgument, not applied, if it is the root itself, not below it, or not clean.
  Result<SafePath> BelowRoot(const std::string& absolute_path) const;

  // A pod's volume, found again by a path. `plugin` is the plugin's name, with its slash.
  struct PodVolume {
    PodUid pod;
    std::string plugin;
    SpecName spec;
    bool is_block = false;
    friend bool operator==(const PodVolume&, const PodVolume&) = default;
  };
  // The volume to which an absolute path belongs (the path is the volume's, or lies in it); for a
  // block volume, the pod's device node in the global map directory. nullopt for any other path.
  std::optional<PodVolume> ParsePodVolume(const std::string& absolute_path) const;
  // The device that is, or was, mounted or bound at exactly this absolute path, or, for a block
  // volume, in a place that its plugin has for it; nullopt for any other path.
  std::optional<DeviceMount> ParseDeviceMount(const std::string& absolute_path) const;
  // The pod whose directory an absolute path is, or lies in; nullopt for any other path.
  std::optional<PodUid> ParsePod(const std::string& absolute_path) const;

 private:
  std::string root_;
  std::vector<DeviceLayout> layouts_;
};

}  // namespace volumed
