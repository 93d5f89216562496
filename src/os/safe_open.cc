#include "os/safe_open.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace volumed {
namespace {

// A link that is being renamed makes RESOLVE_BENEATH give EAGAIN. Source: openat2(2).
constexpr int kMaxRaceRetries = 16;

int OpenAt2(int directory, const char* name, int flags, uint64_t resolve) {
  open_how how = {};
  how.flags = static_cast<uint64_t>(static_cast<unsigned>(flags) | O_CLOEXEC);
  how.resolve = resolve;
  for (int attempt = 0;; ++attempt) {
    const long fd = ::syscall(SYS_openat2, directory, name, &how, sizeof(how));
    if (fd >= 0) return static_cast<int>(fd);
    if (errno != EINTR && (errno != EAGAIN || attempt == kMaxRaceRetries)) return -1;
  }
}

uint64_t ResolveFlags(Resolve resolve) {
  switch (resolve) {
    case Resolve::kNoSymlinks:
      return RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    case Resolve::kBeneath:
      return RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  }
  return RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
}

bool CleanComponents(std::string_view path) {
  size_t begin = 0;
  while (true) {
    const size_t end = path.find('/', begin);
    const std::string_view component = path.substr(begin, end - begin);
    if (component.empty() || component == "." || component == "..") return false;
    if (end == std::string_view::npos) return true;
    begin = end + 1;
  }
}

Error BadPath(const SafePath& path, std::string_view why) {
  return Error::NotApplied(Code::kInvalidArgument,
                           "path \"" + path.Display() + "\": " + std::string(why));
}

Error OpenError(const SafePath& path, int sys_errno) {
  return Error::FromErrno(sys_errno, "open " + path.Display(), Outcome::kNotApplied);
}

// The trusted part, without any RESOLVE flag. `flags` as for open(2).
Result<Descriptor> OpenRoot(const SafePath& path, const std::string& root, int flags,
                            uint64_t more_resolve) {
  if (path.resolve == Resolve::kNoSymlinks && (flags & O_NOFOLLOW) == 0) {
    // O_PATH|O_NOFOLLOW would open a link instead of refusing it; NO_SYMLINKS would refuse links
    // in the trusted parents too. So the last component is opened from its parent.
    const size_t slash = root.rfind('/');
    const std::string parent = slash == 0 ? "/" : root.substr(0, slash);
    const std::string name = root.substr(slash + 1);
    if (!name.empty()) {
      Descriptor directory(OpenAt2(AT_FDCWD, parent.c_str(), O_PATH | O_DIRECTORY, 0));
      if (!directory.valid()) return OpenError(path, errno);
      Descriptor opened(OpenAt2(directory.get(), name.c_str(), flags,
                                more_resolve | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS));
      if (!opened.valid()) return OpenError(path, errno);
      return opened;
    }
  }
  Descriptor opened(OpenAt2(AT_FDCWD, root.c_str(), flags, more_resolve));
  if (!opened.valid()) return OpenError(path, errno);
  return opened;
}

thread_local KeptRoots* kept_roots = nullptr;

}  // namespace

KeptRoots::KeptRoots() {
  if (kept_roots == nullptr) kept_roots = this;
}

KeptRoots::~KeptRoots() {
  if (kept_roots == this) kept_roots = nullptr;
}

void KeptRoots::LetGo() {
  if (kept_roots != nullptr) kept_roots->roots_.clear();
}

// The root that lies above what a SafePath names.
class RootOf {
 public:
  Status Open(const SafePath& path) {
    if (kept_roots == nullptr) {
      ASSIGN_OR_RETURN(opened_, OpenRoot(path, path.root, O_PATH | O_DIRECTORY, 0));
      fd_ = opened_.get();
      return OkStatus();
    }
    const std::pair name(path.root, path.resolve);
    auto found = kept_roots->roots_.find(name);
    if (found == kept_roots->roots_.end()) {
      ASSIGN_OR_RETURN(Descriptor root, OpenRoot(path, path.root, O_PATH | O_DIRECTORY, 0));
      found = kept_roots->roots_.emplace(name, std::move(root)).first;
    }
    fd_ = found->second.get();
    return OkStatus();
  }
  int fd() const { return fd_; }

 private:
  Descriptor opened_;  // unless it is kept
  int fd_ = -1;
};

Status ValidateSafePath(const SafePath& path) {
  if (path.root.empty() || path.root[0] != '/') return BadPath(path, "the root is not absolute");
  if (path.root != "/" && !CleanComponents(std::string_view(path.root).substr(1))) {
    return BadPath(path, "the root is not clean");
  }
  if (!path.relative.empty() && !CleanComponents(path.relative)) {
    return BadPath(path, "an empty, \".\" or \"..\" component below the root");
  }
  if (path.root.find('\0') != std::string::npos || path.relative.find('\0') != std::string::npos) {
    return Error::NotApplied(Code::kInvalidArgument, "path with a NUL byte");
  }
  return OkStatus();
}

Result<Descriptor> OpenSafePath(const SafePath& path, int flags, uint64_t more_resolve) {
  RETURN_IF_ERROR(ValidateSafePath(path));
  if (path.relative.empty()) return OpenRoot(path, path.root, flags, more_resolve);
  RootOf root;
  RETURN_IF_ERROR(root.Open(path));
  Descriptor opened(
      OpenAt2(root.fd(), path.relative.c_str(), flags, ResolveFlags(path.resolve) | more_resolve));
  if (!opened.valid()) return OpenError(path, errno);
  return opened;
}

Result<ParentAndName> OpenParent(const SafePath& path) {
  RETURN_IF_ERROR(ValidateSafePath(path));
  const std::string& whole = path.relative.empty() ? path.root : path.relative;
  const size_t slash = whole.rfind('/');
  std::string name = slash == std::string::npos ? whole : whole.substr(slash + 1);
  if (name.empty()) return BadPath(path, "the root directory has no parent");
  ParentAndName result{Descriptor(), std::move(name)};
  if (path.relative.empty()) {
    // The parents of a root are trusted, and may be links.
    const std::string parent = slash == 0 ? "/" : whole.substr(0, slash);
    result.parent = Descriptor(OpenAt2(AT_FDCWD, parent.c_str(), O_PATH | O_DIRECTORY, 0));
    if (!result.parent.valid()) return OpenError(path, errno);
    return result;
  }
  if (slash == std::string::npos) {
    ASSIGN_OR_RETURN(result.parent, OpenRoot(path, path.root, O_PATH | O_DIRECTORY, 0));
    return result;
  }
  RootOf root;
  RETURN_IF_ERROR(root.Open(path));
  const std::string directory = whole.substr(0, slash);
  result.parent = Descriptor(
      OpenAt2(root.fd(), directory.c_str(), O_PATH | O_DIRECTORY, ResolveFlags(path.resolve)));
  if (!result.parent.valid()) return OpenError(path, errno);
  return result;
}

int OpenChild(int directory, const char* name, int flags, uint64_t more_resolve) {
  return OpenAt2(directory, name, flags | O_NOFOLLOW,
                 RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | more_resolve);
}

Result<bool> IsMountPointAt(int directory, const std::string& name) {
  const Descriptor opened(OpenChild(directory, name.c_str(), O_PATH, RESOLVE_NO_XDEV));
  if (opened.valid()) return false;
  if (errno == EXDEV) return true;
  return Error::FromErrno(errno, "look up " + name, Outcome::kNotApplied);
}

std::string ProcFdPath(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

}  // namespace volumed
