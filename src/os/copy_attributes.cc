#include "os/copy_attributes.h"

#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "os/safe_open.h"

namespace volumed {
namespace {

constexpr char kOwnAttributes[] = "trusted.volumed.";
constexpr char kSelinuxLabel[] = "security.selinux";
constexpr size_t kMostXattrBytes = 65536;  // of all names, and of a value; source: xattr(7)
constexpr mode_t kAllModeBits = 07777;

// Both paths are those of descriptors (ProcFdPath), which lead to the file itself, even to a link.
int CopyXattr(const std::string& from, const std::string& to, const char* name,
              std::vector<char>& value) {
  const ssize_t size = ::getxattr(from.c_str(), name, value.data(), value.size());
  // It was removed since the names were read.
  if (size < 0) return errno == ENODATA ? 0 : errno;
  if (::setxattr(to.c_str(), name, value.data(), static_cast<size_t>(size), 0) == 0) return 0;
  return errno == EOPNOTSUPP && std::strcmp(name, kSelinuxLabel) == 0 ? 0 : errno;
}

int CopyXattrs(int from_file, int to_file) {
  const std::string from = ProcFdPath(from_file);
  const std::string to = ProcFdPath(to_file);
  std::array<char, 1024> few;
  std::vector<char> many;
  const char* names = few.data();
  ssize_t size = ::listxattr(from.c_str(), few.data(), few.size());
  if (size < 0 && errno == ERANGE) {
    many.resize(kMostXattrBytes);
    names = many.data();
    size = ::listxattr(from.c_str(), many.data(), many.size());
  }
  if (size < 0) return errno == EOPNOTSUPP ? 0 : errno;
  std::vector<char> value;
  for (const char* name = names; name < names + size; name += std::strlen(name) + 1) {
    if (std::string_view(name).starts_with(kOwnAttributes)) continue;
    value.resize(kMostXattrBytes);
    if (const int failure = CopyXattr(from, to, name, value)) return failure;
  }
  return 0;
}

// A change of the owner takes setuid and capabilities away, and so comes before them.
int GiveOwner(const struct stat& stat, int to) {
  return ::fchownat(to, "", stat.st_uid, stat.st_gid, AT_EMPTY_PATH) == 0 ? 0 : errno;
}

int GiveModeAndTimes(const struct stat& stat, int to) {
  // A link has no mode of its own.
  if (!S_ISLNK(stat.st_mode) && ::chmod(ProcFdPath(to).c_str(), stat.st_mode & kAllModeBits) != 0) {
    return errno;
  }
  const struct timespec times[2] = {stat.st_atim, stat.st_mtim};
  return ::utimensat(to, "", times, AT_EMPTY_PATH) == 0 ? 0 : errno;
}

}  // namespace

int CopyAttributes(int from, const struct stat& stat, int to) {
  if (const int failure = GiveOwner(stat, to)) return failure;
  if (const int failure = CopyXattrs(from, to)) return failure;
  return GiveModeAndTimes(stat, to);
}

}  // namespace volumed
