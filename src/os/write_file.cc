#include "os/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "os/safe_open.h"

namespace volumed {
namespace {

constexpr size_t kLargest = 64 * 1024;
constexpr uint32_t kModeBits = 07777;

// -1 with errno set, unless all of it was written.
int WriteAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return -1;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

bool ContentIs(int file, const std::string& wanted) {
  std::string found(wanted.size() + 1, '\0');
  size_t size = 0;
  while (size < found.size()) {
    const ssize_t got =
        ::pread(file, found.data() + size, found.size() - size, static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  found.resize(size);
  return found == wanted;
}

class FileReplacement {
 public:
  FileReplacement(const WriteFile& request, const ParentAndName& place)
      : request_(request),
        parent_(place.parent.get()),
        name_(place.name),
        // One name: what an interrupted run left is replaced.
        new_name_("." + place.name + ".new") {}

  Result<Changed> Run() {
    ASSIGN_OR_RETURN(const bool right, IsRight());
    if (right) return Changed{false};
    const Status made = MakeNew();
    if (!made.ok()) {
      ::unlinkat(parent_, new_name_.c_str(), 0);
      return made.error();
    }
    if (::renameat(parent_, new_name_.c_str(), parent_, name_.c_str()) != 0) {
      const Error error = Failed("rename");
      ::unlinkat(parent_, new_name_.c_str(), 0);
      return error;
    }
    if (request_.unsynced) return Changed{true};
    const Descriptor directory(OpenChild(parent_, ".", O_RDONLY | O_DIRECTORY));
    if (!directory.valid() || ::fsync(directory.get()) != 0) {
      return Failed("sync its directory").AsMaybeApplied();
    }
    return Changed{true};
  }

 private:
  Error Failed(const std::string& step) const {
    return Error::FromErrno(errno, "write " + request_.path.Display() + ", " + step,
                            Outcome::kNotApplied);
  }

  Result<bool> IsRight() const {
    const Result<bool> mounted = IsMountPointAt(parent_, name_);
    if (!mounted.ok()) {
      if (mounted.error().sys_errno() == ENOENT) return false;
      return mounted.error();
    }
    errno = EBUSY;
    if (*mounted) return Failed("it is a mount point");
    struct stat stat = {};
    if (::fstatat(parent_, name_.c_str(), &stat, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) return false;
      return Failed("look at it");
    }
    errno = EEXIST;
    if (!S_ISREG(stat.st_mode)) return Failed("it is no file");
    if ((stat.st_mode & kModeBits) != (request_.mode & kModeBits)) return false;
    const Descriptor file(OpenChild(parent_, name_.c_str(), O_RDONLY | O_NONBLOCK));
    return file.valid() && ContentIs(file.get(), request_.content.Reveal());
  }

  Status MakeNew() const {
    ::unlinkat(parent_, new_name_.c_str(), 0);
    const Descriptor file(::openat(parent_, new_name_.c_str(),
                                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.valid()) return Failed("make it");
    if (WriteAll(file.get(), request_.content.Reveal()) != 0) return Failed("write");
    if (::fchmod(file.get(), request_.mode & kModeBits) != 0) return Failed("set its mode");
    if (!request_.unsynced && ::fsync(file.get()) != 0) return Failed("sync");
    return OkStatus();
  }

  const WriteFile& request_;
  const int parent_;
  const std::string& name_;
  const std::string new_name_;
};

}  // namespace

Result<Changed> DoWriteFile(const WriteFile& request) {
  if (request.content.Reveal().size() > kLargest) {
    return Error::NotApplied(Code::kOutOfRange,
                             "write " + request.path.Display() + ": larger than 65536 bytes");
  }
  ASSIGN_OR_RETURN(const ParentAndName place, OpenParent(request.path));
  return FileReplacement(request, place).Run();
}

Result<Done> DoWriteAttribute(const WriteAttribute& request) {
  const std::string what = "write to " + request.path.Display();
  // O_NONBLOCK: a FIFO without a reader must not hold us. O_TRUNC means nothing to an attribute.
  ASSIGN_OR_RETURN(const Descriptor file,
                   OpenSafePath(request.path, O_WRONLY | O_TRUNC | O_NONBLOCK | O_NOCTTY));
  struct stat stat = {};
  if (::fstat(file.get(), &stat) != 0) return Error::FromErrno(errno, what, Outcome::kNotApplied);
  if (!S_ISREG(stat.st_mode)) {
    return Error::NotApplied(Code::kFailedPrecondition, what + ": not a regular file");
  }
  ssize_t written = 0;
  do {
    written = ::write(file.get(), request.value.data(), request.value.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) return Error::FromErrno(errno, what, Outcome::kMaybeApplied);
  if (static_cast<size_t>(written) != request.value.size()) {
    return Error::MaybeApplied(Code::kUnknown, what + ": a part of the value was taken");
  }
  return Done{};
}

}  // namespace volumed
