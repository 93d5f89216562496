#include "os/filesystem_geometry.h"

#include <linux/btrfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace volumed {
namespace {

// Not in the kernel's exported headers. Source: Linux fs/ext4/ext4.h (EXT4_IOC_RESIZE_FS).
constexpr unsigned long kExt4ResizeFs = _IOW('f', 16, uint64_t);

// Likewise. Source: Linux fs/xfs/libxfs/xfs_fs.h (xfs_fsop_geom_v1, xfs_growfs_data).
struct XfsGeometry {
  uint32_t blocksize, rtextsize, agblocks, agcount, logblocks, sectsize, inodesize, imaxpct;
  uint64_t datablocks, rtblocks, rtextents, logstart;
  unsigned char uuid[16];
  uint32_t sunit, swidth;
  int32_t version;
  uint32_t flags, logsectsize, rtsectsize, dirblocksize;
};
static_assert(sizeof(XfsGeometry) == 112);
struct XfsGrowData {
  uint64_t newblocks;
  uint32_t imaxpct;
};
static_assert(sizeof(XfsGrowData) == 16);
constexpr unsigned long kXfsGeometry = _IOR('X', 100, XfsGeometry);
constexpr unsigned long kXfsGrowData = _IOW('X', 110, XfsGrowData);
// The kernel makes no smaller allocation group. Source: Linux fs/xfs/libxfs/xfs_fs.h.
constexpr int64_t kXfsSmallestGroupBlocks = 64;

template <size_t kSize>
class Block {
 public:
  const unsigned char* bytes() const { return data_.data(); }
  Status Read(int device, off_t offset, const std::string& what) {
    const ssize_t size = ::pread(device, data_.data(), kSize, offset);
    if (size < 0) return Error::FromErrno(errno, what + ": read", Outcome::kNotApplied);
    if (size == static_cast<ssize_t>(kSize)) return OkStatus();
    return Error::NotApplied(Code::kDataLoss, what + ": the device ends before the superblock");
  }
  uint64_t Little(size_t at, size_t size) const {
    uint64_t value = 0;
    for (size_t i = size; i > 0; --i) value = value << 8 | data_[at + i - 1];
    return value;
  }
  uint64_t Big(size_t at, size_t size) const {
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value = value << 8 | data_[at + i];
    return value;
  }

