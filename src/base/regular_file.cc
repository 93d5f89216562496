#include "base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/descriptor.h"

namespace volumed {

Result<std::string> ReadRegularFile(const std::string& path, size_t max_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.valid()) return Error::FromErrno(errno, "open " + path, Outcome::kNotApplied);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) {
    return Error::FromErrno(errno, "stat " + path, Outcome::kNotApplied);
  }
  if (!S_ISREG(info.st_mode)) {
    return Error::NotApplied(Code::kFailedPrecondition, path + " is not a regular file");
  }
  std::string text;
  std::array<char, 64 * 1024> buffer;
  while (true) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count == 0) return text;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error::FromErrno(errno, "read " + path, Outcome::kNotApplied);
    text.append(buffer.data(), static_cast<size_t>(count));
    if (text.size() > max_bytes) {
      return Error::NotApplied(Code::kResourceExhausted,
                               path + " is larger than " + std::to_string(max_bytes) + " bytes");
    }
  }
}

}  // namespace volumed
