#include "os/read_ahead.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "base/strings.h"
#include "os/block_device.h"
#include "os/sysfs.h"
#include "os/write_file.h"

namespace volumed {
namespace {

// Of the whole disk: a partition has no queue of its own, and lies in the directory of its disk.
Result<std::string> DiskDirectory(const DeviceIdentity& device, const std::string& what) {
  const std::string link = "/sys/dev/block/" + std::to_string(device.device_major) + ":" +
                           std::to_string(device.device_minor);
  std::array<char, PATH_MAX> path;
  if (::realpath(link.c_str(), path.data()) == nullptr) {
    return Error::FromErrno(errno, what + ", find it in sysfs", Outcome::kNotApplied);
  }
  std::string directory = path.data();
  if (ReadAttribute(directory + "/partition")) directory.erase(directory.rfind('/'));
  return directory;
}

}  // namespace

Status CheckReadAheadKib(int64_t kib, const std::string& what) {
  const int64_t page_kib = ::sysconf(_SC_PAGESIZE) / 1024;
  if (kib >= 0 && kib <= kMostReadAheadKib && kib % page_kib == 0) return OkStatus();
  return Error::NotApplied(Code::kInvalidArgument,
                           what + ": it cannot read " + std::to_string(kib) +
                               " KiB ahead: whole pages of " + std::to_string(page_kib) +
                               " KiB, and 1 GiB at most");
}

Status WriteReadAhead(const std::string& sysfs, int64_t kib, const std::string& what) {
  const auto shown = [&sysfs] {
    return ParseInt64(ReadAttribute(sysfs + "/queue/read_ahead_kb").value_or("")).value_or(-1);
  };
  if (shown() == kib) return OkStatus();
  const WriteAttribute write{SafePath{sysfs + "/queue", "read_ahead_kb"}, std::to_string(kib)};
  RETURN_IF_ERROR(DoWriteAttribute(write).With(what + ", its read-ahead"));
  if (shown() == kib) return OkStatus();
  return Error::MaybeApplied(Code::kInternal, what + ": the kernel shows another read-ahead");
}

Result<Done> DoSetReadAhead(const SetReadAhead& request) {
  const std::string what = "set the read-ahead of " + request.device;
  RETURN_IF_ERROR(CheckReadAheadKib(request.kib, what));
  ASSIGN_OR_RETURN(const OpenedDevice device,
                   OpenDeviceOfAnySize(request.device, request.expected, what));
  ASSIGN_OR_RETURN(const std::string sysfs, DiskDirectory(device.now, what));
  RETURN_IF_ERROR(WriteReadAhead(sysfs, request.kib, what));
  return Done{};
}

}  // namespace volumed
