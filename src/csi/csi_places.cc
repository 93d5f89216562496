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
#include "os/mount_index.h"
#include "volume/storage_name.h"
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

bool IsPartIn(const FilesystemPart& part, const FilesystemPart& whole) {
  return part.device_major == whole.device_major && part.device_minor == whole.device_minor &&
         IsAtOrBelow(part.root, whole.root);
}

// What a path is, through whichever mount it is named: the part of a filesystem that shows there,
// and, if that is mounted there, what each mount lies upon.
void AddPartsAt(const MountSnapshot& mounts, const std::string& path,
                std::vector<FilesystemPart>& shown) {
  const MountEntry* mount = mounts.FindCovering(path);
  while (mount != nullptr && IsAtOrBelow(path, mount->mount_point)) {
    shown.push_back(PartAt(*mount, path));
    const bool is_upon = mount->mount_point == path && mount->parent_id != mount->mount_id;
    mount = is_upon ? mounts.FindById(mount->parent_id) : nullptr;
  }
}

// The same with all that is mounted below the path.
std::vector<FilesystemPart> ShownAt(const MountSnapshot& mounts, const std::string& path) {
  std::vector<FilesystemPart> shown;
  AddPartsAt(mounts, path, shown);
  for (const MountEntry& below : mounts.Find(ListMounts{.below = path})) {
    if (below.mount_point != path) AddPartsAt(mounts, below.mount_point, shown);
  }
  return shown;
}

// A path that somebody asks about: its name, which is clean, and what it shows.
struct AskedPath {
  std::string path;
  const MountSnapshot& mounts;
  std::vector<FilesystemPart> shown = {};  // empty: it counts by its name alone

  // Whether it is the place, or lies in it, or above it.
  bool Meets(const std::string& place) const {
    if (IsAtOrBelow(path, place) || IsAtOrBelow(place, path)) return true;
    if (shown.empty() || !place.starts_with('/')) return false;
    const std::vector<FilesystemPart> there = ShownAt(mounts, place);
    return std::any_of(shown.begin(), shown.end(), [&there](const FilesystemPart& part) {
      return std::any_of(there.begin(), there.end(), [&part](const FilesystemPart& other) {
        return IsPartIn(part, other) || IsPartIn(other, part);
      });
    });
  }
};

bool AnyMeets(const std::vector<std::string>& places, const AskedPath& asked, std::string& place) {
  const auto found = std::find_if(places.begin(), places.end(),
                                  [&asked](const std::string& one) { return asked.Meets(one); });
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
    return IsAtOrBelow(place, map);
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

// A pod's inline volume has no device, and its handle is made of its pod and name. Which driver has
// it need not be known: it has no other handle. What does not say which volume it is may be one.
bool MayBeInline(const UnrecordedMount& mount, const std::string& handle) {
  const bool is_of_csi = mount.plugin == kCsiPluginName || mount.plugin.empty();
  return is_of_csi && mount.volume.empty() && !mount.pod.empty() && !mount.is_block &&
         CsiInlineHandle(mount.pod, mount.spec) == handle;
}

Result<std::string> WhoHasAskedPath(const OperationParts& parts, const AskedPath& asked,
                                    const CallOptions& call,
                                    const std::vector<std::string>& but_at) {
  const KubeletPaths& paths = parts.host.paths;
  std::string who;
  std::string place;
  parts.volumes->HasAny([&](const PodVolumeRecord& record) {
    if (!AnyMeets(PlacesOf(paths, record), asked, place)) return false;
    who = "pod " + record.pod_namespace + "/" + record.pod_name + " has volume " +
          record.key.spec.str() + " at " + place;
    return true;
  });
  if (!who.empty()) return who;
  parts.devices.HasAny([&](const DeviceRecord& record) {
    if (IsGone(record) || !AnyMeets(PlacesOf(paths, record), asked, place)) return false;
    who = "this node has the device of volume " + record.spec.str() + " at " + place;
    return true;
  });
  if (!who.empty()) return who;
  const auto meets = [&](const UnrecordedMount& mount) {
    return AnyMeets(PlacesOf(paths, mount), asked, place);
  };
  ASSIGN_OR_RETURN(const std::vector<UnrecordedMounts::Mounted> mounted,
                   parts.unrecorded->FindWhere(meets, parts.host.kernel, call));
  for (const UnrecordedMounts::Mounted& mount : mounted) {
    const bool counts = std::find(but_at.begin(), but_at.end(), mount.mount_point) == but_at.end();
    if (counts) return UnrecordedMounts::Describe(mount);
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

Result<std::string> WhoHasPlace(const OperationParts& parts, const MountSnapshot& mounts,
                                const std::string& path, const CallOptions& call,
                                const std::vector<std::string>& but_at) {
  if (!path.starts_with('/')) {
    return Error::NotApplied(Code::kInvalidArgument, path + " is no absolute path");
  }
  std::string clean = std::filesystem::path(path).lexically_normal().string();
  while (clean.size() > 1 && clean.back() == '/') clean.pop_back();
  // What shows there may be told only of a path without links.
  const AskedPath by_name{.path = std::move(clean), .mounts = mounts};
  ASSIGN_OR_RETURN(std::string who, WhoHasAskedPath(parts, by_name, call, but_at));
  if (!who.empty()) return who;
  ASSIGN_OR_RETURN(std::string real, FindRealPath(parts.host.kernel, path, call));
  std::vector<FilesystemPart> shown = ShownAt(mounts, real);
  const AskedPath asked{.path = std::move(real), .mounts = mounts, .shown = std::move(shown)};
  return WhoHasAskedPath(parts, asked, call, but_at);
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
  if (!IsLikeCsiInlineHandle(volume.handle)) return all;
  const auto is_it = [&volume](const UnrecordedMount& mount) {
    return MayBeInline(mount, volume.handle);
  };
  ASSIGN_OR_RETURN(const std::vector<UnrecordedMounts::Mounted> of_pod,
                   unrecorded.FindWhere(is_it, host.kernel, call));
  all.insert(all.end(), of_pod.begin(), of_pod.end());
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
