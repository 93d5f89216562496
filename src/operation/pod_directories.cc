#include "operation/pod_directories.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace volumed {
namespace {

constexpr uint32_t kPodDirectoryMode = 0750;
constexpr const char* kVolumes = "volumes";
constexpr const char* kPlugins = "plugins";
constexpr const char* kSubpaths = "volume-subpaths";
constexpr const char* kVolumeDevices = "volumeDevices";
// Kubelet's own. Source: kubernetes pkg/kubelet/config/defaults.go@v1.36.2
// (DefaultKubeletContainersDirName), pkg/kubelet/kubelet_pods.go@v1.36.2 (getEtcHostsPath).
constexpr const char* kContainers = "containers";
constexpr const char* kEtcHosts = "etc-hosts";
// Source: kubernetes pkg/volume/util/util.go@v1.36.2 (readyFileName).
constexpr const char* kReadyMarker = "ready";

}  // namespace

std::vector<MakeDirectory> PodDirectoryEffects(const KubeletPaths& paths, const PodUid& pod) {
  std::vector<MakeDirectory> effects;
  for (const char* name : {kVolumes, kPlugins}) {
    effects.push_back({.path = paths.GetPodDir(pod).Below(name),
                       .mode = kPodDirectoryMode,
                       .parent_mode = kPodDirectoryMode});
  }
  return effects;
}

std::vector<MakeDirectory> TargetDirectoryEffects(const KubeletPaths& paths,
                                                  const VolumeTarget& target) {
  if (target.pod == nullptr) return {};
  return PodDirectoryEffects(paths, target.key.pod);
}

Status MakeTargetDirectories(const VolumeHost& host, const VolumeTarget& target,
                             const CallOptions& call) {
  if (target.pod == nullptr) return OkStatus();
  return MakePodDirectories(host.kernel, host.paths, target.key.pod, call);
}

Status MakePodDirectories(Kernel& kernel, const KubeletPaths& paths, const PodUid& pod,
                          const CallOptions& call) {
  for (const MakeDirectory& effect : PodDirectoryEffects(paths, pod)) {
    RETURN_IF_ERROR(kernel.Call(effect, call));
  }
  return OkStatus();
}

RemoveSkeleton PodRemovalEffect(const KubeletPaths& paths, const PodUid& pod,
                                PodDirectoryOwner owner) {
  using Kind = SkeletonPart::Kind;
  const bool is_kubelets = owner == PodDirectoryOwner::kKubelet;
  RemoveSkeleton effect{.path = paths.GetPodDir(pod), .parts = {}};
  std::vector<SkeletonPart>& parts = effect.parts;
  // Volumes come first: while one of them cannot go, the rest stays with it.
  parts.push_back({.name = kSubpaths, .kind = Kind::kBinds});
  parts.push_back({.name = kVolumes, .kind = Kind::kDirectories, .levels = 2});
  // The links in it are block volumes that are still there: they are named, and stay.
  parts.push_back(
      {.name = kVolumeDevices, .kind = Kind::kDirectories, .levels = 1, .leaf_files = {{}}});
  if (is_kubelets) {
    parts.push_back({.name = kPlugins, .kind = Kind::kTree});
    parts.push_back({.name = kContainers, .kind = Kind::kTree});
    parts.push_back({.name = kEtcHosts, .kind = Kind::kFile});
  } else {
    parts.push_back({.name = kPlugins,
                     .kind = Kind::kDirectories,
                     .levels = 2,
                     .leaf_files = {{kReadyMarker}}});
  }
  return effect;
}

Status RemovePodDirectories(Kernel& kernel, const KubeletPaths& paths, const PodUid& pod,
                            PodDirectoryOwner owner, const CallOptions& call) {
  RETURN_IF_ERROR(kernel.Call(PodRemovalEffect(paths, pod, owner), call));
  return OkStatus();
}

}  // namespace volumed
