#include "recycler/scrub.h"

#include "base/strings.h"

namespace volumed {

Result<SafePath> ScrubbedPlace(const std::string& path) {
  const auto refuse = [&path](const char* why) {
    return Error::NotApplied(Code::kInvalidArgument, "will not scrub '" + path + "': " + why);
  };
  if (path.empty() || path[0] != '/') return refuse("it is not an absolute path");
  const std::string relative = Join(SplitNonEmpty(path, '/'), "/");
  if (relative.empty()) return refuse("it is the node's root");
  for (const std::string& element : Split(relative, '/')) {
    if (element == "." || element == "..") return refuse("it has a '.' or '..' in it");
  }
  return SafePath{"/", relative, Resolve::kNoSymlinks};
}

Status CheckNothingMountedBelow(Kernel& kernel, const SafePath& place, const CallOptions& call) {
  // The whole table, as it is: a kept one does not hear of a renamed directory, and this decides a
  // delete. It happens once per recycled volume.
  ASSIGN_OR_RETURN(const MountListing listing, kernel.Call(ListMounts{}, call));
  const std::string below = "/" + place.relative + "/";
  for (const MountEntry& mount : listing.mounts) {
    if (!mount.mount_point.starts_with(below)) continue;
    return Error::NotApplied(Code::kFailedPrecondition, "will not scrub /" + place.relative + ": " +
                                                            mount.fs_type + " is mounted at " +
                                                            mount.mount_point);
  }
  return OkStatus();
}

Status ScrubDirectory(Kernel& kernel, const SafePath& place, const CallOptions& call,
                      const StorageObject& expected) {
  const std::string shown = "/" + place.relative;
  ASSIGN_OR_RETURN(const FileInfo found, kernel.Call(Stat{.path = place}, call));
  if (found.type != FileType::kDirectory) {
    return Error::NotApplied(Code::kNotFound, "nothing to scrub: " + shown + " is not a directory");
  }
  RETURN_IF_ERROR(CheckNothingMountedBelow(kernel, place, call));
  RETURN_IF_ERROR(
      kernel.Call(RemoveTree{.path = place, .content_alone = true, .expected = expected}, call));
  // A second word for it, beside that of the walk that deleted.
  const auto left = kernel.Call(ListDirectory{place}, call);
  if (!left.ok()) return left.error().AsMaybeApplied();
  if (left->entries.empty()) return OkStatus();
  return Error::MaybeApplied(Code::kFailedPrecondition,
                             shown + " is not empty after it was scrubbed: " +
                                 left->entries.front().name + " is there; it may still be in use");
}

}  // namespace volumed
