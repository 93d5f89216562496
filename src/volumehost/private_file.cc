#include "volumehost/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

namespace volumed {
namespace {

constexpr size_t kMaxKeyFileBytes = 16 * 1024;

Error SysError(const std::string& what) {
  return Error::FromErrno(errno, what, Outcome::kNotApplied);
}

Status CheckPrivate(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return SysError("stat " + path);
  if (S_ISREG(info.st_mode) && info.st_uid == ::geteuid() && (info.st_mode & 077) == 0) {
    return OkStatus();
  }
  return Error::NotApplied(
      Code::kFailedPrecondition,
      path + " must be a file of this user that no other may read (mode 0600)");
}

Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SysError("write " + path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return OkStatus();
}

}  // namespace

Result<Descriptor> OpenPrivateDirectory(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return SysError("make " + directory);
  }
  return DescriptorFrom(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                        "open " + directory);
}

Result<Secret<std::string>> ReadPrivateFile(int directory, const std::string& name,
                                            const std::string& path) {
  ASSIGN_OR_RETURN(const Descriptor file,
                   DescriptorFrom(::openat(directory, name.c_str(),
                                           O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC),
                                  "open " + path));
  RETURN_IF_ERROR(CheckPrivate(file.get(), path));
  std::string text;
  std::array<char, 4096> buffer{};
  while (text.size() <= kMaxKeyFileBytes) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0) {
      if (errno == EINTR) continue;
      return SysError("read " + path);
    }
    if (got == 0) return Secret<std::string>(std::move(text));
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  return Error::NotApplied(Code::kFailedPrecondition, path + " is too long for a key");
}

bool HasText(int directory, const std::string& name, const std::string& text) {
  const Descriptor file(
      ::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.valid()) return false;
  std::string found(text.size() + 1, '\0');
  size_t size = 0;
  while (size < found.size()) {
    const ssize_t got = ::read(file.get(), found.data() + size, found.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  found.resize(size);
  return found == text;
}

Status WriteFileDurably(int directory, const std::string& name, std::string_view bytes, mode_t mode,
                        const std::string& path) {
  const std::string temporary = "." + name + ".tmp";
  if (::unlinkat(directory, temporary.c_str(), 0) != 0 && errno != ENOENT) {
    return SysError("remove the left-over of " + path);
  }
  ASSIGN_OR_RETURN(
      const Descriptor file,
      DescriptorFrom(::openat(directory, temporary.c_str(),
                              O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode),
                     "create " + path));
  if (::fchmod(file.get(), mode) != 0) return SysError("chmod " + path);
  RETURN_IF_ERROR(WriteAll(file.get(), bytes, path));
  if (::fsync(file.get()) != 0) return SysError("sync " + path);
  if (::renameat(directory, temporary.c_str(), directory, name.c_str()) != 0) {
    return SysError("rename " + path);
  }
  if (::fsync(directory) != 0) return SysError("sync the directory of " + path).AsMaybeApplied();
  return OkStatus();
}

}  // namespace volumed
