#include "mounter/node_root.h"

#include <string>
#include <string_view>

#include "base/strings.h"
#include "mounter/host_directory.h"

namespace volumed {
namespace {

constexpr uint32_t kDirectoryMode = 0750;
constexpr uint32_t kAgentDirectoryMode = 0700;  // records and signing keys

Error NotCanonical(const std::string& root, const std::string& reason) {
  return Error::NotApplied(Code::kInvalidArgument,
                           "root directory \"" + root + "\" is not canonical: " + reason);
}

Status CheckClean(const std::string& root) {
  if (root.empty() || root[0] != '/') return NotCanonical(root, "it is not absolute");
  if (root == "/") return NotCanonical(root, "it is the root of the node");
  for (const std::string& element : Split(std::string_view(root).substr(1), '/')) {
    if (element.empty()) return NotCanonical(root, "it has an empty element");
    if (element == "." || element == "..") return NotCanonical(root, "it has \"" + element + "\"");
  }
  return OkStatus();
}

// Checks that no existing part of the path is a link.
Status CheckNoLinks(Kernel& kernel, const std::string& root, const CallOptions& call) {
  size_t end = root.find('/', 1);
  while (true) {
    const std::string prefix = root.substr(0, end);
    ASSIGN_OR_RETURN(const FileInfo info, kernel.Call(Stat{.path = SplitLast(prefix)}, call));
    if (info.type == FileType::kSymlink) {
      return NotCanonical(root, "\"" + prefix + "\" is a symbolic link");
    }
    if (end == std::string::npos) return OkStatus();
    end = root.find('/', end + 1);
  }
}

}  // namespace

Status PrepareRoot(Kernel& kernel, const KubeletPaths& paths, const CallOptions& call) {
  RETURN_IF_ERROR(CheckClean(paths.root()));
  RETURN_IF_ERROR(CheckNoLinks(kernel, paths.root(), call));
  RETURN_IF_ERROR(MakeHostDirectory(kernel, paths.root(), kDirectoryMode, call));
  RETURN_IF_ERROR(kernel.Call(MakeShared{{paths.root(), ""}}, call));
  RETURN_IF_ERROR(kernel.Call(
      MakeDirectory{.path = paths.GetPodsDir(), .mode = kDirectoryMode, .parent_mode = {}}, call));
  RETURN_IF_ERROR(kernel.Call(
      MakeDirectory{.path = paths.GetPluginsDir(), .mode = kDirectoryMode, .parent_mode = {}},
      call));
  RETURN_IF_ERROR(kernel.Call(
      MakeDirectory{.path = paths.AgentDir(), .mode = kAgentDirectoryMode, .parent_mode = {}},
      call));
  return OkStatus();
}

}  // namespace volumed
