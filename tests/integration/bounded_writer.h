// A writer as in a container: root without CAP_SYS_RESOURCE, which would let it past the limits of
// an ext4. Source: Linux fs/quota/dquot.c (ignore_hardlimit).
#pragma once

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "base/descriptor.h"

namespace volumed {

// This thread lacks CAP_SYS_RESOURCE while it lives.
class WithoutSysResource {
 public:
  WithoutSysResource() {
    if (::syscall(SYS_capget, &header_, before_) != 0) return;
    __user_cap_data_struct without[_LINUX_CAPABILITY_U32S_3] = {before_[0], before_[1]};
    without[CAP_TO_INDEX(CAP_SYS_RESOURCE)].effective &= ~CAP_TO_MASK(CAP_SYS_RESOURCE);
    is_changed_ = ::syscall(SYS_capset, &header_, without) == 0;
  }
  ~WithoutSysResource() {
    if (is_changed_) (void)::syscall(SYS_capset, &header_, before_);
  }
  WithoutSysResource(const WithoutSysResource&) = delete;
  WithoutSysResource& operator=(const WithoutSysResource&) = delete;

 private:
  __user_cap_header_struct header_ = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before_[_LINUX_CAPABILITY_U32S_3] = {};
  bool is_changed_ = false;
};

// Writes so many bytes to a file; the errno of the first call that failed, or 0.
inline int FillBounded(const std::string& path, int64_t bytes) {
  constexpr int64_t kStep = int64_t{1} << 20;
  const WithoutSysResource as_in_container;
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const std::string block(kStep, 'x');
  for (int64_t done = 0; file.valid() && done < bytes; done += kStep) {
    if (::write(file.get(), block.data(), block.size()) < 0) return errno;
  }
  return file.valid() && ::fsync(file.get()) == 0 ? 0 : errno;
}

}  // namespace volumed
