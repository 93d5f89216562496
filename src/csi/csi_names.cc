#include "csi/csi_names.h"

#include <algorithm>
#include <cstddef>

#include "base/strings.h"
#include "kube/digest.h"
#include "volume/driver_domain.h"
#include "volume/unique_name.h"

namespace volumed {
namespace {

constexpr char kVolumeNameSeparator = '^';
constexpr std::string_view kHashPrefix = "csi-";
constexpr char kGlobalMount[] = "globalmount";
constexpr char kOldStaged[] = "pv";
// Beside the directories of block volumes; each has something of every volume.
constexpr char kBlockStagingName[] = "staging";
constexpr char kBlockPublishName[] = "publish";
constexpr char kBlockMapName[] = "dev";
constexpr size_t kHashDigits = 64;

std::string Escaped(const SpecName& spec) { return EscapeQualifiedName(spec.str()); }

SafePath DevicesDir(const KubeletPaths& paths) {
  return paths.GetVolumeDevicePluginDir(kCsiPluginName);
}

bool IsHash(std::string_view text) {
  return text.size() == kHashDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

std::string CsiVolumeName(std::string_view driver, std::string_view handle) {
  return std::string(driver) + kVolumeNameSeparator + std::string(handle);
}

std::optional<CsiVolumeId> ParseCsiVolumeName(std::string_view volume_name) {
  const size_t at = volume_name.find(kVolumeNameSeparator);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const std::string_view driver = volume_name.substr(0, at);
  if (driver.find('/') != std::string_view::npos) return std::nullopt;
  return CsiVolumeId{std::string(driver), std::string(volume_name.substr(at + 1))};
}

UniqueVolumeName CsiUniqueName(std::string_view driver, std::string_view handle) {
  return GetUniqueVolumeName(kCsiPluginName, CsiVolumeName(driver, handle));
}

std::optional<CsiVolumeId> ParseCsiUniqueName(const UniqueVolumeName& unique) {
  const auto name = StripPrefix(unique.str(), std::string(kCsiPluginName) + "/");
  if (!name) return std::nullopt;
  return ParseCsiVolumeName(*name);
}

std::string CsiFullPluginName(const std::string& driver) {
  return GetFullQualifiedPluginName(kCsiPluginName, DriverDomain(driver));
}

std::string CsiHandleHash(std::string_view handle) { return Sha256Hex(handle); }

std::string CsiAttachmentName(std::string_view handle, std::string_view driver,
                              std::string_view node) {
  std::string text(handle);
  text += driver;
  text += node;
  return std::string(kHashPrefix) + Sha256Hex(text);
}

std::string CsiInlineHandle(const PodUid& pod, const SpecName& spec) {
  return std::string(kHashPrefix) + Sha256Hex(pod.str() + spec.str());
}

bool IsLikeCsiInlineHandle(std::string_view handle) {
  return handle.starts_with(kHashPrefix) && handle.size() == CsiInlineHandle({}, {}).size();
}

SafePath CsiStageDir(const KubeletPaths& paths, const std::string& driver,
                     const std::string& handle) {
  return paths.GetPluginDir(kCsiPluginName).Below(driver).Below(CsiHandleHash(handle));
}

SafePath CsiStagingPath(const KubeletPaths& paths, const std::string& driver,
                        const std::string& handle) {
  return CsiStageDir(paths, driver, handle).Below(kGlobalMount);
}

SafePath CsiOldStageDir(const KubeletPaths& paths, const SpecName& persistent_volume) {
  return paths.GetPluginDir(kCsiPluginName).Below(kOldStaged).Below(persistent_volume.str());
}

SafePath CsiOldStagingPath(const KubeletPaths& paths, const SpecName& persistent_volume) {
  return CsiOldStageDir(paths, persistent_volume).Below(kGlobalMount);
}

SafePath CsiPodVolumeDir(const KubeletPaths& paths, const PodUid& pod, const SpecName& spec) {
  return paths.GetPodVolumeDir(pod, kCsiPluginName, SpecName(Escaped(spec)));
}

SafePath CsiTargetPath(const KubeletPaths& paths, const PodUid& pod, const SpecName& spec) {
  return CsiPodVolumeDir(paths, pod, spec).Below("mount");
}

bool HasSharedBlockDir(const SpecName& spec) {
  return spec.str() == kBlockStagingName || spec.str() == kBlockPublishName;
}

SafePath CsiBlockDir(const KubeletPaths& paths, const SpecName& spec) {
  return DevicesDir(paths).Below(Escaped(spec));
}

SafePath CsiBlockMapDir(const KubeletPaths& paths, const SpecName& spec) {
  return CsiBlockDir(paths, spec).Below(kBlockMapName);
}

SafePath CsiBlockDataDir(const KubeletPaths& paths, const SpecName& spec) {
  return CsiBlockDir(paths, spec).Below("data");
}

SafePath CsiBlockStagingPath(const KubeletPaths& paths, const SpecName& spec) {
  return DevicesDir(paths).Below(kBlockStagingName).Below(spec.str());
}

SafePath CsiBlockPublishDir(const KubeletPaths& paths, const SpecName& spec) {
  return DevicesDir(paths).Below(kBlockPublishName).Below(spec.str());
}

SafePath CsiBlockPublishPath(const KubeletPaths& paths, const SpecName& spec, const PodUid& pod) {
  return CsiBlockPublishDir(paths, spec).Below(pod.str());
}

namespace {

// The device of a block volume with all its places; `pod` has it at the path that was asked about.
KubeletPaths::DeviceMount BlockDeviceOf(const std::string& spec, const std::string& pod) {
  const std::string devices =
      std::string(kCsiPluginName) + "/" + std::string(kVolumeDevicesDirName) + "/";
  const std::string directory = EscapeQualifiedName(spec);
  KubeletPaths::DeviceMount device{kCsiPluginName, SpecName("block/" + directory), true};
  device.place = devices + directory + "/" + kBlockMapName;
  device.pods_place = devices + kBlockPublishName + "/" + spec;
  device.node_place = devices + kBlockStagingName + "/" + spec;
  device.pod = PodUid(pod);
  return device;
}

// `elements` are kubernetes.io, csi, volumeDevices, and then <esc pv>, dev, <uid>, or publish,
// <pv>, <uid>, or staging, <pv>. A driver may have mounted something in the latter two.
std::optional<KubeletPaths::DeviceMount> BlockDeviceAt(const std::vector<std::string>& elements) {
  constexpr size_t kFirst = 3;
  constexpr size_t kSecond = 4;
  constexpr size_t kPod = 5;
  const std::string& first = elements[kFirst];
  const std::string& second = elements[kSecond];
  if (first == kBlockStagingName) return BlockDeviceOf(second, "");
  if (elements.size() <= kPod) return std::nullopt;
  if (first == kBlockPublishName) return BlockDeviceOf(second, elements[kPod]);
  if (elements.size() != kPod + 1 || second != kBlockMapName) return std::nullopt;
  return BlockDeviceOf(UnescapeQualifiedName(first), elements[kPod]);
}

}  // namespace

std::optional<KubeletPaths::DeviceMount> CsiDeviceAt(const std::vector<std::string>& elements) {
  // kubernetes.io, csi, and then what is called by its place here.
  constexpr size_t kFirst = 2;
  constexpr size_t kSecond = 3;
  constexpr size_t kThird = 4;
  if (elements.size() <= kThird || elements[0] + "/" + elements[1] != kCsiPluginName) {
    return std::nullopt;
  }
  const std::string& first = elements[kFirst];
  const std::string& second = elements[kSecond];
  if (first == kVolumeDevicesDirName) return BlockDeviceAt(elements);
  if (elements.size() != kThird + 1 || elements[kThird] != kGlobalMount) return std::nullopt;
  if (first != kOldStaged && !IsHash(second)) return std::nullopt;
  return KubeletPaths::DeviceMount{kCsiPluginName, SpecName("staged/" + first + "/" + second),
                                   false};
}

}  // namespace volumed
