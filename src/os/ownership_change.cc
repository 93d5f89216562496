#include "os/ownership_change.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/descriptor.h"
#include "os/safe_open.h"
#include "os/syscall_numbers.h"

namespace volumed {
namespace {

constexpr uint32_t kModeBits = 07777;

// A change of group takes setuid and setgid from what is no directory, so they must be set again.
// Source: chown(2).
bool NeedsChmod(const struct statx& now, uint32_t wanted_mode, bool group_changed) {
  const bool lost_bits =
      group_changed && !S_ISDIR(now.stx_mode) && (now.stx_mode & (S_ISUID | S_ISGID)) != 0;
  return lost_bits || (now.stx_mode & kModeBits) != (wanted_mode & kModeBits);
}

int ChmodOf(int fd, uint32_t mode) {
  return ::chmod(ProcFdPath(fd).c_str(), mode & kModeBits) == 0 ? 0 : errno;
}

// fchmodat() of older kernels follows links; an O_PATH descriptor that was looked at does not.
int ChmodAt(int directory, const char* name, const struct statx& now, uint32_t mode,
            bool has_fchmodat2) {
  if (has_fchmodat2) {
    const long rc =
        ::syscall(kSysFchmodat2, directory, name, mode & kModeBits, AT_SYMLINK_NOFOLLOW);
    return rc == 0 ? 0 : errno;
  }
  const Descriptor entry(OpenChild(directory, name, O_PATH));
  if (!entry.valid()) return errno;
  struct stat stat = {};
  if (::fstat(entry.get(), &stat) != 0) return errno;
  // Exchanged since it was looked at: whoever did that made a new entry, which is not ours.
  if (S_ISLNK(stat.st_mode) || stat.st_ino != now.stx_ino) return ENOENT;
  return ChmodOf(entry.get(), mode);
}

}  // namespace

int ChangeEntryOwnership(int directory, const char* name, const struct statx& now, uint32_t gid,
                         uint32_t wanted_mode, bool has_fchmodat2, bool& changed) {
  const bool wrong_group = now.stx_gid != gid;
  if (wrong_group) {
    if (::fchownat(directory, name, static_cast<uid_t>(-1), gid, AT_SYMLINK_NOFOLLOW) != 0) {
      return errno;
    }
    changed = true;
  }
  if (S_ISLNK(now.stx_mode) || !NeedsChmod(now, wanted_mode, wrong_group)) return 0;
  const int failure = ChmodAt(directory, name, now, wanted_mode, has_fchmodat2);
  // EOPNOTSUPP: it has become a link. Source: fchmodat2(2).
  if (failure == EOPNOTSUPP) return ENOENT;
  if (failure == 0) changed = true;
  return failure;
}

int ChangeRootOwnership(int fd, const struct statx& now, uint32_t gid, uint32_t wanted_mode,
                        bool& changed) {
  const bool wrong_group = now.stx_gid != gid;
  if (wrong_group) {
    if (::fchownat(fd, "", static_cast<uid_t>(-1), gid, AT_EMPTY_PATH) != 0) return errno;
    changed = true;
  }
  if (!NeedsChmod(now, wanted_mode, wrong_group)) return 0;
  const int failure = ChmodOf(fd, wanted_mode);
  if (failure == 0) changed = true;
  return failure;
}

}  // namespace volumed