 private:
  std::array<unsigned char, kSize> data_{};
};

Error NoSuperblock(const std::string& what, const char* type) {
  return Error::NotApplied(Code::kDataLoss, what + ": there is no superblock of " + type);
}

// Source: Linux Documentation/filesystems/ext4/super.rst.
Result<FilesystemGeometry> ReadExt(int device, const std::string& what) {
  Block<1024> super;
  RETURN_IF_ERROR(super.Read(device, 1024, what));
  constexpr uint64_t kErrorsFound = 2;
  constexpr uint64_t k64Bit = 0x80;
  const uint64_t log_block = super.Little(0x18, 4);
  const uint64_t log_cluster = super.Little(0x1C, 4);
  const uint64_t blocks_per_group = super.Little(0x20, 4);
  if (super.Little(0x38, 2) != 0xEF53 || log_block > 6 || log_cluster > 20 ||
      blocks_per_group == 0) {
    return NoSuperblock(what, "ext");
  }
  FilesystemGeometry geometry;
  geometry.block_bytes = int64_t{1024} << log_block;
  uint64_t blocks = super.Little(0x4, 4);
  const bool is_64_bit = (super.Little(0x60, 4) & k64Bit) != 0;
  if (is_64_bit) blocks |= super.Little(0x150, 4) << 32;
  geometry.size_bytes = static_cast<int64_t>(blocks) * geometry.block_bytes;
  geometry.has_errors = (super.Little(0x3A, 2) & kErrorsFound) != 0;
  // A last group that would hold little more than its own tables is not made.
  // Source: e2fsprogs lib/ext2fs/initialize.c, resize/resize2fs.c ("overhead + 50").
  const uint64_t inode_bytes = super.Little(0x4C, 4) == 0 ? 128 : super.Little(0x58, 2);
  const auto block = static_cast<uint64_t>(geometry.block_bytes);
  const uint64_t tables = super.Little(0x28, 4) * inode_bytes / block + 1;
  const uint64_t groups = blocks / blocks_per_group + 1;
  const uint64_t descriptors = groups * (is_64_bit ? 64 : 32) / block + 1;
  const uint64_t overhead = 3 + tables + descriptors + super.Little(0xCE, 2);
  geometry.smallest_growth_bytes =
      static_cast<int64_t>((overhead + 50) * block) + (int64_t{1024} << log_cluster);
  return geometry;
}

// Source: xfs_db(8), the superblock's fields.
Result<FilesystemGeometry> ReadXfs(int device, const std::string& what) {
  Block<512> super;
  RETURN_IF_ERROR(super.Read(device, 0, what));
  if (std::memcmp(super.bytes(), "XFSB", 4) != 0) return NoSuperblock(what, "xfs");
  FilesystemGeometry geometry;
  geometry.block_bytes = static_cast<int64_t>(super.Big(4, 4));
  geometry.size_bytes = static_cast<int64_t>(super.Big(8, 8)) * geometry.block_bytes;
  geometry.smallest_growth_bytes = kXfsSmallestGroupBlocks * geometry.block_bytes;
  return geometry;
}

// Source: btrfs Documentation/dev/On-disk-format.rst (the superblock, dev_item).
Result<FilesystemGeometry> ReadBtrfs(int device, const std::string& what) {
  Block<4096> super;
  RETURN_IF_ERROR(super.Read(device, 64 * 1024, what));
  if (std::memcmp(super.bytes() + 0x40, "_BHRfS_M", 8) != 0) return NoSuperblock(what, "btrfs");
  FilesystemGeometry geometry;
  geometry.block_bytes = static_cast<int64_t>(super.Little(0x90, 4));
  geometry.device_number = super.Little(0xC9, 8);
  geometry.size_bytes = static_cast<int64_t>(super.Little(0xD1, 8));
  geometry.smallest_growth_bytes = geometry.block_bytes;
  geometry.filesystem_uuid.assign(reinterpret_cast<const char*>(super.bytes() + 0x20), 16);
  return geometry;
}

int AskXfs(int mounted, XfsGeometry& geometry) {
  return ::ioctl(mounted, kXfsGeometry, &geometry) == 0 ? 0 : errno;
}

int GrowXfs(int mounted, int64_t device_bytes) {
  XfsGeometry now = {};
  if (const int error = AskXfs(mounted, now)) return error;
  if (now.blocksize == 0) return EINVAL;
  XfsGrowData wanted = {};
  wanted.newblocks = static_cast<uint64_t>(device_bytes) / now.blocksize;
  wanted.imaxpct = now.imaxpct;
  return ::ioctl(mounted, kXfsGrowData, &wanted) == 0 ? 0 : errno;
}

int GrowBtrfs(int mounted, uint64_t device_number) {
  btrfs_ioctl_vol_args wanted = {};
  const std::string text = std::to_string(device_number) + ":max";
  std::memcpy(wanted.name, text.data(), text.size());
  return ::ioctl(mounted, BTRFS_IOC_RESIZE, &wanted) >= 0 ? 0 : errno;
}

}  // namespace

std::optional<FilesystemFamily> FilesystemFamilyOf(const std::string& fs_type) {
  if (fs_type == "ext2" || fs_type == "ext3" || fs_type == "ext4") return FilesystemFamily::kExt;
  if (fs_type == "xfs") return FilesystemFamily::kXfs;
  if (fs_type == "btrfs") return FilesystemFamily::kBtrfs;
  return std::nullopt;
}

