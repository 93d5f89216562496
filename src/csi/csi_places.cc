#include "csi/csi_places.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "mounter/host_directory.h"
#include "mounter/mount_refs.h"
#include "volume/unique_name.h"

namespace volumed {
namespace {

// As the kernel's MAXSYMLINKS.
constexpr int kMostLinksOfPath = 40;

// Where the link leads; nullopt for what is no link, or is missing.
Result<std::optional<std::string>> LinkAt(Kernel& kernel, const std::string& path,
                                          const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mounted, FindMountAt(kernel, path, call));
  if (mounted) return std::optional<std::string>();
  const SafePath place = SplitLast(path);
  CallOptions look = call;
  look.domain = place.root;  // it hangs with that filesystem, and with no other
  Result<FileContent> link = kernel.Call(ReadLink{place}, look);
  if (link.ok()) return std::make_optional(std::move(link->bytes));
  const int why = link.error().sys_errno();
  if (why == EINVAL || why == ENOENT || why == ENOTDIR) return std::optional<std::string>();
  return link.error();
}

void AddElements(const std::string& path, std::vector<std::string>& left) {
  const std::vector<std::string> elements = SplitNonEmpty(path, '/');
  left.insert(left.end(), elements.rbegin(), elements.rend());
}

bool IsPathIn(const std::string& path, const std::string& directory) {
  return path == directory || directory == "/" || path.starts_with(directory + "/");
}

bool AnyMeets(const std::vector<std::string>& places, const std::string& path, std::string& place) {
  const auto found = std::find_if(places.begin(), places.end(), [&path](const std::string& one) {
    return IsPathIn(path, one) || IsPathIn(one, path);
  });
  if (found != places.end()) place = *found;
  return found != places.end();
}

std::vector<std::string> PlacesOf(const KubeletPaths& paths, const PodVolumeRecord& record) {
  const auto& [pod, spec] = record.key;
  std::vector<std::string> places = {
      paths.GetPodVolumeSubpathsDir(pod).Below(spec.str()).Display()};
  const bool is_csi = record.plugin_name == kCsiPluginName;
  if (!record.is_block) {
    places.push_back((is_csi ? CsiPodVolumeDir(paths, pod, spec)
                             : paths.GetPodVolumeDir(pod, record.plugin_name, spec))
                         .Display());
    return places;
  }
  places.push_back(
      paths.GetPodVolumeDeviceDir(pod, record.plugin_name).Below(spec.str()).Display());
  if (is_csi) places.push_back(CsiBlockPublishPath(paths, spec, pod).Display());
  return places;
}

void AddBlockPlaces(const KubeletPaths& paths, const SpecName& spec,
                    std::vector<std::string>& places) {
  places.push_back(CsiBlockDir(paths, spec).Display());
  places.push_back(CsiBlockStagingPath(paths, spec).Display());
  places.push_back(CsiBlockPublishDir(paths, spec).Display());
}

std::vector<std::string> PlacesOf(const KubeletPaths& paths, const DeviceRecord& record) {
  std::vector<std::string> places;
  if (!record.device_mount_path.empty()) places.push_back(record.device_mount_path);
  if (record.is_block && record.plugin_name == kCsiPluginName) {
    AddBlockPlaces(paths, record.spec, places);
  }
  return places;
}

// A block volume's bind for a pod lies in the volume's map.
std::vector<std::string> PlacesOf(const KubeletPaths& paths, const UnrecordedMount& mount) {
  std::vector<std::string> places = mount.places;
  if (mount.plugin != kCsiPluginName || mount.spec.empty()) return places;
  const std::string map = CsiBlockMapDir(paths, mount.spec).Display();
  const bool is_block = std::any_of(places.begin(), places.end(), [&map](const std::string& place) {
    return IsPathIn(place, map);
  });
  if (is_block) AddBlockPlaces(paths, mount.spec, places);
  return places;
}

// Under which names a start may have found the volume: its own, and those that stand for a place
// where nothing says whose it is.
std::vector<UniqueVolumeName> NamesFoundFor(const KubeletPaths& paths, const CsiVolumeId& volume,
                                            const SpecName& persistent_volume) {
  std::vector<UniqueVolumeName> names = {CsiUniqueName(volume.driver, volume.handle)};
  std::vector<SafePath> places = {CsiStagingPath(paths, volume.driver, volume.handle)};
  if (!persistent_volume.empty()) {
    places.push_back(CsiOldStagingPath(paths, persistent_volume));
    places.push_back(CsiBlockMapDir(paths, persistent_volume).Below("any"));
  }
  for (const SafePath& place : places) {
    const auto device = paths.ParseDeviceMount(place.Display());
    if (device) names.push_back(GetUniqueVolumeName(device->plugin, device->volume.str()));
  }
  return names;
}

// `path` is clean.
Result<std::string> WhoHasCleanPlace(const OperationParts& parts, const std::string& path,
                                     const CallOptions& call, bool but_at_path) {
  const KubeletPaths& paths = parts.host.paths;
  std::string who;
  std::string place;
  parts.volumes->HasAny([&](const PodVolumeRecord& record) {
    if (!AnyMeets(PlacesOf(paths, record), path, place)) return false;
    who = "pod " + record.pod_namespace + "/" + record.pod_name + " has volume " +
          record.key.spec.str() + " at " + place;
    return true;
  });
  if (!who.empty()) return who;
  parts.devices.HasAny([&](const DeviceRecord& record) {
    if (IsGone(record) || !AnyMeets(PlacesOf(paths, record), path, place)) return false;
    who = "this node has the device of volume " + record.spec.str() + " at " + place;
    return true;
  });
  if (!who.empty()) return who;
  const auto meets = [&](const UnrecordedMount& mount) {
    return AnyMeets(PlacesOf(paths, mount), path, place);
  };
  ASSIGN_OR_RETURN(const std::vector<UnrecordedMounts::Mounted> mounted,
                   parts.unrecorded->FindWhere(meets, parts.host.kernel, call));
  for (const UnrecordedMounts::Mounted& mount : mounted) {
    if (but_at_path && mount.mount_point == path) continue;
    return UnrecordedMounts::Describe(mount);
  }
  return std::string();
}

}  // namespace

