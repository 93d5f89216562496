#include "os/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/printable_text.h"
#include "base/strings.h"
#include "os/regular_file.h"
#include "os/safe_open.h"

namespace volumed {
namespace {

constexpr size_t kLongestContent = 4096;
constexpr size_t kShown = 200;  // of the content, in the error for whoever comes later

struct OpenedLock {
  Descriptor file{};
  bool made = false;
};

Result<Descriptor> MakeLockFile(const SafePath& path, const std::string& what) {
  ASSIGN_OR_RETURN(const ParentAndName place, OpenParent(path));
  ASSIGN_OR_RETURN(
      Descriptor file,
      DescriptorFrom(::openat(place.parent.get(), place.name.c_str(),
                              O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600),
                     what));
  // The umask may have taken bits away.
  if (::fchmod(file.get(), 0600) != 0) {
    return Error::FromErrno(errno, what, Outcome::kMaybeApplied);
  }
  return file;
}

Result<OpenedLock> OpenLockFile(const TakeFileLock& request, const KernelFeatures& features,
                                const std::string& what) {
  const bool writes = !request.content.empty();
  const auto open = [&] {
    return OpenRegularFile(request.path, (writes ? O_RDWR : O_RDONLY) | O_NONBLOCK | O_NOCTTY, {},
                           features, what);
  };
  Result<Descriptor> there = open();
  if (!there.ok() && there.error().sys_errno() == ENOENT && writes) {
    Result<Descriptor> made = MakeLockFile(request.path, what);
    if (made.ok()) return OpenedLock{*std::move(made), true};
    if (made.error().sys_errno() != EEXIST) return made.error();
    // Somebody else has made it meanwhile, or it is a link that leads nowhere.
    there = open();
    if (!there.ok() && there.error().sys_errno() == ENOENT) return made.error();
  }
  if (!there.ok()) return there.error();
  return OpenedLock{*std::move(there), false};
}

Error Taken(int file, const std::string& what, bool made) {
  std::array<char, kShown + 1> text;
  const ssize_t size = ::pread(file, text.data(), text.size(), 0);
  const std::string_view shown(text.data(), size > 0 ? static_cast<size_t>(size) : 0);
  const std::string message =
      what + ": somebody else has the lock" +
      (shown.empty() ? "" : "; the file says " + Quoted(TrimSpace(shown), kShown));
  return made ? Error::MaybeApplied(Code::kAborted, message)
              : Error::NotApplied(Code::kAborted, message);
}

// So small that it is written whole or not at all. What was longer is cut afterwards. Some
// filesystems need a new block for what is written anew in its place; on a full disk the file says
// what it said before, for whoever takes the lock may be about to make room.
Status SayWhoHasIt(int file, const std::string& content, const std::string& what) {
  const auto size = static_cast<ssize_t>(content.size());
  const ssize_t written = ::pwrite(file, content.data(), content.size(), 0);
  if (written >= 0 && written != size) errno = ENOSPC;
  if (written == size && ::ftruncate(file, size) == 0) return OkStatus();
  if (errno == ENOSPC || errno == EDQUOT) return OkStatus();
  return Error::FromErrno(errno, what + ", write", Outcome::kMaybeApplied);
}

}  // namespace

Result<FileLock> DoTakeFileLock(const TakeFileLock& request, const KernelFeatures& features) {
  const std::string what = "lock " + request.path.Display();
  if (request.content.size() > kLongestContent) {
    return Error::NotApplied(Code::kInvalidArgument, what + ": the content is too long");
  }
  ASSIGN_OR_RETURN(OpenedLock lock, OpenLockFile(request, features, what));
  const int file = lock.file.get();
  int locked = -1;
  do {
    locked = ::flock(file, LOCK_EX | LOCK_NB);
  } while (locked != 0 && errno == EINTR);
  if (locked != 0 && errno == EWOULDBLOCK) return Taken(file, what, lock.made);
  if (locked != 0) {
    return Error::FromErrno(errno, what, lock.made ? Outcome::kMaybeApplied : Outcome::kNotApplied);
  }
  if (!request.content.empty()) RETURN_IF_ERROR(SayWhoHasIt(file, request.content, what));
  return FileLock{std::make_shared<const Descriptor>(std::move(lock.file))};
}

}  // namespace volumed
