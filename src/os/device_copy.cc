#include "os/device_copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "os/block_device.h"
#include "os/copy_steps.h"
#include "os/copy_target.h"
#include "os/file_copier.h"
#include "os/mount_table.h"

namespace volumed {
namespace {

constexpr int64_t kDeviceStep = 1 << 20;
// Of what is a hole if it is zero, and of what is read past the cache: the largest that a logical
// block commonly has.
constexpr int64_t kCopyBlock = 4096;
// Of what the device says of itself, so much is in the mark of its copy.
constexpr size_t kMarkedIdentity = 256;

Error DeviceRefusal(const std::string& what, const std::string& why) {
  return Error::NotApplied(Code::kFailedPrecondition, what + ": " + why);
}

// A btrfs has a number of its own, and is known by the device that it names.
bool IsOfDevice(const MountEntry& mount, const DeviceIdentity& device) {
  if (mount.device_major == device.device_major && mount.device_minor == device.device_minor) {
    return true;
  }
  struct stat source = {};
  if (mount.fs_type != "btrfs" || ::stat(mount.source.c_str(), &source) != 0) return false;
  return S_ISBLK(source.st_mode) && major(source.st_rdev) == device.device_major &&
         minor(source.st_rdev) == device.device_minor;
}

bool IsReadOnlyFilesystem(const MountEntry& mount) {
  return std::find(mount.super_options.begin(), mount.super_options.end(), "ro") !=
         mount.super_options.end();
}

// Of a device that somebody has for himself. A filesystem that takes no writes is the same in every
// mount of it, whatever namespace that is in.
Status CheckHadByReaders(const CopyDevice& request, const std::string& what) {
  ASSIGN_OR_RETURN(const std::vector<MountEntry> mounts, ReadMountTable());
  bool is_mounted = false;
  for (const MountEntry& mount : mounts) {
    if (!IsOfDevice(mount, request.expected)) continue;
    is_mounted = true;
    if (IsReadOnlyFilesystem(mount)) continue;
    return DeviceRefusal(what, "it is mounted for writing at " + mount.mount_point);
  }
  if (is_mounted) return OkStatus();
  ASSIGN_OR_RETURN(const DeviceUsers users,
                   DoCheckDeviceUse({request.device, request.expected.device_major,
                                     request.expected.device_minor}));
  if (!users.in_use) return OkStatus();
  // It may be a copy that goes on without its agent, and will end.
  if (users.holders.empty() && !request.only_look) {
    return Error::NotApplied(Code::kUnavailable, what + ": somebody has it for himself");
  }
  return DeviceRefusal(what, users.holders.empty()
                                 ? "somebody has it for himself: a mount in another namespace, "
                                   "swap, or a program"
                                 : Join(users.holders, ", ") + " is made of it");
}

// Claimed, unless readers have it mounted; then `is_claimed` is false.
Result<CopySource> OpenDeviceSource(const CopyDevice& request, const std::string& what,
                                    bool* is_claimed) {
  ASSIGN_OR_RETURN(const Descriptor node, OpenBlockDevice(request.device, O_PATH).With(what));
  ASSIGN_OR_RETURN(const Descriptor same,
                   OpenExpectedDevice(node.get(), request.device, request.expected).With(what));
  constexpr int kPastCache = O_RDONLY | O_NONBLOCK | O_DIRECT;
  Result<Descriptor> device =
      OpenBlockDeviceNode(node.get(), request.device, kPastCache | O_EXCL).With(what);
  *is_claimed = device.ok();
  if (!device.ok() && device.error().sys_errno() == EBUSY) {
    RETURN_IF_ERROR(CheckHadByReaders(request, what));
    device = OpenBlockDeviceNode(node.get(), request.device, kPastCache).With(what);
  }
  if (!device.ok()) return device.error();
  const std::string& id = request.expected.stable_id;
  CopySource source;
  source.file = *std::move(device);
  source.object.fs_uuid = "device";
  source.object.handle = id.substr(id.size() - std::min(id.size(), kMarkedIdentity));
  return source;
}

// Whoever writes need not be there any more when it is asked who has the device.
Status CheckNothingWritten(const CopyDevice& request, int device, bool is_claimed,
                           const std::string& what) {
  if (request.writes.empty() && is_claimed) return OkStatus();
  ASSIGN_OR_RETURN(const std::string now, CountDeviceWrites(device, request.expected, what));
  if (request.writes.empty() || now.empty()) {
    return DeviceRefusal(what,
                         "the kernel does not count what is written to it, so nothing tells "
                         "whether it stays the same");
  }
  if (now == request.writes) return OkStatus();
  return DeviceRefusal(what,
                       "something was written to it since its snapshot was begun, or the "
                       "node or the device was started anew");
}

// Copies those blocks of a device that are not zero, by way of one buffer.
class DevicePieces {
 public:
  DevicePieces(int device, std::string what) : device_(device), what_(std::move(what)) {
    void* const memory = std::aligned_alloc(kCopyBlock, kDeviceStep);
    buffer_.reset(static_cast<char*>(memory));
  }

