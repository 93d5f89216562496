#include "os/flush_device.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

#include "os/block_device.h"

namespace volumed {

Result<Done> DoFlushDevice(const FlushDevice& request) {
  const std::string what = "flush device " + request.device;
  ASSIGN_OR_RETURN(const Descriptor node, OpenBlockDevice(request.device, O_PATH));
  ASSIGN_OR_RETURN(const Descriptor device,
                   request.expected
                       ? OpenExpectedDevice(node.get(), request.device, *request.expected)
                       : OpenBlockDeviceNode(node.get(), request.device, O_RDONLY | O_NONBLOCK));
  // Only fsync reports a write that failed, and has the device empty its own cache.
  if (::fsync(device.get()) != 0) return Error::FromErrno(errno, what, Outcome::kNotApplied);
  if (::ioctl(device.get(), BLKFLSBUF, 0) != 0) {
    return Error::FromErrno(errno, what + ": BLKFLSBUF", Outcome::kNotApplied);
  }
  return Done{};
}

}  // namespace volumed
