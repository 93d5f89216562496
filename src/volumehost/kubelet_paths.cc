#include "volumehost/kubelet_paths.h"

#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "volumehost/fc_names.h"
#include "volumehost/iscsi_names.h"

namespace volumed {
namespace {

constexpr std::string_view kPods = "pods";
constexpr std::string_view kVolumes = "volumes";
constexpr std::string_view kPlugins = "plugins";
constexpr std::string_view kMounts = "mounts";
constexpr char kFlexVolume[] = "kubernetes.io/flexvolume";
// Source: kubernetes pkg/kubelet/config/defaults.go@v1.36.2 (DefaultKubeletVolumeDevicesDirName).
constexpr char kVolumeDevices[] = "volumeDevices";
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
  return elements.size() == 5 && elements[0] == kPlugins && elements[2] == kVolumeDevices &&
         elements[1].find(kEscapedSlash) != std::string::npos;
}

// plugins / kubernetes.io / fc / <names>, or ../ volumeDevices / <names> / <pod uid>
// plugins / <plugin, with its slash> / mounts / <volume>; the name of a flexVolume driver lies
// below that of all of them.
std::optional<KubeletPaths::DeviceMount> MountedDeviceAt(const std::vector<std::string>& elements) {
  const size_t size = elements.size();
  if (size < 5 || elements[0] != kPlugins || elements[size - 2] != kMounts) return std::nullopt;
  std::string plugin =
      Join(std::vector<std::string>(elements.begin() + 1, elements.end() - 2), "/");
  if (const auto driver = StripPrefix(plugin, std::string(kFlexVolume) + "/")) {
    plugin = std::string(*driver);
  } else if (size != 5) {
    return std::nullopt;
  }
  return KubeletPaths::DeviceMount{std::move(plugin), SpecName(elements.back()), false};
}

std::optional<KubeletPaths::DeviceMount> FcDeviceAt(const std::vector<std::string>& elements) {
  constexpr size_t kNames = 3;
  if (elements.size() <= kNames || elements[0] != kPlugins ||
      elements[1] + "/" + elements[2] != kFcPluginName) {
    return std::nullopt;
  }
  const bool is_block = elements[kNames] == kVolumeDevices;
  if (elements.size() != (is_block ? kNames + 3 : kNames + 1)) return std::nullopt;
  const FcNames names = ParseFcDirectoryName(elements[is_block ? kNames + 1 : kNames]);
  return KubeletPaths::DeviceMount{kFcPluginName, SpecName(FcVolumeName(names)), is_block};
}

// plugins / kubernetes.io / iscsi / iface-<iface> / <names>, or
// plugins / kubernetes.io / iscsi / volumeDevices / iface-<iface> / <names> / <pod uid>
std::optional<KubeletPaths::DeviceMount> IscsiDeviceAt(const std::vector<std::string>& elements) {
  constexpr size_t kIface = 3;
  if (elements.size() <= kIface || elements[0] != kPlugins ||
      elements[1] + "/" + elements[2] != kIscsiPluginName) {
    return std::nullopt;
  }
  const bool is_block = elements[kIface] == kVolumeDevices;
  if (elements.size() != (is_block ? kIface + 4 : kIface + 2)) return std::nullopt;
  const size_t at = is_block ? kIface + 1 : kIface;
  const auto names = ParseIscsiNames("/" + elements[at] + "/" + elements[at + 1]);
  if (!names) return std::nullopt;
  return KubeletPaths::DeviceMount{
      kIscsiPluginName, SpecName(IscsiVolumeName(names->portal, names->iqn, names->lun)), is_block};
}

}  // namespace

KubeletPaths::KubeletPaths(std::string root) : root_(std::move(root)) {}

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
  return GetPodDir(pod).Below(kVolumeDevices);
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
  return GetPluginDir(plugin).Below(kVolumeDevices);
}

SafePath KubeletPaths::AgentDir() const { return {root_, "volumed"}; }

SafePath KubeletPaths::GetDeviceMountDir(const std::string& plugin, const SpecName& volume) const {
  return GetPluginDir(plugin).Below(std::string(kMounts)).Below(volume.str());
}

SafePath KubeletPaths::GetFlexDeviceMountDir(const std::string& driver,
                                             const SpecName& volume) const {
  return GetDeviceMountDir(std::string(kFlexVolume) + "/" + driver, volume);
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
    if (!device) device = FcDeviceAt(elements);
    if (!device) device = IscsiDeviceAt(elements);
  }
  if (!device) return std::nullopt;
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