  Result<int64_t> Copy(int target, int64_t at, int64_t bytes) {
    if (buffer_ == nullptr) return Error::FromErrno(ENOMEM, what_, Outcome::kMaybeApplied);
    const ssize_t got = ::pread(device_, buffer_.get(), static_cast<size_t>(bytes), at);
    if (got < 0) return Failed("read");
    for (int64_t from = 0; from < got;) {
      int64_t end = from;
      while (end < got && !IsZero(end, got)) end = std::min<int64_t>(end + kCopyBlock, got);
      RETURN_IF_ERROR(Write(target, at, from, end));
      from = end < got ? end + kCopyBlock : end;
    }
    return static_cast<int64_t>(got);
  }

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  Error Failed(const std::string& step) const {
    return Error::FromErrno(errno, what_ + ", " + step, Outcome::kMaybeApplied);
  }
  bool IsZero(int64_t block, int64_t end) const {
    static constexpr std::array<char, kCopyBlock> kZeros{};
    return std::memcmp(buffer_.get() + block, kZeros.data(),
                       static_cast<size_t>(std::min(kCopyBlock, end - block))) == 0;
  }
  Status Write(int target, int64_t at, int64_t from, int64_t end) const {
    while (from < end) {
      const ssize_t put =
          ::pwrite(target, buffer_.get() + from, static_cast<size_t>(end - from), at + from);
      if (put < 0) return Failed("write");
      from += put;
    }
    return OkStatus();
  }

  const int device_;
  const std::string what_;
  std::unique_ptr<char, Free> buffer_;
};

Status CheckSizes(const CopyDevice& request, const std::string& what) {
  if (request.bytes <= 0 || request.bytes % kCopyBlock != 0 ||
      request.from_offset % kCopyBlock != 0) {
    return Error::NotApplied(Code::kInvalidArgument, what + ": no whole blocks");
  }
  if (request.bytes < request.expected.size_bytes) {
    return DeviceRefusal(what, "it is larger than its snapshot is to be");
  }
  // Its last block may be less than a whole one.
  if (request.bytes - request.expected.size_bytes < kCopyBlock) return OkStatus();
  return Error::NotApplied(Code::kOutOfRange, what + ": it ends before that");
}

}  // namespace

Result<FileExtent> DoCopyDevice(const CopyDevice& request, const KernelFeatures& features,
                                const CallOptions& options) {
  const std::string what = request.only_look
                               ? "look whether " + request.device + " can be copied"
                               : "copy " + request.device + " to " + request.to.Display();
  FileCopier copier({request.to, request.from_offset, request.bytes_per_second, what}, features,
                    options);
  RETURN_IF_ERROR(copier.Check());
  RETURN_IF_ERROR(CheckSizes(request, what));
  bool is_claimed = false;
  ASSIGN_OR_RETURN(CopySource source, OpenDeviceSource(request, what, &is_claimed));
  const Descriptor device(::fcntl(source.file.get(), F_DUPFD_CLOEXEC, 0));
  if (!device.valid()) return Error::FromErrno(errno, what, Outcome::kNotApplied);
  RETURN_IF_ERROR(CheckNothingWritten(request, device.get(), is_claimed, what));
  if (request.only_look) return FileExtent{};
  DevicePieces pieces(device.get(), what);
  const int64_t end = std::min(request.bytes, request.expected.size_bytes);
  const auto walk = [&](int64_t from, const CopyStep& step) -> Status {
    for (int64_t at = from; at < end;) {
      ASSIGN_OR_RETURN(const int64_t done, step(at, std::min(kDeviceStep, end - at)));
      at += done;
    }
    return OkStatus();
  };
  const auto piece = [&](int target, int64_t at, int64_t bytes) {
    return pieces.Copy(target, at, bytes);
  };
  ASSIGN_OR_RETURN(FileExtent copied, copier.Run(std::move(source), request.bytes, walk, piece));
  Status same = CheckNothingWritten(request, device.get(), is_claimed, what);
  if (same.ok() && !is_claimed) same = CheckHadByReaders(request, what);
  if (!same.ok()) return same.error().AsMaybeApplied();
  return copied;
}

}  // namespace volumed
