#include "os/sub_paths.h"

#include <cerrno>
#include <cstdint>
#include <functional>

namespace volumed {
namespace {

constexpr uint32_t kTargetDirectoryMode = 0750;
constexpr uint32_t kTargetFileMode = 0640;

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
  for (bool has_unmounted = false;; has_unmounted = true) {
    const Result<Changed> unmounted = kernel.Call(Unmount{.target = target}, call);
    if (!unmounted.ok()) {
      return has_unmounted ? unmounted.error().AsMaybeApplied() : unmounted.error();
    }
    if (!unmounted->changed) return OkStatus();
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
// `has_unmounted` is set once a bind of something else is gone.
Result<bool> CheckExistingTarget(Kernel& kernel, const SafePath& target, const FileInfo& source,
                                 bool& has_unmounted, const CallOptions& call) {
  ASSIGN_OR_RETURN(FileInfo there, kernel.Call(Stat{.path = target}, call));
  if (there.is_mount_point) {
    if (there.device == source.device && there.inode == source.inode) return true;
    RETURN_IF_ERROR(UnmountAll(kernel, target, call));
    has_unmounted = true;
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

Result<Changed> UnmountBinds(Kernel& kernel, const SafePath& of_volume, const CallOptions& call) {
  ASSIGN_OR_RETURN(const bool there,
                   ForEachTarget(kernel, of_volume, call, [&](const SafePath& target, FileType) {
                     return UnmountAll(kernel, target, call);
                   }));
  return Changed{there};
}

Status RemoveDirectories(Kernel& kernel, const RemoveSubPaths& request, const CallOptions& call) {
  const auto remove = [&](const SafePath& target, FileType type) {
    return RemoveTarget(kernel, target, type, call);
  };
  const auto remove_parent = [&](const SafePath& directory) -> Status {
    RETURN_IF_ERROR(kernel.Call(RemoveDirectory{directory}, call));
    return OkStatus();
  };
  RETURN_IF_ERROR(ForEachTarget(kernel, request.of_volume, call, remove, remove_parent));
  RETURN_IF_ERROR(kernel.Call(RemoveDirectory{request.of_volume}, call));
  // The last volume takes the common directory along; with another one in it, it stays.
  const Result<Changed> removed = kernel.Call(RemoveDirectory{request.all}, call);
  if (!removed.ok() && removed.error().code() != Code::kFailedPrecondition) return removed.error();
  return OkStatus();
}

Result<Done> Prepare(Kernel& kernel, const PrepareSubPath& request, bool& has_unmounted,
                     const CallOptions& options) {
  // The volume's root becomes the border: were the agent's root the border, a link in the volume
  // could lead into another pod's.
  const SafePath source{request.volume.Display(), request.sub_path, Resolve::kBeneath};
  ASSIGN_OR_RETURN(const FileInfo info, ResolveSource(kernel, source, request.volume, options));
  ASSIGN_OR_RETURN(const bool present,
                   CheckExistingTarget(kernel, request.target, info, has_unmounted, options));
  if (present) return Done();
  RETURN_IF_ERROR(MakeTarget(kernel, request.parent, request.target, info.type, options));
  const Result<Done> bound =
      kernel.Call(BindMount{.source = source, .target = request.target}, options);
  if (bound.ok()) return Done();
  const Error failed = InWords(bound.error(), source);
  if (!bound.error().maybe_applied()) {
    // Best effort: a target that stays is found and used, or cleaned, by the next call.
    const FileType made =
        info.type == FileType::kDirectory ? FileType::kDirectory : FileType::kRegular;
    if (Status removed = RemoveTarget(kernel, request.target, made, options); !removed.ok()) {
      return failed.With("cleaning up failed too (" + removed.error().message() + ")");
    }
  }
  return failed;
}

}  // namespace

Result<Done> DoPrepareSubPath(Kernel& kernel, const PrepareSubPath& request,
                              const CallOptions& options) {
  bool has_unmounted = false;
  Result<Done> prepared = Prepare(kernel, request, has_unmounted, options);
  if (prepared.ok() || !has_unmounted) return prepared;
  return prepared.error().AsMaybeApplied();  // what the pod had there is gone
}

Result<Changed> DoRemoveSubPaths(Kernel& kernel, const RemoveSubPaths& request,
                                 const CallOptions& options) {
  // Every mount comes before the first directory.
  Result<Changed> there = UnmountBinds(kernel, request.of_volume, options);
  // Some of the mounts may be gone, whatever became of the last one.
  if (!there.ok()) return there.error().AsMaybeApplied();
  if (!there->changed || request.keep_directories) return there;
  if (const Status removed = RemoveDirectories(kernel, request, options); !removed.ok()) {
    return removed.error().AsMaybeApplied();
  }
  return there;
}

}  // namespace volumed