const char* ToolPackageOf(FilesystemFamily family) {
  switch (family) {
    case FilesystemFamily::kExt:
      return "e2fsprogs";
    case FilesystemFamily::kXfs:
      return "xfsprogs";
    case FilesystemFamily::kBtrfs:
      return "btrfs-progs";
  }
  return "";
}

Result<FilesystemGeometry> ReadGeometry(FilesystemFamily family, int device,
                                        const std::string& what) {
  switch (family) {
    case FilesystemFamily::kExt:
      return ReadExt(device, what);
    case FilesystemFamily::kXfs:
      return ReadXfs(device, what);
    case FilesystemFamily::kBtrfs:
      return ReadBtrfs(device, what);
  }
  __builtin_unreachable();
}

Result<FilesystemGeometry> AskGeometry(FilesystemFamily family, int mounted, int device,
                                       const FilesystemGeometry& on_device,
                                       const std::string& what) {
  FilesystemGeometry geometry = on_device;
  switch (family) {
    case FilesystemFamily::kExt:
      return ReadExt(device, what);
    case FilesystemFamily::kXfs: {
      XfsGeometry now = {};
      if (const int error = AskXfs(mounted, now)) {
        return Error::FromErrno(error, what + ": XFS_IOC_FSGEOMETRY", Outcome::kNotApplied);
      }
      geometry.size_bytes = static_cast<int64_t>(now.datablocks) * now.blocksize;
      return geometry;
    }
    case FilesystemFamily::kBtrfs: {
      btrfs_ioctl_dev_info_args info = {};
      info.devid = on_device.device_number;
      if (::ioctl(mounted, BTRFS_IOC_DEV_INFO, &info) != 0) {
        return Error::FromErrno(errno, what + ": BTRFS_IOC_DEV_INFO", Outcome::kNotApplied);
      }
      geometry.size_bytes = static_cast<int64_t>(info.total_bytes);
      return geometry;
    }
  }
  __builtin_unreachable();
}

bool FillsDevice(const FilesystemGeometry& geometry, int64_t device_bytes) {
  return device_bytes - geometry.size_bytes < geometry.smallest_growth_bytes;
}

int GrowMounted(FilesystemFamily family, int mounted, const FilesystemGeometry& geometry,
                int64_t device_bytes) {
  switch (family) {
    case FilesystemFamily::kExt: {
      uint64_t blocks = static_cast<uint64_t>(device_bytes / geometry.block_bytes);
      return ::ioctl(mounted, kExt4ResizeFs, &blocks) == 0 ? 0 : errno;
    }
    case FilesystemFamily::kXfs:
      return GrowXfs(mounted, device_bytes);
    case FilesystemFamily::kBtrfs:
      return GrowBtrfs(mounted, geometry.device_number);
  }
  __builtin_unreachable();
}

Status CheckMountedFrom(FilesystemFamily family, int mounted, int device,
                        const FilesystemGeometry& on_device, const std::string& what) {
  const Error other = Error::NotApplied(
      Code::kFailedPrecondition, what + ": another filesystem than the device's is mounted there");
  if (family == FilesystemFamily::kBtrfs) {
    // Its st_dev is of no device.
    btrfs_ioctl_fs_info_args info = {};
    if (::ioctl(mounted, BTRFS_IOC_FS_INFO, &info) != 0) return other;
    const bool same =
        on_device.filesystem_uuid.size() == sizeof(info.fsid) &&
        std::memcmp(info.fsid, on_device.filesystem_uuid.data(), sizeof(info.fsid)) == 0;
    return same ? OkStatus() : Status(other);
  }
  struct stat place = {};
  struct stat disk = {};
  if (::fstat(mounted, &place) != 0 || ::fstat(device, &disk) != 0) {
    return Error::FromErrno(errno, what, Outcome::kNotApplied);
  }
  return place.st_dev == disk.st_rdev ? OkStatus() : Status(other);
}

}  // namespace volumed
