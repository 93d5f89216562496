#include "blockmapper/volume_path_handler.h"

#include <optional>
#include <utility>

namespace volumed {
namespace {

constexpr uint32_t kMapMode = 0750;  // of directories and of the files that nodes are bound onto
// No plugin puts its map directories deeper than this below its own directory.
constexpr int kMaxDepth = 8;

Result<FileInfo> Look(Kernel& kernel, const SafePath& path, const CallOptions& call) {
  return kernel.Call(Stat{.path = path}, call);
}

Status CheckBoundDevice(Kernel& kernel, const IdentifiedDevice& wanted, const SafePath& place,
                        const CallOptions& call) {
  ASSIGN_OR_RETURN(const IdentifiedDevice there, kernel.Call(IdentifyDevice{place}, call));
  const std::string difference = IdentityDifference(wanted.facts.identity, there.facts.identity);
  if (difference.empty()) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition, "the node at " + place.Display() +
                                                          " is another device than " + wanted.path +
                                                          ": " + difference);
}

// Returns the entries of a directory, or none if it is missing.
Result<std::vector<DirectoryEntry>> Entries(Kernel& kernel, const SafePath& directory,
                                            const CallOptions& call) {
  Result<DirectoryListing> listing = kernel.Call(ListDirectory{directory}, call);
  if (listing.ok()) return std::move(listing).value().entries;
  if (listing.error().code() == Code::kNotFound) return std::vector<DirectoryEntry>();
  return listing.error();
}

Result<std::optional<SafePath>> FindNode(Kernel& kernel, const SafePath& directory,
                                         const PodUid& pod, uint64_t device, int depth,
                                         const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, Entries(kernel, directory, call));
  for (const DirectoryEntry& entry : entries) {
    const SafePath place = directory.Below(entry.name);
    if (entry.type == FileType::kDirectory) {
      if (depth == kMaxDepth) continue;
      ASSIGN_OR_RETURN(std::optional<SafePath> found,
                       FindNode(kernel, place, pod, device, depth + 1, call));
      if (found) return found;
    } else if (entry.name == pod.str()) {
      ASSIGN_OR_RETURN(const FileInfo info, Look(kernel, place, call));
      if (info.type == FileType::kBlockDevice && info.device_number == device) {
        return std::optional<SafePath>(place);
      }
    }
  }
  return std::optional<SafePath>();
}

}  // namespace

Status VolumePathHandler::Bind(const IdentifiedDevice& device, const SafePath& place,
                               const CallOptions& call) {
  ASSIGN_OR_RETURN(const Changed made, kernel_.Call(MakeFile{place, kMapMode}, call));
  const Result<Done> bound = kernel_.Call(
      BindMount{
          .source = {device.path, ""}, .target = place, .expected_device = device.facts.identity},
      call);
  if (bound.ok()) return OkStatus();
  if (bound.error().maybe_applied() || !made.changed) return bound.error();
  // If the file could be removed, nothing of the map is left.
  if (kernel_.Call(RemoveFile{place}, call).ok()) return bound.error();
  return bound.error().AsMaybeApplied();
}

Status VolumePathHandler::MapDeviceByBind(const IdentifiedDevice& device, const SafePath& map_path,
                                          const std::string& link_name, const CallOptions& call) {
  RETURN_IF_ERROR(kernel_.Call(
      MakeDirectory{.path = map_path, .mode = kMapMode, .parent_mode = kMapMode}, call));
  const SafePath place = map_path.Below(link_name);
  ASSIGN_OR_RETURN(const FileInfo there, Look(kernel_, place, call));
  switch (there.type) {
    case FileType::kBlockDevice:
      return CheckBoundDevice(kernel_, device, place, call);
    case FileType::kMissing:
    case FileType::kRegular:
      return Bind(device, place, call);
    case FileType::kDirectory:
    case FileType::kSymlink:
    case FileType::kSocket:
    case FileType::kCharDevice:
    case FileType::kFifo:
      break;
  }
  return Error::NotApplied(Code::kAlreadyExists, place.Display() + " is a " +
                                                     std::string(FileTypeName(there.type)) +
                                                     ", and no place for a device");
}

