#include "base/socket_file.h"

#include <endian.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/directories.h"

namespace volumed {
namespace {

constexpr int kBacklog = 128;
constexpr char kLockSuffix[] = ".lock";
// The same as the unit's RuntimeDirectoryMode.
constexpr mode_t kDirectoryMode = 0750;
constexpr mode_t kParentMode = 0755;
constexpr uint32_t kLookAt =
    IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF;

// Lets the members of one more group connect: user::rw, group:: as it is, group:readers:rw, mask
// rw. Source: Linux include/uapi/linux/posix_acl_xattr.h, acl(5).
Status LetConnect(const std::string& path, gid_t readers, bool owning_group) {
  const auto entry = [](uint16_t tag, uint16_t permissions, uint32_t id) {
    return posix_acl_xattr_entry{htole16(tag), htole16(permissions), htole32(id)};
  };
  constexpr uint16_t kReadWrite = ACL_READ | ACL_WRITE;
  struct {
    posix_acl_xattr_header header;
    posix_acl_xattr_entry entries[5];
  } const list = {
      {htole32(POSIX_ACL_XATTR_VERSION)},
      {entry(ACL_USER_OBJ, kReadWrite, ACL_UNDEFINED_ID),
       entry(ACL_GROUP_OBJ, owning_group ? kReadWrite : 0, ACL_UNDEFINED_ID),
       entry(ACL_GROUP, kReadWrite, readers), entry(ACL_MASK, kReadWrite, ACL_UNDEFINED_ID),
       entry(ACL_OTHER, 0, ACL_UNDEFINED_ID)}};
  if (::setxattr(path.c_str(), "system.posix_acl_access", &list, sizeof(list), 0) == 0) {
    return OkStatus();
  }
  if (errno == EOPNOTSUPP && ::chmod(path.c_str(), 0666) == 0) return OkStatus();
  return Error::FromErrno(errno, "let the readers' group connect to " + path,
                          Outcome::kMaybeApplied);
}

Status GiveToGroups(const SocketFileOptions& options) {
  if (options.group && (::chown(options.path.c_str(), 0, *options.group) != 0 ||
                        ::chmod(options.path.c_str(), 0660) != 0)) {
    return Error::FromErrno(errno, "give " + options.path + " to its group",
                            Outcome::kMaybeApplied);
  }
  if (options.read_group) {
    RETURN_IF_ERROR(LetConnect(options.path, *options.read_group, options.group.has_value()));
  }
  return OkStatus();
}

// EAGAIN means that a process listens and its queue is full.
bool SomebodyListens(const sockaddr_un& address) {
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return probe.valid() && (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address),
                                     sizeof(address)) == 0 ||
                           errno == EAGAIN);
}

Result<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "socket path is longer than " +
                                 std::to_string(sizeof(address.sun_path) - 1) + " bytes: " + path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Result<Descriptor> BindSocket(const SocketFileOptions& options) {
  ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(options.path));
  ASSIGN_OR_RETURN(Descriptor socket,
                   DescriptorFrom(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                                  "make a socket for " + options.path));
  RETURN_IF_ERROR(RemoveDeadSocket(options.path));
  // Nobody may connect before owner and mode are right. The file gets the mode that its socket has
  // here; a umask would affect every thread. Source: Linux net/unix/af_unix.c, unix_bind_bsd.
  if (::fchmod(socket.get(), 0600) != 0 ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Error::FromErrno(errno, "bind " + options.path, Outcome::kNotApplied);
  }
  RETURN_IF_ERROR(GiveToGroups(options));
  return socket;
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// What is at the place is looked at first, and never replaced by the rename: between the look and
// the rename somebody else may have come.
Result<Descriptor> BindAndRename(const SocketFileOptions& options) {
  RETURN_IF_ERROR(RemoveDeadSocket(options.path));
  SocketFileOptions hidden = options;
  hidden.path = HiddenSocketPath(options.path);
  hidden.renamed_into_place = false;
  ASSIGN_OR_RETURN(Descriptor socket, BindSocketFile(hidden));
  if (::renameat2(AT_FDCWD, hidden.path.c_str(), AT_FDCWD, options.path.c_str(),
                  RENAME_NOREPLACE) != 0) {
    const Error error = Error::FromErrno(errno, "rename " + hidden.path + " to " + options.path,
                                         Outcome::kNotApplied);
    (void)::unlink(hidden.path.c_str());
    return error;
  }
  return socket;
}

std::string LockPathOf(const SocketFileOptions& options) {
  return (options.renamed_into_place ? HiddenSocketPath(options.path) : options.path) + kLockSuffix;
}

}  // namespace

Status RemoveDeadSocket(const std::string& path) {
  ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return OkStatus();
  if (!S_ISSOCK(found.st_mode)) {
    return Error::NotApplied(Code::kAlreadyExists, path + " is not a socket");
  }
  if (SomebodyListens(address)) {
    return Error::NotApplied(Code::kUnavailable, "another process listens at " + path);
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return Error::FromErrno(errno, "remove the left-over " + path, Outcome::kNotApplied);
  }
  return OkStatus();
}

std::string HiddenSocketPath(const std::string& path) {
  return path.substr(0, path.rfind('/') + 1) + "." + NameOf(path);
}

