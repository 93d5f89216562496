#include "kube/directory_identity.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace volumed {
namespace {

// Source: linux include/uapi/linux/fs.h (struct fsuuid2, FS_IOC_GETFSUUID, since 6.9).
struct FilesystemUuid {
  uint8_t size;
  std::array<uint8_t, 16> bytes;
};
constexpr unsigned long kGetFilesystemUuid = _IOR(0x15, 0, FilesystemUuid);

constexpr long kXfsMagic = 0x58465342;  // fs/xfs/libxfs/xfs_format.h

struct FilesystemType {
  long magic;
  std::string_view name;
  bool lasting;  // UUID and inode numbers are on its disk
};
constexpr FilesystemType kTypes[] = {
    {EXT4_SUPER_MAGIC, "ext4", true},   {kXfsMagic, "xfs", true},
    {BTRFS_SUPER_MAGIC, "btrfs", true}, {F2FS_SUPER_MAGIC, "f2fs", true},
    {TMPFS_MAGIC, "tmpfs", false},      {OVERLAYFS_SUPER_MAGIC, "overlay", false},
    {FUSE_SUPER_MAGIC, "fuse", false},  {NFS_SUPER_MAGIC, "nfs", false},
};

std::string Hex(const uint8_t* bytes, size_t size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

// "" from a kernel before 6.9, and for a filesystem that has none.
std::string UuidOf(int fd) {
  FilesystemUuid uuid{};
  if (::ioctl(fd, kGetFilesystemUuid, &uuid) != 0 || uuid.size != uuid.bytes.size()) return "";
  const bool is_zero =
      std::all_of(uuid.bytes.begin(), uuid.bytes.end(), [](uint8_t byte) { return byte == 0; });
  return is_zero ? "" : Hex(uuid.bytes.data(), uuid.bytes.size());
}

std::optional<int64_t> BirthOf(int fd) {
  struct statx status {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &status) != 0 ||
      (status.stx_mask & STATX_BTIME) == 0) {
    return std::nullopt;
  }
  const int64_t birth =
      static_cast<int64_t>(status.stx_btime.tv_sec) * 1'000'000'000 + status.stx_btime.tv_nsec;
  // A root that mkfs made without a clock has none to be known by.
  if (birth == 0) return std::nullopt;
  return birth;
}

// "UUID/SUBVOLUME" and its two parts: an older kernel tells no UUID, and only btrfs has subvolumes.
bool MayBeSameFilesystem(std::string_view a, std::string_view b) {
  const auto part = [](std::string_view text, bool subvolume) {
    const size_t slash = std::min(text.find('/'), text.size());
    return subvolume ? text.substr(std::min(slash + 1, text.size())) : text.substr(0, slash);
  };
  for (const bool subvolume : {false, true}) {
    const std::string_view one = part(a, subvolume);
    const std::string_view other = part(b, subvolume);
    if (!one.empty() && !other.empty() && one != other) return false;
  }
  return true;
}

int64_t Nanos(const struct timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

const FilesystemType* TypeOf(long magic) {
  const auto* const type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                        [magic](const auto& t) { return t.magic == magic; });
  return type == std::end(kTypes) ? nullptr : type;
}

// Whether it is the same one, at whatever time of its life.
bool IsSameInode(const KnownDirectory& known, const KnownDirectory& now) {
  if (known.filesystem_type != now.filesystem_type) return false;
  if (!MayBeSameFilesystem(known.filesystem_uuid, now.filesystem_uuid)) return false;
  const bool have_uuids = !known.filesystem_uuid.empty() && !now.filesystem_uuid.empty();
  const bool have_inodes = known.inode && now.inode;
  if (have_inodes && *known.inode != *now.inode) return false;
  const bool have_births = known.birth_unix_nanos && now.birth_unix_nanos;
  if (have_births && *known.birth_unix_nanos != *now.birth_unix_nanos) return false;
  return have_births || (have_uuids && have_inodes);
}

}  // namespace

Result<OpenDirectory> OpenDirectoryAt(const std::string& path) {
  ASSIGN_OR_RETURN(Descriptor fd,
                   DescriptorFrom(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                                  "open directory " + path));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    return Error::FromErrno(errno, "examine directory " + path, Outcome::kNotApplied);
  }
  return OpenDirectory{std::move(fd), {status.st_dev, status.st_ino}};
}

Result<KnownDirectory> IdentifyDirectory(const Descriptor& directory) {
  struct statfs filesystem {};
  struct stat status {};
  if (::fstatfs(directory.get(), &filesystem) != 0 || ::fstat(directory.get(), &status) != 0) {
    return Error::FromErrno(errno, "examine the directory's filesystem", Outcome::kNotApplied);
  }
  KnownDirectory known;
  known.birth_unix_nanos = BirthOf(directory.get());
  const auto magic = static_cast<long>(filesystem.f_type);
  const FilesystemType* type = TypeOf(magic);
  if (type == nullptr) {
    known.filesystem_type = "magic " + std::to_string(magic);
    return known;
  }
  known.filesystem_type = type->name;
  if (!type->lasting) return known;
  known.inode = status.st_ino;
  known.changed_unix_nanos = Nanos(status.st_ctim);
  known.filesystem_uuid = UuidOf(directory.get());
  if (magic == BTRFS_SUPER_MAGIC) {
    std::array<uint8_t, sizeof(filesystem.f_fsid)> id{};
    std::memcpy(id.data(), &filesystem.f_fsid, id.size());
    known.filesystem_uuid += "/" + Hex(id.data(), id.size());
  }
  return known;
}

std::optional<int64_t> LastChangeOf(const Descriptor& directory) {
  struct statfs filesystem {};
  struct stat status {};
  if (::fstatfs(directory.get(), &filesystem) != 0 || ::fstat(directory.get(), &status) != 0) {
    return std::nullopt;
  }
  const FilesystemType* type = TypeOf(static_cast<long>(filesystem.f_type));
  if (type == nullptr || !type->lasting) return std::nullopt;
  return Nanos(status.st_ctim);
}

bool IsOlderState(const KnownDirectory& known, const KnownDirectory& now) {
  return IsSameInode(known, now) && known.changed_unix_nanos && now.changed_unix_nanos &&
         *now.changed_unix_nanos < *known.changed_unix_nanos;
}

bool IsSameDirectory(const KnownDirectory& known, const KnownDirectory& now) {
  return IsSameInode(known, now) && !IsOlderState(known, now);
}

}  // namespace volumed
