#include "operation/pod_directories.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "mounter/subpath.h"

namespace volumed {
namespace {

constexpr uint32_t kPodDirectoryMode = 0750;
constexpr std::string_view kVolumes = "volumes";
constexpr std::string_view kPlugins = "plugins";
constexpr std::string_view kSubpaths = "volume-subpaths";
constexpr std::string_view kVolumeDevices = "volumeDevices";
// Kubelet's own. Source: kubernetes pkg/kubelet/config/defaults.go@v1.36.2
// (DefaultKubeletContainersDirName), pkg/kubelet/kubelet_pods.go@v1.36.2 (getEtcHostsPath).
constexpr std::string_view kContainers = "containers";
constexpr std::string_view kEtcHosts = "etc-hosts";
// Source: kubernetes pkg/volume/util/util.go@v1.36.2 (readyFileName).
constexpr std::string_view kReadyMarker = "ready";

Error Foreign(const SafePath& path) {
  return Error::NotApplied(Code::kFailedPrecondition,
                           path.Display() +
                               " is not the agent's: it is left alone, and the pod's "
                               "directory with it");
}

// Empty when the directory is missing.
Result<std::vector<DirectoryEntry>> Entries(Kernel& kernel, const SafePath& directory,
                                            const CallOptions& call) {
  Result<DirectoryListing> listing = kernel.Call(ListDirectory{directory}, call);
  if (listing.ok()) return std::move(listing).value().entries;
  if (listing.error().code() == Code::kNotFound) return std::vector<DirectoryEntry>();
  return listing.error();
}

Status RemoveEmpty(Kernel& kernel, const SafePath& directory, const CallOptions& call) {
  RETURN_IF_ERROR(
      kernel.Call(RemoveDirectory{directory}, call).With("removing " + directory.Display()));
  return OkStatus();
}

// `remove` for each directory in `parent`, then `parent` itself. Anything but a directory is
// foreign.
Status RemoveChildren(Kernel& kernel, const SafePath& parent, const CallOptions& call,
                      const std::function<Status(const SafePath&)>& remove) {
  ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, Entries(kernel, parent, call));
  for (const DirectoryEntry& entry : entries) {
    const SafePath child = parent.Below(entry.name);
    if (entry.type != FileType::kDirectory) return Foreign(child);
    RETURN_IF_ERROR(remove(child));
  }
  return RemoveEmpty(kernel, parent, call);
}

// <plugins>/<plugin>/<spec name>, with at most a readiness marker in it.
Status RemoveMarkers(Kernel& kernel, const SafePath& directory, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, Entries(kernel, directory, call));
  for (const DirectoryEntry& entry : entries) {
    const SafePath marker = directory.Below(entry.name);
    if (entry.name != kReadyMarker || entry.type != FileType::kRegular) return Foreign(marker);
    RETURN_IF_ERROR(kernel.Call(RemoveFile{marker}, call));
  }
  return RemoveEmpty(kernel, directory, call);
}

// The two levels below `top`: <plugin>/<spec name>.
Status RemoveTwoLevels(Kernel& kernel, const SafePath& top, const CallOptions& call,
                       const std::function<Status(const SafePath&)>& remove) {
  return RemoveChildren(kernel, top, call, [&](const SafePath& plugin) {
    return RemoveChildren(kernel, plugin, call, remove);
  });
}

Status RemoveLinkless(Kernel& kernel, const SafePath& directory, const CallOptions& call) {
  return RemoveChildren(kernel, directory, call, Foreign);
}

Status RemoveSubpaths(Kernel& kernel, const KubeletPaths& paths, const PodUid& pod,
                      const CallOptions& call) {
  const SafePath top = paths.GetPodVolumeSubpathsDir(pod);
  ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> specs, Entries(kernel, top, call));
  for (const DirectoryEntry& spec : specs) {
    if (spec.type != FileType::kDirectory) return Foreign(top.Below(spec.name));
    RETURN_IF_ERROR(CleanSubPaths(kernel, paths, pod, SpecName(spec.name), call));
  }
  return RemoveEmpty(kernel, top, call);
}

Status RemovePlugins(Kernel& kernel, const SafePath& directory, PodDirectoryOwner owner,
                     const CallOptions& call) {
  switch (owner) {
    case PodDirectoryOwner::kAgent:
      return RemoveTwoLevels(kernel, directory, call, [&](const SafePath& markers) {
        return RemoveMarkers(kernel, markers, call);
      });
    case PodDirectoryOwner::kKubelet:
      RETURN_IF_ERROR(kernel.Call(RemoveTree{directory}, call));
      return OkStatus();
  }
  __builtin_unreachable();
}

bool IsKnown(const DirectoryEntry& entry, PodDirectoryOwner owner) {
  if (entry.type == FileType::kDirectory) {
    return entry.name == kVolumes || entry.name == kPlugins || entry.name == kSubpaths ||
           entry.name == kVolumeDevices ||
           (owner == PodDirectoryOwner::kKubelet && entry.name == kContainers);
  }
  return owner == PodDirectoryOwner::kKubelet && entry.name == kEtcHosts &&
         entry.type == FileType::kRegular;
}

}  // namespace

Status MakePodDirectories(Kernel& kernel, const KubeletPaths& paths, const PodUid& pod,
                          const CallOptions& call) {
  for (const std::string_view name : {kVolumes, kPlugins}) {
    const SafePath directory = paths.GetPodDir(pod).Below(std::string(name));
    RETURN_IF_ERROR(kernel.Call(
        MakeDirectory{
            .path = directory, .mode = kPodDirectoryMode, .parent_mode = kPodDirectoryMode},
        call));
  }
  return OkStatus();
}

Status RemovePodDirectories(Kernel& kernel, const KubeletPaths& paths, const PodUid& pod,
                            PodDirectoryOwner owner, const CallOptions& call) {
  const SafePath top = paths.GetPodDir(pod);
  ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, Entries(kernel, top, call));
  // First all names: with something foreign among them, as little as possible is touched.
  for (const DirectoryEntry& entry : entries) {
    if (!IsKnown(entry, owner)) return Foreign(top.Below(entry.name));
  }
  const auto has = [&](std::string_view name) {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const DirectoryEntry& entry) { return entry.name == name; });
  };
  // Volumes come first: while one of them cannot go, the rest stays with it.
  if (has(kSubpaths)) RETURN_IF_ERROR(RemoveSubpaths(kernel, paths, pod, call));
  if (has(kVolumes)) {
    RETURN_IF_ERROR(
        RemoveTwoLevels(kernel, top.Below(std::string(kVolumes)), call,
                        [&](const SafePath& volume) { return RemoveEmpty(kernel, volume, call); }));
  }
  if (has(kVolumeDevices)) {
    // The links in it are block volumes that are still there: they are named, and stay.
    RETURN_IF_ERROR(RemoveChildren(
        kernel, paths.GetPodVolumeDevicesDir(pod), call,
        [&](const SafePath& plugin) { return RemoveLinkless(kernel, plugin, call); }));
  }
  if (has(kPlugins)) {
    RETURN_IF_ERROR(RemovePlugins(kernel, top.Below(std::string(kPlugins)), owner, call));
  }
  if (has(kContainers)) {
    RETURN_IF_ERROR(kernel.Call(RemoveTree{top.Below(std::string(kContainers))}, call));
  }
  if (has(kEtcHosts)) {
    RETURN_IF_ERROR(kernel.Call(RemoveFile{top.Below(std::string(kEtcHosts))}, call));
  }
  return RemoveEmpty(kernel, top, call);
}

}  // namespace volumed
