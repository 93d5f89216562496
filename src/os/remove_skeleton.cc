#include "os/remove_skeleton.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "os/sub_paths.h"

namespace volumed {
namespace {

Error Foreign(const SafePath& path) {
  return Error::NotApplied(Code::kFailedPrecondition,
                           path.Display() +
                               " is not the agent's: it is left alone, and the "
                               "directory that it lies in with it");
}

// One RemoveSkeleton.
class Removal {
 public:
  Removal(Kernel& kernel, const CallOptions& options) : kernel_(kernel), options_(options) {}

  Result<Changed> Run(const RemoveSkeleton& request) {
    Result<Changed> done = RemoveAll(request);
    if (done.ok() || !has_removed_) return done;
    return done.error().AsMaybeApplied();
  }

 private:
  Result<Changed> RemoveAll(const RemoveSkeleton& request) {
    RETURN_IF_ERROR(RefuseMount(request.path));
    ASSIGN_OR_RETURN(const auto entries, Entries(request.path));
    if (!entries && !request.synced) return Changed{false};
    if (!entries) return Take(RemoveDirectory{.path = request.path, .synced = true});
    // First all names: with something foreign among them, as little as possible is touched.
    for (const DirectoryEntry& entry : *entries) {
      if (!IsKnown(request, entry)) return Foreign(request.path.Below(entry.name));
    }
    for (const SkeletonPart& part : request.parts) {
      const bool there = std::any_of(entries->begin(), entries->end(),
                                     [&](const auto& entry) { return entry.name == part.name; });
      if (there) RETURN_IF_ERROR(RemovePart(request.path.Below(part.name), part));
    }
    RETURN_IF_ERROR(RemoveEmpty(request.path, request.synced));
    return Changed{true};
  }

  // Every removal goes through here.
  template <typename Request>
  Result<Changed> Take(const Request& request) {
    Result<Changed> taken = kernel_.Call(request, options_);
    has_removed_ = has_removed_ || (taken.ok() && taken->changed);
    return taken;
  }

  // Nothing if the directory is missing.
  Result<std::optional<std::vector<DirectoryEntry>>> Entries(const SafePath& directory) {
    Result<DirectoryListing> listing = kernel_.Call(ListDirectory{directory}, options_);
    if (listing.ok()) return std::optional(std::move(listing)->entries);
    if (listing.error().code() == Code::kNotFound) {
      return std::optional<std::vector<DirectoryEntry>>();
    }
    return listing.error();
  }

  // What is mounted over a directory is somebody's: nothing in it is the agent's.
  Status RefuseMount(const SafePath& directory) {
    ASSIGN_OR_RETURN(const FileInfo info,
                     kernel_.Call(Stat{.path = directory, .only_mount_point = true}, options_));
    if (!info.is_mount_point) return OkStatus();
    return Error::NotApplied(Code::kFailedPrecondition,
                             "something is mounted over " + directory.Display() +
                                 ", and covers what the pod has there: unmount it");
  }

  static bool IsKnown(const RemoveSkeleton& request, const DirectoryEntry& entry) {
    return std::any_of(request.parts.begin(), request.parts.end(), [&](const SkeletonPart& part) {
      const FileType wanted =
          part.kind == SkeletonPart::Kind::kFile ? FileType::kRegular : FileType::kDirectory;
      return part.name == entry.name && entry.type == wanted;
    });
  }

  Status RemovePart(const SafePath& path, const SkeletonPart& part) {
    if (part.kind != SkeletonPart::Kind::kFile) RETURN_IF_ERROR(RefuseMount(path));
    switch (part.kind) {
      case SkeletonPart::Kind::kDirectories:
        return RemoveLevels(path, part, part.levels);
      case SkeletonPart::Kind::kBinds:
        return RemoveBinds(path);
      case SkeletonPart::Kind::kTree:
        RETURN_IF_ERROR(Take(RemoveTree{path}));
        return OkStatus();
      case SkeletonPart::Kind::kFile:
        RETURN_IF_ERROR(Take(RemoveFile{path}));
        return OkStatus();
    }
    __builtin_unreachable();
  }

  Status RemoveLevels(const SafePath& directory, const SkeletonPart& part, int levels) {
    if (levels == 0 && !part.leaf_files) return RemoveEmpty(directory);
    ASSIGN_OR_RETURN(const auto entries, Entries(directory));
    if (!entries) return OkStatus();
    for (const DirectoryEntry& entry : *entries) {
      const SafePath child = directory.Below(entry.name);
      if (levels > 0) {
        if (entry.type != FileType::kDirectory) return Foreign(child);
        if (levels > 1 || part.leaf_files) RETURN_IF_ERROR(RefuseMount(child));
        RETURN_IF_ERROR(RemoveLevels(child, part, levels - 1));
        continue;
      }
      const std::vector<std::string>& files = *part.leaf_files;
      const bool known = std::find(files.begin(), files.end(), entry.name) != files.end();
      if (!known || entry.type != FileType::kRegular) return Foreign(child);
      RETURN_IF_ERROR(Take(RemoveFile{child}));
    }
    return RemoveEmpty(directory);
  }

  Status RemoveBinds(const SafePath& all) {
    ASSIGN_OR_RETURN(const auto volumes, Entries(all));
    if (!volumes) return OkStatus();
    for (const DirectoryEntry& volume : *volumes) {
      const SafePath of_volume = all.Below(volume.name);
      if (volume.type != FileType::kDirectory) return Foreign(of_volume);
      RETURN_IF_ERROR(RefuseMount(of_volume));
      RETURN_IF_ERROR(DoRemoveSubPaths(kernel_, {of_volume, all}, options_));
      has_removed_ = true;
    }
    return RemoveEmpty(all);
  }

  Status RemoveEmpty(const SafePath& directory, bool synced = false) {
    const RemoveDirectory remove{.path = directory, .synced = synced};
    RETURN_IF_ERROR(Take(remove).With("removing " + directory.Display()));
    return OkStatus();
  }

  Kernel& kernel_;
  const CallOptions& options_;
  bool has_removed_ = false;
};

}  // namespace

Result<Changed> DoRemoveSkeleton(Kernel& kernel, const RemoveSkeleton& request,
                                 const CallOptions& options) {
  return Removal(kernel, options).Run(request);
}

}  // namespace volumed
