#include "os/loop_holes.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <linux/magic.h>
#include <linux/major.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "os/loop_asker.h"
#include "os/loop_file.h"

namespace volumed {
namespace {

// One that knows nothing of holes says that everything is data, but a server may say anything.
bool TellsHoles(int file) {
  constexpr std::array<decltype(statfs::f_type), 4> kLocal{EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,
                                                           BTRFS_SUPER_MAGIC, TMPFS_MAGIC};
  struct statfs info = {};
  if (::fstatfs(file, &info) != 0) return false;
  for (const auto type : kLocal) {
    if (info.f_type == type) return true;
  }
  return false;
}

// Invalid if it is not the file at the path that the kernel shows, or only in part the device.
Descriptor OpenFileOf(int device) {
  struct stat node = {};
  loop_info64 info = {};
  if (::fstat(device, &node) != 0 || !S_ISBLK(node.st_mode)) return {};
  // A device mapper passes the question on to a loop device below it, and may read otherwise.
  if (major(node.st_rdev) != LOOP_MAJOR) return {};
  if (::ioctl(device, LOOP_GET_STATUS64, &info) != 0) return {};
  if (info.lo_offset != 0 || info.lo_sizelimit != 0) return {};
  const Result<LoopBacking> shown = BackingOf("loop" + std::to_string(info.lo_number));
  if (!shown.ok() || shown->file.empty() || shown->deleted) return {};
  Descriptor file(
      ::open(shown->file.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC));
  struct stat found = {};
  if (!file.valid() || ::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) return {};
  const bool is_it =
      LoopFile{info.lo_device, info.lo_inode} == LoopFile{found.st_dev, found.st_ino};
  return is_it ? std::move(file) : Descriptor();
}

}  // namespace

bool IsOneHole(int device) {
  const Descriptor file = OpenFileOf(device);
  if (!file.valid() || !TellsHoles(file.get())) return false;
  constexpr unsigned kWritten =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  if (::sync_file_range(device, 0, 0, kWritten) != 0) return false;
  return ::lseek(file.get(), 0, SEEK_DATA) < 0 && errno == ENXIO;
}

}  // namespace volumed
