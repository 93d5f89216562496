#include "mounter/subpath.h"

#include <cerrno>
#include <functional>

#include "base/strings.h"

namespace volumed {
namespace {

constexpr uint32_t kTargetDirectoryMode = 0750;
constexpr uint32_t kTargetFileMode = 0640;

// The same path without empty and "." elements; both are allowed in a manifest.
Result<std::string> CleanSubPath(const std::string& sub_path) {
  const auto refuse = [&](const std::string& reason) {
    return Error::NotApplied(Code::kInvalidArgument, "subPath \"" + sub_path + "\" " + reason);
  };
  if (sub_path.empty()) return refuse("is empty");
  if (sub_path[0] == '/') return refuse("must not be an absolute path");
  std::string cleaned;
  for (const std::string& element : Split(sub_path, '/')) {
    if (element == "..") return refuse("must not contain \"..\"");
    if (element.empty() || element == ".") continue;
    cleaned += cleaned.empty() ? element : "/" + element;
  }
  return cleaned;
}

// Only a link can lead out: the sub_path itself is clean, and the kernel keeps to the volume.
// Source: kubernetes pkg/volume/util/subpath/subpath_linux.go@v1.36.2 (safeOpenSubPath).
Error InWords(const Error& error, const SafePath& source) {
  if (error.sys_errno() != EXDEV) return error;
  return Error::FromParts(Code::kInvalidArgument, error.outcome(), EXDEV,
                          "subpath \"" + source.Display() + "\" not within volume path \"" +
                              source.root + "\": a link in it leads out of the volume");
}

// What sub_path is, made as a directory first where it is missing.
Result<FileInfo> ResolveSource(Kernel& kernel, const SafePath& source, const SafePath& volume_root,
                               const CallOptions& call) {
  const Stat stat{.path = source, .follow = true};
  const Result<FileInfo> looked = kernel.Call(stat, call);
  if (!looked.ok()) return InWords(looked.error(), source);
  const FileInfo& found = *looked;
  if (found.type != FileType::kMissing) return found;
  ASSIGN_OR_RETURN(const FileInfo root, kernel.Call(Stat{.path = volume_root}, call));
  const Result<Changed> directory =
      kernel.Call(MakeDirectory{.path = source, .mode = root.mode, .parent_mode = root.mode}, call);
  if (!directory.ok()) return InWords(directory.error(), source);
  ASSIGN_OR_RETURN(const FileInfo made, kernel.Call(stat, call));
  if (made.type == FileType::kMissing) {
    return Error::NotApplied(Code::kAborted, source.Display() + " was removed while it was made");
  }
  return made;
}

// Mounts can lie on top of each other; all of them go.
Status UnmountAll(Kernel& kernel, const SafePath& target, const CallOptions& call) {
  while (true) {
    ASSIGN_OR_RETURN(const Changed unmounted, kernel.Call(Unmount{.target = target}, call));
    if (!unmounted.changed) return OkStatus();
  }
}

Status RemoveTarget(Kernel& kernel, const SafePath& target, FileType type,
                    const CallOptions& call) {
  if (type == FileType::kDirectory) {
    RETURN_IF_ERROR(kernel.Call(RemoveDirectory{target}, call));
  } else if (type != FileType::kMissing) {
    RETURN_IF_ERROR(kernel.Call(RemoveFile{target}, call));
  }
  return OkStatus();
}

// True when `target` shows `source` already; otherwise nothing of the wrong kind is left there.
Result<bool> CheckExistingTarget(Kernel& kernel, const SafePath& target, const FileInfo& source,
                                 const CallOptions& call) {
  ASSIGN_OR_RETURN(FileInfo there, kernel.Call(Stat{.path = target}, call));
  if (there.is_mount_point) {
    if (there.device == source.device && there.inode == source.inode) return true;
    RETURN_IF_ERROR(UnmountAll(kernel, target, call));
    ASSIGN_OR_RETURN(there, kernel.Call(Stat{.path = target}, call));
  }
  const bool wants_directory = source.type == FileType::kDirectory;
  const bool fits =
      wants_directory ? there.type == FileType::kDirectory : there.type == FileType::kRegular;
  if (!fits) RETURN_IF_ERROR(RemoveTarget(kernel, target, there.type, call));
  return false;
}

Status MakeTarget(Kernel& kernel, const SafePath& parent, const SafePath& target,
                  FileType source_type, const CallOptions& call) {
  RETURN_IF_ERROR(kernel.Call(
      MakeDirectory{
          .path = parent, .mode = kTargetDirectoryMode, .parent_mode = kTargetDirectoryMode},
      call));
  if (source_type == FileType::kDirectory) {
    RETURN_IF_ERROR(kernel.Call(
        MakeDirectory{.path = target, .mode = kTargetDirectoryMode, .parent_mode = {}}, call));
  } else {
    RETURN_IF_ERROR(kernel.Call(MakeFile{.path = target, .mode = kTargetFileMode}, call));
  }
  return OkStatus();
}

// `visit` for each target of a volume, and `leave` for each container's directory after its last
// one. False: there is no directory of the volume.
Result<bool> ForEachTarget(
    Kernel& kernel, const SafePath& of_volume, const CallOptions& call,
    const std::function<Status(const SafePath&, FileType)>& visit,
    const std::function<Status(const SafePath&)>& leave = [](const SafePath&) {
      return OkStatus();
    }) {
  const Result<DirectoryListing> containers = kernel.Call(ListDirectory{of_volume}, call);
  if (!containers.ok()) {
    if (containers.error().code() == Code::kNotFound) return false;
    return containers.error();
  }
  for (const DirectoryEntry& container : containers->entries) {
    const SafePath directory = of_volume.Below(container.name);
    ASSIGN_OR_RETURN(const DirectoryListing mounts, kernel.Call(ListDirectory{directory}, call));
    for (const DirectoryEntry& mount : mounts.entries) {
      RETURN_IF_ERROR(visit(directory.Below(mount.name), mount.type));
    }
    RETURN_IF_ERROR(leave(directory));
  }
  return true;
}

}  // namespace

Result<SafePath> PrepareSafeSubpath(Kernel& kernel, const KubeletPaths& paths,
                                    const SafeSubpathRequest& request, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::string sub_path, CleanSubPath(request.sub_path));
  // The volume's root becomes the border: were the agent's root the border, a link in the volume
  // could lead into another pod's.
  const SafePath source{request.volume.Display(), sub_path, Resolve::kBeneath};
  ASSIGN_OR_RETURN(const FileInfo info, ResolveSource(kernel, source, request.volume, call));

