#include "os/filesystem_uuid.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "base/descriptor.h"

namespace volumed {
namespace {

constexpr char kUuidLinks[] = "/dev/disk/by-uuid";
constexpr size_t kUuidDigits = 32;

// Source: linux include/uapi/linux/fs.h (struct fsuuid2, FS_IOC_GETFSUUID, since 6.9).
struct KernelUuid {
  uint8_t size;
  std::array<uint8_t, 16> bytes;
};
constexpr unsigned long kGetFilesystemUuid = _IOR(0x15, 0, KernelUuid);

// Only those whose UUID is on the disk. tmpfs and overlay make a new one with each mount, some
// kernels tell it, and it would look like another root after each boot.
bool KeepsItsUuid(int fd) {
  constexpr long kXfsMagic = 0x58465342;  // Source: linux fs/xfs/libxfs/xfs_format.h.
  struct statfs filesystem {};
  if (::fstatfs(fd, &filesystem) != 0) return false;
  switch (static_cast<long>(filesystem.f_type)) {
    case EXT4_SUPER_MAGIC:
    case kXfsMagic:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
      return true;
    default:
      return false;
  }
}

std::string UuidByKernel(int fd) {
  static constexpr char kDigits[] = "0123456789abcdef";
  KernelUuid uuid{};
  if (::ioctl(fd, kGetFilesystemUuid, &uuid) != 0 || uuid.size != uuid.bytes.size()) return "";
  std::string text;
  for (const uint8_t byte : uuid.bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text.find_first_not_of('0') == std::string::npos ? "" : text;
}

// The link that udev keeps to the disk of that number.
std::string UuidByLink(dev_t device) {
  std::error_code error;
  for (const auto& link : std::filesystem::directory_iterator(kUuidLinks, error)) {
    struct stat disk {};
    if (::stat(link.path().c_str(), &disk) != 0 || disk.st_rdev != device) continue;
    std::string text;
    for (const char c : link.path().filename().string()) {
      if (c != '-') text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    const bool is_zero = text.find_first_not_of('0') == std::string::npos;
    return text.size() == kUuidDigits && !is_zero ? text : "";
  }
  return "";
}

}  // namespace

std::string FilesystemUuid(const std::string& directory) {
  const Descriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info {};
  if (!fd.valid() || !KeepsItsUuid(fd.get()) || ::fstat(fd.get(), &info) != 0) return "";
  const std::string uuid = UuidByKernel(fd.get());
  return uuid.empty() ? UuidByLink(info.st_dev) : uuid;
}

}  // namespace volumed
