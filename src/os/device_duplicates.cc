#include "os/device_duplicates.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <set>
#include <vector>

#include "base/descriptor.h"
#include "os/block_device.h"
#include "os/mount_table.h"
#include "os/sysfs.h"

namespace volumed {
namespace {

struct DirDeleter {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

// The UUID in an XFS superblock; empty where there is none. Source: xfs_db(8), sb_uuid at 32.
std::string ReadXfsUuid(int device) {
  std::array<unsigned char, 512> block;
  if (::pread(device, block.data(), block.size(), 0) != static_cast<ssize_t>(block.size())) {
    return "";
  }
  if (block[0] != 'X' || block[1] != 'F' || block[2] != 'S' || block[3] != 'B') return "";
  std::string uuid;
  char hex[4];
  for (size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) uuid += '-';
    std::snprintf(hex, sizeof(hex), "%02x", static_cast<unsigned>(block[32 + i]));
    uuid += hex;
  }
  return uuid;
}

}  // namespace

Result<std::string> FindMountedBtrfs(const DeviceIdentity& identity) {
  const std::string path = "/sys/fs/btrfs/" + identity.uuid + "/devices";
  const std::unique_ptr<DIR, DirDeleter> directory(::opendir(path.c_str()));
  if (directory == nullptr) {
    if (errno == ENOENT) return std::string();
    return Error::FromErrno(errno, "list " + path, Outcome::kNotApplied);
  }
  const dev_t ours = makedev(identity.device_major, identity.device_minor);
  std::string others;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (BlockNumberIn(path + "/" + name) == ours) return std::string();  // the same filesystem
    others += (others.empty() ? "/dev/" : ", /dev/") + NodeNameOf(name);
  }
  return others;
}

bool IsInMountedBtrfs(const DeviceIdentity& identity) {
  const std::vector<dev_t> disks = BlockNumbersBelow("/sys/fs/btrfs/" + identity.uuid + "/devices");
  const dev_t ours = makedev(identity.device_major, identity.device_minor);
  return std::find(disks.begin(), disks.end(), ours) != disks.end();
}

Result<std::string> FindMountedXfs(const DeviceIdentity& identity) {
  ASSIGN_OR_RETURN(const std::vector<MountEntry> mounts, ReadMountTable());
  const dev_t ours = makedev(identity.device_major, identity.device_minor);
  std::set<dev_t> seen = {ours};
  for (const MountEntry& mount : mounts) {
    const dev_t number = makedev(mount.device_major, mount.device_minor);
    if (mount.fs_type != "xfs" || !seen.insert(number).second) continue;
    DeviceIdentity other;
    other.device_major = mount.device_major;
    other.device_minor = mount.device_minor;
    const Result<std::string> name = KernelDeviceName(other);
    if (!name.ok()) continue;
    const std::string path = "/dev/" + *name;
    const Result<Descriptor> device = OpenBlockDevice(path, O_RDONLY | O_NONBLOCK);
    struct stat info = {};
    if (!device.ok() || ::fstat(device->get(), &info) != 0 || info.st_rdev != number) continue;
    if (ReadXfsUuid(device->get()) == identity.uuid) {
      return path + ", mounted on " + mount.mount_point;
    }
  }
  return std::string();
}

}  // namespace volumed
