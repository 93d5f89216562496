// Descriptor: owns a file descriptor.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace volumed {

// It closes the descriptor that it owns when it is destroyed or gets another one. Threads: one at a
// time. Blocks: close() may, on a descriptor of a filesystem that hangs.
class Descriptor {
 public:
  Descriptor() = default;
  // Takes `fd` over; a negative number is no descriptor.
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { Reset(); }
  // What is moved from owns none.
  Descriptor(Descriptor&& other) noexcept : fd_(other.Release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) Reset(other.Release());
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  // The descriptor stays owned by this; -1 says that there is none.
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  explicit operator bool() const { return valid(); }

  // Gives the descriptor up without closing it; -1 if there was none.
  [[nodiscard]] int Release() { return std::exchange(fd_, -1); }
  // Leaves errno as it was, so that a failure can be reported after its descriptors are gone.
  // EINTR is not retried: Linux has released the number by then. Source: close(2).
  void Reset(int fd = -1) {
    if (fd_ >= 0) {
      const int saved = errno;
      ::close(fd_);
      errno = saved;
    }
    fd_ = fd;
  }

  // Another descriptor, close-on-exec, of the same open file. Errors (NotApplied):
  // FailedPrecondition (EBADF) if this owns none, ResourceExhausted if the process has too many.
  Result<Descriptor> Duplicate() const {
    const int copy = ::fcntl(fd_, F_DUPFD_CLOEXEC, 3);
    if (copy < 0) return Error::FromErrno(errno, "duplicate descriptor", Outcome::kNotApplied);
    return Descriptor(copy);
  }

 private:
  int fd_ = -1;
};

// Takes over the answer of open(2) and its kin; errno must still be that call's. `what` names the
// call and its object: "open /a/b". The error is errno's, NotApplied.
inline Result<Descriptor> DescriptorFrom(int fd, std::string_view what) {
  if (fd < 0) return Error::FromErrno(errno, what, Outcome::kNotApplied);
  return Descriptor(fd);
}

}  // namespace volumed