Result<Descriptor> BindSocketFile(const SocketFileOptions& options) {
  if (options.renamed_into_place) return BindAndRename(options);
  ASSIGN_OR_RETURN(Descriptor socket, BindSocket(options));
  if (::listen(socket.get(), kBacklog) != 0) {
    return Error::FromErrno(errno, "listen on " + options.path, Outcome::kMaybeApplied);
  }
  return socket;
}

Result<ProcessLock> LockSocketFile(const std::string& path) {
  return ProcessLock::Take(path + kLockSuffix, ProcessLock::Patience::kForTheDead);
}

SocketFileKeeper::SocketFileKeeper(SocketFileOptions options, std::optional<ProcessLock> lock,
                                   EventLoop& loop, Handlers handlers)
    : options_(std::move(options)),
      lock_path_(LockPathOf(options_)),
      directory_(DirectoryOf(options_.path)),
      lock_(std::move(lock)),
      loop_(loop),
      handlers_(std::move(handlers)) {}

SocketFileKeeper::~SocketFileKeeper() {
  loop_.Cancel(retry_);
  if (changes_) loop_.UnwatchFd(changes_->fd());
}

void SocketFileKeeper::Start(bool made) {
  if (made) NoteSocket();
  Keep();
}

Status SocketFileKeeper::Remove() {
  loop_.Cancel(std::exchange(retry_, 0));
  if (changes_) loop_.UnwatchFd(changes_->fd());
  changes_.reset();
  if (SocketIsOurs() && ::unlink(options_.path.c_str()) != 0 && errno != ENOENT) {
    return Error::FromErrno(errno, "remove " + options_.path, Outcome::kNotApplied);
  }
  inode_ = 0;
  return OkStatus();
}

Status SocketFileKeeper::SetGroups(std::optional<gid_t> group, std::optional<gid_t> read_group) {
  options_.group = group;
  options_.read_group = read_group;
  return SocketIsOurs() ? GiveToGroups(options_) : OkStatus();
}

void SocketFileKeeper::NoteSocket() {
  struct stat there {};
  if (::lstat(options_.path.c_str(), &there) != 0) return;
  device_ = there.st_dev;
  inode_ = there.st_ino;
}

bool SocketFileKeeper::SocketIsOurs() const {
  struct stat there {};
  return ::lstat(options_.path.c_str(), &there) == 0 && inode_ != 0 && there.st_dev == device_ &&
         there.st_ino == inode_;
}

void SocketFileKeeper::TakeEvents() {
  const Result<std::vector<InotifyEvent>> events = changes_->ReadEvents();
  if (!events.ok()) return Failed(events.error());
  const bool concerns = std::any_of(events->begin(), events->end(), [&](const InotifyEvent& event) {
    return event.overflow || event.name.empty() || event.name == NameOf(options_.path) ||
           event.name == NameOf(lock_path_);
  });
  // A directory that is moved away takes its watch along, so the watch is removed.
  for (const InotifyEvent& event : *events) {
    if ((event.mask & IN_MOVE_SELF) != 0) (void)changes_->RemoveWatch(event.wd);
  }
  if (concerns) Keep();
}

void SocketFileKeeper::Keep() {
  const Status kept = MakeWhatIsMissing();
  if (!kept.ok()) return Failed(kept.error());
  loop_.Cancel(std::exchange(retry_, 0));
  delay_ = kFirstDelay;
  handlers_.state(OkStatus());
}

void SocketFileKeeper::Failed(const Error& error) {
  handlers_.state(error);
  loop_.Cancel(retry_);
  retry_ = loop_.PostAfter(delay_, [this] { Keep(); });
  delay_ = std::min(delay_ * 2, kLongestDelay);
}

// The watch is set before the look: what goes away after the look is then an event.
Status SocketFileKeeper::MakeWhatIsMissing() {
  RETURN_IF_ERROR(WatchDirectory());
  if (!lock_ || !lock_->IsAt(lock_path_)) {
    ASSIGN_OR_RETURN(lock_, ProcessLock::Take(lock_path_, ProcessLock::Patience::kNone));
  }
  if (SocketIsOurs()) return OkStatus();
  ASSIGN_OR_RETURN(Descriptor socket, BindSocketFile(options_));
  RETURN_IF_ERROR(handlers_.made(std::move(socket)));
  NoteSocket();
  return OkStatus();
}

Status SocketFileKeeper::WatchDirectory() {
  if (!changes_) {
    ASSIGN_OR_RETURN(Inotify changes, Inotify::Create());
    changes_ = std::make_unique<Inotify>(std::move(changes));
    if (Status watched = loop_.WatchFd(changes_->fd(), EPOLLIN, [this](uint32_t) { TakeEvents(); });
        !watched.ok()) {
      changes_.reset();
      return watched;
    }
  }
  if (options_.makes_parents) {
    RETURN_IF_ERROR(MakeDirectories(directory_, kParentMode, kDirectoryMode));
  } else if (::mkdir(directory_.c_str(), kDirectoryMode) != 0 && errno != EEXIST) {
    return Error::FromErrno(errno, "make " + directory_, Outcome::kNotApplied);
  }
  const Result<int> watch = changes_->AddWatch(directory_, kLookAt);
  if (!watch.ok()) return watch.error();
  return OkStatus();
}

}  // namespace volumed
