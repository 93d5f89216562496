#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "base/strings.h"
#include "os/block_device.h"
#include "os/loop_devices.h"
#include "os/read_ahead.h"
#include "os/sysfs.h"

namespace volumed {
namespace {

// A loop device of which the request's is certain, open.
class LoopChange {
 public:
  LoopChange(const ConfigureLoop& request, const Descriptor& device, std::string sysfs)
      : request_(request),
        device_(device),
        sysfs_(std::move(sysfs)),
        what_("configure loop device " + request.device) {}

  Result<Done> Run() {
    RETURN_IF_ERROR(CheckReadAhead());
    if (request_.refresh_size) {
      if (::ioctl(device_.get(), LOOP_SET_CAPACITY, 0) != 0) return Failed("refresh its size");
      outcome_ = Outcome::kMaybeApplied;
    }
    RETURN_IF_ERROR(SetDirect());
    // Last, for a change of the others may have the kernel choose it anew (Linux 6.9 and later,
    // block/blk-settings.c, blk_apply_bdi_limits).
    RETURN_IF_ERROR(SetReadAhead());
    return Done{};
  }

 private:
  Error Failed(const std::string& step) const {
    return Error::FromErrno(errno, what_ + ", " + step, outcome_);
  }
  Error ShownOtherwise(const std::string& what) const {
    return Error::MaybeApplied(Code::kInternal, what_ + ": the kernel shows " + what);
  }
  int64_t Shown(const char* attribute) const {
    return ParseInt64(ReadAttribute(sysfs_ + attribute).value_or("")).value_or(0);
  }

  Status CheckReadAhead() const {
    return request_.read_ahead_kib ? CheckReadAheadKib(*request_.read_ahead_kib, what_)
                                   : OkStatus();
  }

  Status SetDirect() {
    const auto is_direct = [this] { return Shown("/loop/dio") != 0; };
    if (!request_.direct_io || is_direct() == *request_.direct_io) return OkStatus();
    const unsigned long direct = *request_.direct_io ? 1 : 0;
    // The kernel writes what is cached of the file while nobody can open the loop device, which may
    // take long: as little as can be is left to that. Source: Linux drivers/block/loop.c
    // (loop_set_dio).
    if (*request_.direct_io && ::fsync(device_.get()) != 0) return Failed("write what is cached");
    if (::ioctl(device_.get(), LOOP_SET_DIRECT_IO, direct) != 0) return Failed("direct I/O");
    outcome_ = Outcome::kMaybeApplied;
    return is_direct() == *request_.direct_io ? OkStatus()
                                              : Status(ShownOtherwise("other direct I/O"));
  }

  Status SetReadAhead() {
    return request_.read_ahead_kib ? WriteReadAhead(sysfs_, *request_.read_ahead_kib, what_)
                                   : OkStatus();
  }

  const ConfigureLoop& request_;
  const Descriptor& device_;
  const std::string sysfs_;
  const std::string what_;
  Outcome outcome_ = Outcome::kNotApplied;
};

}  // namespace

Result<Done> DoConfigureLoop(const ConfigureLoop& request) {
  const std::string what = "configure loop device " + request.device;
  ASSIGN_OR_RETURN(const OpenedDevice opened,
                   OpenDeviceOfAnySize(request.device, request.expected, what));
  const std::string sysfs = "/sys/dev/block/" + std::to_string(opened.now.device_major) + ":" +
                            std::to_string(opened.now.device_minor);
  if (!ReadAttribute(sysfs + "/loop/backing_file")) {
    return Error::NotApplied(Code::kFailedPrecondition, what + ": it is no loop device of a file");
  }
  return LoopChange(request, opened.device, sysfs).Run();
}

}  // namespace volumed
