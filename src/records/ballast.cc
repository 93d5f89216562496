#include "records/ballast.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/descriptor.h"

namespace volumed {
namespace {

constexpr int64_t kStatBlockBytes = 512;  // Source: stat(2), st_blocks.

bool IsNoSpace(int sys_errno) { return sys_errno == ENOSPC || sys_errno == EDQUOT; }

// A filesystem that cannot tell counts as one with room, because fallocate decides in the end.
bool HasRoomFor(int fd, int64_t bytes) {
  struct statvfs info {};
  if (fstatvfs(fd, &info) != 0) return true;
  return static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize) >= bytes;
}

}  // namespace

Ballast::Ballast(std::string path, int64_t size_bytes)
    : path_(std::move(path)), size_bytes_(size_bytes) {}

Status Ballast::Restore() {
  if (size_bytes_ == 0) return OkStatus();
  const Descriptor fd(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd.get() < 0) {
    const int open_errno = errno;
    spent_ = true;
    if (IsNoSpace(open_errno)) return OkStatus();
    return Error::FromErrno(open_errno, "open " + path_, Outcome::kNotApplied);
  }
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) {
    return Error::FromErrno(errno, "stat " + path_, Outcome::kNotApplied);
  }
  if (info.st_blocks * kStatBlockBytes >= size_bytes_) {
    spent_ = false;
    return OkStatus();
  }
  spent_ = true;
  if (!HasRoomFor(fd.get(), 2 * size_bytes_)) return OkStatus();
  // Writes the blocks where the filesystem cannot preallocate.
  if (const int fallocate_errno = posix_fallocate(fd.get(), 0, size_bytes_); fallocate_errno != 0) {
    if (IsNoSpace(fallocate_errno)) return OkStatus();
    return Error::FromErrno(fallocate_errno, "preallocate " + path_, Outcome::kNotApplied);
  }
  spent_ = false;
  return OkStatus();
}

bool Ballast::Spend() {
  if (size_bytes_ == 0 || spent_) return false;
  // The file is truncated and not unlinked, so that it can be filled again without a new inode.
  const Descriptor fd(open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  spent_ = true;
  if (fd.get() < 0 || ftruncate(fd.get(), 0) != 0) return false;
  // A journalling filesystem hands freed blocks out again only once the freeing is committed.
  return fsync(fd.get()) == 0;
}

}  // namespace volumed