  const SafePath target =
      paths.GetPodVolumeSubpathDir(request.pod, request.spec, request.container, request.index);
  const SafePath parent =
      paths.GetPodVolumeSubpathsDir(request.pod).Below(request.spec.str()).Below(request.container);
  ASSIGN_OR_RETURN(const bool present, CheckExistingTarget(kernel, target, info, call));
  if (present) return target;
  RETURN_IF_ERROR(MakeTarget(kernel, parent, target, info.type, call));
  const Result<Done> bound = kernel.Call(BindMount{.source = source, .target = target}, call);
  if (bound.ok()) return target;
  const Error failed = InWords(bound.error(), source);
  if (!bound.error().maybe_applied()) {
    // Best effort: a target that stays is found and used, or cleaned, by the next call.
    const FileType made =
        info.type == FileType::kDirectory ? FileType::kDirectory : FileType::kRegular;
    if (Status removed = RemoveTarget(kernel, target, made, call); !removed.ok()) {
      return failed.With("cleaning up failed too (" + removed.error().message() + ")");
    }
  }
  return failed;
}

Result<bool> UnmountSubPaths(Kernel& kernel, const KubeletPaths& paths, const PodUid& pod,
                             const SpecName& spec, const CallOptions& call) {
  const SafePath of_volume = paths.GetPodVolumeSubpathsDir(pod).Below(spec.str());
  ASSIGN_OR_RETURN(const bool there,
                   ForEachTarget(kernel, of_volume, call, [&](const SafePath& target, FileType) {
                     return UnmountAll(kernel, target, call);
                   }));
  return there;
}

Status CleanSubPaths(Kernel& kernel, const KubeletPaths& paths, const PodUid& pod,
                     const SpecName& spec, const CallOptions& call) {
  const SafePath all = paths.GetPodVolumeSubpathsDir(pod);
  const SafePath of_volume = all.Below(spec.str());
  // Every mount before the first directory.
  ASSIGN_OR_RETURN(const bool there, UnmountSubPaths(kernel, paths, pod, spec, call));
  if (!there) return OkStatus();
  const auto remove = [&](const SafePath& target, FileType type) {
    return RemoveTarget(kernel, target, type, call);
  };
  const auto remove_parent = [&](const SafePath& directory) -> Status {
    RETURN_IF_ERROR(kernel.Call(RemoveDirectory{directory}, call));
    return OkStatus();
  };
  RETURN_IF_ERROR(ForEachTarget(kernel, of_volume, call, remove, remove_parent));
  RETURN_IF_ERROR(kernel.Call(RemoveDirectory{of_volume}, call));
  // The last volume takes the common directory along; with another one in it, it stays.
  const Result<Changed> removed = kernel.Call(RemoveDirectory{all}, call);
  if (!removed.ok() && removed.error().code() != Code::kFailedPrecondition) return removed.error();
  return OkStatus();
}

}  // namespace volumed
