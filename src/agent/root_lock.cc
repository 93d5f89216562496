#include "agent/root_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

#include "base/strings.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;

constexpr char kAgentDir[] = "/volumed";
constexpr char kMark[] = "/volumed/created-by-volumed";
constexpr char kLock[] = "/volumed/lock";
constexpr char kDefaultKubeletRoot[] = "/var/lib/kubelet";

std::optional<std::string> RootOfKubelet(const std::vector<std::string>& arguments) {
  if (arguments.empty() || fs::path(arguments[0]).filename() != "kubelet") return std::nullopt;
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (const auto value = StripPrefix(arguments[i], "--root-dir=")) return std::string(*value);
    if (arguments[i] == "--root-dir" && i + 1 < arguments.size()) return arguments[i + 1];
  }
  return kDefaultKubeletRoot;
}

// The pid of a kubelet whose root directory is `root`, or 0.
int FindKubeletOn(const std::string& root) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", error)) {
    const std::optional<int64_t> pid = ParseInt64(entry.path().filename().string());
    if (!pid) continue;
    std::ifstream file(entry.path() / "cmdline", std::ios::binary);
    const std::string line{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const std::optional<std::string> found = RootOfKubelet(Split(line, '\0'));
    if (found && fs::equivalent(*found, root, error)) return static_cast<int>(*pid);
  }
  return 0;
}

Status MakeDir(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) == 0 || errno == EEXIST) return OkStatus();
  return Error::FromErrno(errno, "make directory " + path, Outcome::kNotApplied);
}

// Whatever the process's umask is, nobody but root may rename the root.
Status MakeParents(const std::string& root) {
  fs::path parent;
  for (const fs::path& name : fs::path(root).parent_path()) {
    parent /= name;
    RETURN_IF_ERROR(MakeDir(parent.string(), 0755));
  }
  return OkStatus();
}

// True if the root has the mark of volumed, or is missing or empty; false if it has to be adopted.
Result<bool> CheckOwnership(const std::string& root, bool adopt) {
  std::error_code error;
  if (fs::exists(root + kMark, error)) return true;
  const bool empty = !fs::exists(root, error) || fs::is_empty(root, error);
  if (error) return Error::FromErrno(error.value(), "look into " + root, Outcome::kNotApplied);
  if (empty) return true;
  if (!adopt) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             root + " was not created by volumed; adopt-root takes it over");
  }
  if (const int kubelet = FindKubeletOn(root); kubelet != 0) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "a kubelet (pid " + std::to_string(kubelet) + ") runs on " + root);
  }
  return false;
}

}  // namespace

Status RootLock::CheckMayTake(const std::string& root, bool adopt) {
  RETURN_IF_ERROR(CheckOwnership(root, adopt));
  return OkStatus();
}

Result<RootLock> RootLock::Acquire(const std::string& root, bool adopt) {
  ASSIGN_OR_RETURN(const bool ours, CheckOwnership(root, adopt));
  RETURN_IF_ERROR(MakeParents(root));
  RETURN_IF_ERROR(MakeDir(root, 0750));
  RETURN_IF_ERROR(MakeDir(root + kAgentDir, 0700));
  ASSIGN_OR_RETURN(ProcessLock lock,
                   ProcessLock::Take(root + kLock, ProcessLock::Patience::kForTheDead));
  if (ours) {
    ASSIGN_OR_RETURN(const Descriptor mark,
                     DescriptorFrom(::open((root + kMark).c_str(),
                                           O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0600),
                                    "mark " + root + " as ours"));
  }
  return RootLock(std::move(lock), !ours);
}

}  // namespace volumed
