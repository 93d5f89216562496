#include "mounter/host_directory.h"

#include <utility>

namespace volumed {

SafePath HostPath(const std::string& absolute_path) {
  return {absolute_path, "", Resolve::kBeneath};
}

SafePath SplitLast(const std::string& absolute_path) {
  const size_t slash = absolute_path.rfind('/');
  return {slash == 0 ? "/" : absolute_path.substr(0, slash), absolute_path.substr(slash + 1)};
}

Result<Changed> MakeHostDirectory(Kernel& kernel, const std::string& path, uint32_t mode,
                                  const CallOptions& call) {
  std::string ancestor = path;
  std::string rest;
  while (true) {
    ASSIGN_OR_RETURN(const FileInfo info,
                     kernel.Call(Stat{.path = HostPath(ancestor), .follow = true}, call));
    if (info.type == FileType::kDirectory) break;
    if (info.type != FileType::kMissing) {
      return Error::NotApplied(Code::kAlreadyExists, ancestor + " is not a directory");
    }
    SafePath split = SplitLast(ancestor);
    rest = rest.empty() ? split.relative : split.relative + "/" + rest;
    ancestor = std::move(split.root);
    if (ancestor == "/") break;
  }
  if (rest.empty()) return Changed{false};
  return kernel.Call(
      MakeDirectory{.path = {ancestor, rest, Resolve::kBeneath}, .mode = mode, .parent_mode = mode},
      call);
}

}  // namespace volumed
