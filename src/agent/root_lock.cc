#include "agent/root_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <vector>

#include "base/strings.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;

constexpr char kAgentDir[] = "/volumed";
constexpr char kMark[] = "/volumed/created-by-volumed";
constexpr char kLock[] = "/volumed/lock";
constexpr char kLostAndFound[] = "lost+found";
constexpr char kDefaultKubeletRoot[] = "/var/lib/kubelet";

std::optional<std::string> RootOfKubelet(const std::vector<std::string>& arguments) {
  if (arguments.empty() || fs::path(arguments[0]).filename() != "kubelet") return std::nullopt;
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (const auto value = StripPrefix(arguments[i], "--root-dir=")) return std::string(*value);
    if (arguments[i] == "--root-dir" && i + 1 < arguments.size()) return arguments[i + 1];
  }
  return kDefaultKubeletRoot;
}

// None if the process has ended meanwhile. Source: proc_pid_cmdline(5).
std::vector<std::string> ArgumentsOf(const fs::path& process) {
  std::ifstream file(process / "cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string one; std::getline(file, one, '\0');) arguments.push_back(one);
  return arguments;
}

// The pid of a kubelet whose root directory is `root`, or 0.
int FindKubeletOn(const std::string& root) {
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::optional<int64_t> pid = ParseInt64(entry->path().filename().string());
    if (!pid) continue;
    const std::optional<std::string> found = RootOfKubelet(ArgumentsOf(entry->path()));
    std::error_code unknown;
    if (found && fs::equivalent(*found, root, unknown)) return static_cast<int>(*pid);
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

// Names of the entries of a directory; none if it is missing.
Result<std::set<std::string>> NamesIn(const std::string& directory) {
  std::set<std::string> names;
  std::error_code error;
  if (!fs::exists(directory, error)) return names;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    names.insert(entry->path().filename().string());
  }
  if (error) return Error::FromErrno(error.value(), "look into " + directory, Outcome::kNotApplied);
  return names;
}

// Whether there is no more in the root than what CSI drivers make that start before whoever mounts
// their volumes: directories of their sockets; and the directory that mkfs makes in a filesystem. A
// kubelet's volumes lie in "pods", and what it has staged in "plugins/kubernetes.io".
Result<bool> IsFree(const std::string& root) {
  ASSIGN_OR_RETURN(std::set<std::string> names, NamesIn(root));
  names.erase("plugins_registry");
  if (names.contains(kLostAndFound)) {
    ASSIGN_OR_RETURN(const std::set<std::string> rescued, NamesIn(root + "/" + kLostAndFound));
    // What fsck has put there was somebody's.
    if (rescued.empty()) names.erase(kLostAndFound);
  }
  if (names.erase("plugins") == 0) return names.empty();
  ASSIGN_OR_RETURN(const std::set<std::string> plugins, NamesIn(root + "/plugins"));
  const bool has_volumes = std::any_of(plugins.begin(), plugins.end(), [](const auto& name) {
    return name.starts_with("kubernetes.io");
  });
  return names.empty() && !has_volumes;
}

// True if the root has the mark of volumed, or nothing that anybody mounted; false if it has to be
// adopted.
Result<bool> CheckOwnership(const std::string& root, bool adopt) {
  std::error_code error;
  if (fs::exists(root + kMark, error)) return true;
  // Whoever may not look there would be told that the root is somebody else's.
  if (error) {
    return Error::FromErrno(error.value(), "look for the mark of volumed at " + root + kMark,
                            Outcome::kNotApplied);
  }
  ASSIGN_OR_RETURN(const bool is_free, IsFree(root));
  if (is_free) return true;
  if (!adopt) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             root + " has no mark of volumed (" + kMark +
                                 "): another program made it, or its directory volumed was lost; "
                                 "put a backup of that back if there is one. adopt-root takes the "
                                 "root over, and takes away what the pods have of which no source "
                                 "knows, inline volumes with their data: read \"The directory "
                                 "volumed was lost\" in OPERATIONS.md first");
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