Status VolumePathHandler::MapDeviceByLink(const std::string& device_path, const SafePath& map_path,
                                          const std::string& link_name, const CallOptions& call) {
  RETURN_IF_ERROR(kernel_.Call(
      MakeDirectory{.path = map_path, .mode = kMapMode, .parent_mode = kMapMode}, call));
  RETURN_IF_ERROR(kernel_.Call(MakeSymlink{map_path.Below(link_name), device_path}, call));
  return OkStatus();
}

Status VolumePathHandler::UnmapBoundDevice(const SafePath& map_path, const std::string& link_name,
                                           const CallOptions& call) {
  const SafePath place = map_path.Below(link_name);
  ASSIGN_OR_RETURN(const Changed unmounted, kernel_.Call(Unmount{.target = place}, call));
  const auto remove = [&]() -> Status {
    ASSIGN_OR_RETURN(const FileInfo there, Look(kernel_, place, call));
    // A node is bound onto an empty file: this one is somebody's.
    if (there.type == FileType::kRegular && there.size_bytes > 0) {
      return Error::NotApplied(Code::kFailedPrecondition,
                               place.Display() + " is a file of " +
                                   std::to_string(there.size_bytes) +
                                   " bytes, which is left as it is: move it away");
    }
    RETURN_IF_ERROR(kernel_.Call(RemoveFile{place}, call));
    return OkStatus();
  };
  const Status removed = remove();
  if (removed.ok()) return OkStatus();
  return unmounted.changed ? removed.error().AsMaybeApplied() : removed.error();
}

Status VolumePathHandler::UnmapLinkedDevice(const SafePath& map_path, const std::string& link_name,
                                            const CallOptions& call) {
  const SafePath place = map_path.Below(link_name);
  ASSIGN_OR_RETURN(const bool is_link, IsSymlinkExist(place, call));
  if (!is_link) return OkStatus();
  RETURN_IF_ERROR(kernel_.Call(RemoveFile{place}, call));
  return OkStatus();
}

Status VolumePathHandler::RemoveMapPath(const SafePath& map_path, const CallOptions& call) {
  RETURN_IF_ERROR(kernel_.Call(RemoveTree{map_path}, call));
  return OkStatus();
}

Result<bool> VolumePathHandler::IsSymlinkExist(const SafePath& path, const CallOptions& call) {
  ASSIGN_OR_RETURN(const FileInfo info, Look(kernel_, path, call));
  return info.type == FileType::kSymlink;
}

Result<bool> VolumePathHandler::IsDeviceBindMountExist(const SafePath& path,
                                                       const CallOptions& call) {
  ASSIGN_OR_RETURN(const FileInfo info, Look(kernel_, path, call));
  return info.type == FileType::kBlockDevice;
}

Result<std::vector<std::string>> VolumePathHandler::GetDeviceBindMountRefs(
    const SafePath& map_path, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, Entries(kernel_, map_path, call));
  std::vector<std::string> refs;
  for (const DirectoryEntry& entry : entries) {
    ASSIGN_OR_RETURN(const bool bound, IsDeviceBindMountExist(map_path.Below(entry.name), call));
    if (bound) refs.push_back(entry.name);
  }
  return refs;
}

Result<SafePath> VolumePathHandler::FindGlobalMapPathUUIDFromPod(const SafePath& plugin_dir,
                                                                 const SafePath& pod_link,
                                                                 const PodUid& pod,
                                                                 const CallOptions& call) {
  ASSIGN_OR_RETURN(const FileContent target, kernel_.Call(ReadLink{pod_link}, call));
  ASSIGN_OR_RETURN(
      const FileInfo device,
      kernel_.Call(Stat{.path = {target.bytes, "", Resolve::kBeneath}, .follow = true}, call));
  if (device.type == FileType::kBlockDevice) {
    ASSIGN_OR_RETURN(std::optional<SafePath> found,
                     FindNode(kernel_, plugin_dir, pod, device.device_number, 0, call));
    if (found) return *std::move(found);
  }
  return Error::NotApplied(Code::kNotFound, "no node of device " + target.bytes + " for pod " +
                                                pod.str() + " below " + plugin_dir.Display());
}

Result<bool> VolumePathHandler::DetachFileDevice(const SafePath& map_path,
                                                 const std::string& link_name,
                                                 const CallOptions& call) {
  ASSIGN_OR_RETURN(const Changed detached,
                   kernel_.Call(DetachLoops{map_path.Below(link_name)}, call));
  return detached.changed;
}

}  // namespace volumed
