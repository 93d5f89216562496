#include "volumehost/kubelet_paths.h"

#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace volumed {
namespace {

constexpr std::string_view kPods = "pods";
constexpr std::string_view kVolumes = "volumes";
constexpr std::string_view kPlugins = "plugins";
constexpr std::string_view kMounts = "mounts";
constexpr char kEscapedSlash = '~';  // see EscapeQualifiedName

// The elements of `path` below `root`; empty when it is not below. No element is empty, "." or
// "..".
std::vector<std::string> ElementsBelow(const std::string& root, const std::string& path) {
  if (path.size() <= root.size() + 1 || path.compare(0, root.size(), root) != 0 ||
      path[root.size()] != '/') {
    return {};
  }
  std::vector<std::string> elements = Split(std::string_view(path).substr(root.size() + 1), '/');
  for (const std::string& element : elements) {
    if (element.empty() || element == "." || element == "..") return {};
  }
  return elements;
}

// plugins / <esc plugin> / volumeDevices / <volume> / <pod uid>
bool IsBoundNode(const std::vector<std::string>& elements) {
  return elements.size() == 5 && elements[0] == kPlugins && elements[2] == kVolumeDevicesDirName &&
         elements[1].find(kEscapedSlash) != std::string::npos;
}

// plugins / <plugin, with its slash> / mounts / <volume>
std::optional<KubeletPaths::DeviceMount> MountedDeviceAt(const std::vector<std::string>& elements) {
  if (elements.size() != 5 || elements[0] != kPlugins || elements[3] != kMounts) {
    return std::nullopt;
  }
  return KubeletPaths::DeviceMount{elements[1] + "/" + elements[2], SpecName(elements[4]), false};
}

}  // namespace

KubeletPaths::KubeletPaths(std::string root, std::vector<DeviceLayout> layouts)
    : root_(std::move(root)), layouts_(std::move(layouts)) {}

SafePath KubeletPaths::GetPodsDir() const { return {root_, std::string(kPods)}; }

SafePath KubeletPaths::GetPodDir(const PodUid& pod) const { return GetPodsDir().Below(pod.str()); }

SafePath KubeletPaths::GetPodVolumesDir(const PodUid& pod) const {
  return GetPodDir(pod).Below(std::string(kVolumes));
}

SafePath KubeletPaths::GetPodVolumeDir(const PodUid& pod, const std::string& plugin,
                                       const SpecName& spec) const {
  return GetPodVolumesDir(pod).Below(EscapeQualifiedName(plugin)).Below(spec.str());
}

SafePath KubeletPaths::GetPodPluginDir(const PodUid& pod, const std::string& plugin,
                                       const SpecName& spec) const {
  return GetPodPluginDir(pod, plugin).Below(spec.str());
}

SafePath KubeletPaths::GetPodPluginDir(const PodUid& pod, const std::string& plugin) const {
  return GetPodDir(pod).Below("plugins").Below(EscapeQualifiedName(plugin));
}

SafePath KubeletPaths::GetPodVolumeDeviceDir(const PodUid& pod, const std::string& plugin) const {
  return GetPodVolumeDevicesDir(pod).Below(EscapeQualifiedName(plugin));
}

SafePath KubeletPaths::GetPodVolumeDevicesDir(const PodUid& pod) const {
  return GetPodDir(pod).Below(kVolumeDevicesDirName);
}

SafePath KubeletPaths::GetBlockMapDir(const std::string& plugin, const SpecName& volume) const {
  return GetVolumeDevicePluginDir(EscapeQualifiedName(plugin)).Below(volume.str());
}

SafePath KubeletPaths::GetPodVolumeSubpathsDir(const PodUid& pod) const {
  return GetPodDir(pod).Below("volume-subpaths");
}

SafePath KubeletPaths::GetPodVolumeSubpathDir(const PodUid& pod, const SpecName& spec,
                                              const std::string& container, int index) const {
  return GetPodVolumeSubpathsDir(pod)
      .Below(spec.str())
      .Below(container)
      .Below(std::to_string(index));
}

SafePath KubeletPaths::GetPluginsDir() const { return {root_, std::string(kPlugins)}; }

SafePath KubeletPaths::GetPluginDir(const std::string& plugin) const {
  return GetPluginsDir().Below(plugin);
}

SafePath KubeletPaths::GetVolumeDevicePluginDir(const std::string& plugin) const {
  return GetPluginDir(plugin).Below(kVolumeDevicesDirName);
}

SafePath KubeletPaths::AgentDir() const { return {root_, "volumed"}; }

SafePath KubeletPaths::GetDeviceMountDir(const std::string& plugin, const SpecName& volume) const {
  return GetPluginDir(plugin).Below(std::string(kMounts)).Below(volume.str());
}

Result<SafePath> KubeletPaths::BelowRoot(const std::string& absolute_path) const {
  if (ElementsBelow(root_, absolute_path).empty()) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "path \"" + absolute_path + "\" is not below " + root_);
  }
  return SafePath{root_, absolute_path.substr(root_.size() + 1)};
}

std::optional<KubeletPaths::DeviceMount> KubeletPaths::ParseDeviceMount(
    const std::string& absolute_path) const {
  const std::vector<std::string> elements = ElementsBelow(root_, absolute_path);
  std::optional<DeviceMount> device;
  if (IsBoundNode(elements)) {
    device = DeviceMount{UnescapeQualifiedName(elements[1]), SpecName(elements[3]), true};
  } else {
    device = MountedDeviceAt(elements);
    if (!elements.empty() && elements[0] == kPlugins) {
      const std::vector<std::string> below(elements.begin() + 1, elements.end());
      for (auto layout = layouts_.begin(); !device && layout != layouts_.end(); ++layout) {
        device = (*layout)(below);
      }
    }
  }
  if (!device) return std::nullopt;
  for (std::string* place : {&device->place, &device->pods_place, &device->node_place}) {
    if (!place->empty()) *place = GetPluginsDir().Below(*place).Display();
  }
  if (!device->place.empty()) return device;
  // A pod's node lies in the directory of its device.
  device->place =
      device->is_block ? absolute_path.substr(0, absolute_path.rfind('/')) : absolute_path;
  return device;
}

std::optional<KubeletPaths::PodVolume> KubeletPaths::ParsePodVolume(
    const std::string& absolute_path) const {
  const std::vector<std::string> elements = ElementsBelow(root_, absolute_path);
  if (IsBoundNode(elements)) {
    return PodVolume{PodUid(elements[4]), UnescapeQualifiedName(elements[1]), SpecName(elements[3]),
                     true};
  }
  // pods / <uid> / volumes / <esc plugin> / <spec name> [/ ...]
  if (elements.size() < 5 || elements[0] != kPods || elements[2] != kVolumes) return std::nullopt;
  return PodVolume{PodUid(elements[1]), UnescapeQualifiedName(elements[3]), SpecName(elements[4]),
                   false};
}

std::optional<PodUid> KubeletPaths::ParsePod(const std::string& absolute_path) const {
  const std::vector<std::string> elements = ElementsBelow(root_, absolute_path);
  if (elements.size() < 2 || elements[0] != kPods) return std::nullopt;
  return PodUid(elements[1]);
}

}  // namespace volumed