Result<std::string> FindRealPath(Kernel& kernel, const std::string& path, const CallOptions& call) {
  std::vector<std::string> left;  // in reverse
  AddElements(path, left);
  std::string real;
  int links = 0;
  while (!left.empty()) {
    const std::string element = std::move(left.back());
    left.pop_back();
    if (element == ".") continue;
    if (element == "..") {
      if (!real.empty()) real.erase(real.rfind('/'));
      continue;
    }
    const std::string next = real + "/" + element;
    const Result<std::optional<std::string>> link = LinkAt(kernel, next, call);
    if (!link.ok()) {
      // It was but looked at.
      return Error::NotApplied(link.error().code(), "nobody can tell where " + path +
                                                        " leads: " + link.error().message());
    }
    if (!*link) {
      real = next;
      continue;
    }
    if (++links > kMostLinksOfPath) {
      return Error::NotApplied(Code::kFailedPrecondition, path + " leads through a loop of links");
    }
    if ((*link)->starts_with('/')) real.clear();
    AddElements(**link, left);
  }
  return real.empty() ? "/" : real;
}

Result<std::string> WhoHasPlace(const OperationParts& parts, const std::string& path,
                                const CallOptions& call, bool but_at_path) {
  if (!path.starts_with('/')) {
    return Error::NotApplied(Code::kInvalidArgument, path + " is no absolute path");
  }
  std::string clean = std::filesystem::path(path).lexically_normal().string();
  while (clean.size() > 1 && clean.back() == '/') clean.pop_back();
  ASSIGN_OR_RETURN(std::string who, WhoHasCleanPlace(parts, clean, call, but_at_path));
  if (!who.empty()) return who;
  ASSIGN_OR_RETURN(const std::string real, FindRealPath(parts.host.kernel, path, call));
  return WhoHasCleanPlace(parts, real, call, but_at_path);
}

Result<std::vector<UnrecordedMounts::Mounted>> FindUnrecorded(UnrecordedMounts& unrecorded,
                                                              const VolumeHost& host,
                                                              const CsiVolumeId& volume,
                                                              const SpecName& persistent_volume,
                                                              const CallOptions& call) {
  std::vector<UnrecordedMounts::Mounted> all;
  for (const UniqueVolumeName& name : NamesFoundFor(host.paths, volume, persistent_volume)) {
    ASSIGN_OR_RETURN(const std::vector<UnrecordedMounts::Mounted> some,
                     unrecorded.Find({name, kCsiPluginName, persistent_volume}, host.kernel, call));
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

bool IsCsiPlace(const KubeletPaths& paths, const CsiVolumeId& volume,
                const std::vector<PodVolumeKey>& pods, const std::string& path) {
  const auto is_it = [&path](const SafePath& place) { return place.Display() == path; };
  if (is_it(CsiStagingPath(paths, volume.driver, volume.handle))) return true;
  return std::any_of(pods.begin(), pods.end(), [&](const PodVolumeKey& key) {
    return is_it(CsiTargetPath(paths, key.pod, key.spec)) ||
           is_it(CsiBlockPublishPath(paths, key.spec, key.pod)) ||
           is_it(CsiBlockStagingPath(paths, key.spec)) || is_it(CsiOldStagingPath(paths, key.spec));
  });
}

}  // namespace volumed
