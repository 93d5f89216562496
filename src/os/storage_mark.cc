#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "base/descriptor.h"
#include "base/strings.h"
#include "os/safe_open.h"
#include "os/statmount.h"
#include "os/storage_identity.h"

// Newer than Debian 12's headers. Source: linux/fs.h (Linux 6.9), linux/fcntl.h.
#ifndef FS_IOC_GETFSUUID
struct fsuuid2 {
  __u8 len;
  __u8 uuid[16];
};
#define FS_IOC_GETFSUUID _IOR(0x15, 0, struct fsuuid2)
#endif

namespace volumed {
namespace {

constexpr char kOwnerAttribute[] = "trusted.volumed.owner";
constexpr size_t kLongestOwner = 256;

std::string Hexadecimal(const unsigned char* bytes, size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

// "" for one of zeros: an image that is built reproducibly has that (mkfs.ext4 -U clear), and every
// other one, too.
std::string UuidText(const unsigned char* bytes) {
  if (std::all_of(bytes, bytes + 16, [](unsigned char byte) { return byte == 0; })) return "";
  std::string text = Hexadecimal(bytes, 16);
  for (const size_t at : {8U, 13U, 18U, 23U}) text.insert(at, "-");
  return text;
}

// Before Linux 6.9 each filesystem has a call of its own. Sources: linux/btrfs.h (btrfs_ioctl_
// fs_info_args), xfs/xfs_fs.h (xfs_fsop_geom), fs/ext4/ext4.h (fsuuid); their sizes are part of the
// request's number.
struct BtrfsInfo {
  uint64_t max_id;
  uint64_t num_devices;
  unsigned char fsid[16];
  uint64_t rest[124];
};
struct XfsGeometry {
  uint32_t numbers[8];
  uint64_t blocks[4];
  unsigned char uuid[16];
  uint32_t rest[12];
};
static_assert(sizeof(BtrfsInfo) == 1024);
static_assert(sizeof(XfsGeometry) == 128);
struct Ext4Uuid {
  uint32_t length;
  uint32_t flags;
  unsigned char uuid[16];
};
constexpr unsigned long kBtrfsInfo = _IOR(0x94, 31, BtrfsInfo);
constexpr unsigned long kXfsGeometry = _IOR('X', 126, XfsGeometry);
constexpr unsigned long kExt4Uuid = _IOR('f', 44, uint32_t[2]);

std::string FilesystemUuid(int directory, const std::string& fs_type) {
  fsuuid2 any = {};
  if (::ioctl(directory, FS_IOC_GETFSUUID, &any) == 0 && any.len == 16) return UuidText(any.uuid);
  BtrfsInfo btrfs = {};
  if (fs_type == "btrfs" && ::ioctl(directory, kBtrfsInfo, &btrfs) == 0) {
    return UuidText(btrfs.fsid);
  }
  XfsGeometry xfs = {};
  if (fs_type == "xfs" && ::ioctl(directory, kXfsGeometry, &xfs) == 0) return UuidText(xfs.uuid);
  Ext4Uuid ext = {};
  ext.length = sizeof(ext.uuid);
  if (fs_type.starts_with("ext") && ::ioctl(directory, kExt4Uuid, &ext) == 0) {
    return UuidText(ext.uuid);
  }
  return "";
}

Error Refused(const MarkStorage& request, Code code, const std::string& why) {
  return Error::NotApplied(code, "mark " + request.path.Display() + ": " + why);
}

}  // namespace

std::string FileHandleOf(int file) {
  // Its bytes follow the head.
  alignas(file_handle) std::array<unsigned char, sizeof(file_handle) + MAX_HANDLE_SZ> bytes = {};
  auto* handle = reinterpret_cast<file_handle*>(bytes.data());
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  if (::name_to_handle_at(file, "", handle, &mount, AT_EMPTY_PATH) != 0) return "";
  const size_t count = std::min<size_t>(handle->handle_bytes, MAX_HANDLE_SZ);
  return std::to_string(handle->handle_type) + ":" +
         Hexadecimal(bytes.data() + sizeof(file_handle), count);
}

std::string ReadOwnerMark(int directory) {
  std::array<char, kLongestOwner> owner;
  const ssize_t size =
      ::getxattr(ProcFdPath(directory).c_str(), kOwnerAttribute, owner.data(), owner.size());
  // Longer than any of ours: somebody else's, and so nobody's that is on record.
  if (size < 0) return errno == ERANGE ? "?" : "";
  return std::string(owner.data(), static_cast<size_t>(size));
}

StorageObject ReadStorageObject(int file, const std::string& fs_type) {
  StorageObject object;
  object.fs_type = fs_type;
  struct stat info = {};
  if (::fstat(file, &info) == 0) object.inode = info.st_ino;
  object.handle = FileHandleOf(file);
  // To open any other kind of file may have effects.
  if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode)) return object;
  const Descriptor open(::open(ProcFdPath(file).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (open.valid()) object.fs_uuid = FilesystemUuid(open.get(), fs_type);
  return object;
}

Status CheckIsExpected(int file, const StorageObject& expected, const KernelFeatures& features) {
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount, FindMountEntryOf(file, features));
  if (!mount) {
    return Error::NotApplied(Code::kFailedPrecondition, "its mount was taken away meanwhile");
  }
  const std::string difference =
      StorageDifference(expected, ReadStorageObject(file, mount->fs_type));
  if (difference.empty()) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition, "it is another directory: " + difference);
}

Result<Descriptor> OpenByHandle(int directory, const std::string& handle) {
  alignas(file_handle) std::array<unsigned char, sizeof(file_handle) + MAX_HANDLE_SZ> bytes = {};
  auto* asked = reinterpret_cast<file_handle*>(bytes.data());
  const size_t colon = handle.find(':');
  const auto type = ParseUint64(handle.substr(0, colon));
  const std::string digits = colon == std::string::npos ? "" : handle.substr(colon + 1);
  if (!type || digits.size() % 2 != 0 || digits.size() / 2 > MAX_HANDLE_SZ) {
    return Error::NotApplied(Code::kInvalidArgument, "\"" + handle + "\" is no file handle");
  }
  asked->handle_type = static_cast<int>(*type);
  asked->handle_bytes = static_cast<unsigned>(digits.size() / 2);
  for (size_t i = 0; i < digits.size() / 2; ++i) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const size_t high = kDigits.find(digits[2 * i]);
    const size_t low = kDigits.find(digits[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) {
      return Error::NotApplied(Code::kInvalidArgument, "\"" + handle + "\" is no file handle");
    }
    bytes[sizeof(file_handle) + i] = static_cast<unsigned char>(high << 4 | low);
  }
  const Descriptor open(
      ::open(ProcFdPath(directory).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
  Descriptor found(open.valid() ? ::open_by_handle_at(open.get(), asked, O_PATH | O_CLOEXEC) : -1);
  if (found.valid()) return found;
  return Error::FromErrno(errno, "open a file by its handle", Outcome::kNotApplied);
}

Result<Changed> DoMarkStorage(const MarkStorage& request, const KernelFeatures& features) {
  if (request.owner.size() >= kLongestOwner) {
    return Refused(request, Code::kInvalidArgument, "the owner's name is too long");
  }
  ASSIGN_OR_RETURN(
      const Descriptor directory,
      OpenSafePath(request.path, O_RDONLY | O_DIRECTORY).With("mark " + request.path.Display()));
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountEntryOf(directory.get(), features));
  const std::string difference = StorageDifference(
      request.expected, ReadStorageObject(directory.get(), mount ? mount->fs_type : ""));
  if (!difference.empty()) {
    return Refused(request, Code::kFailedPrecondition, "it is another directory: " + difference);
  }
  const std::string now = ReadOwnerMark(directory.get());
  if (now == request.owner) return Changed{false};
  if (!now.empty() && now != request.replaces) {
    return Refused(request, Code::kAlreadyExists, "it is marked as storage of claim " + now);
  }
  const std::string what = "mark " + request.path.Display();
  const int done = request.owner.empty()
                       ? ::fremovexattr(directory.get(), kOwnerAttribute)
                       : ::fsetxattr(directory.get(), kOwnerAttribute, request.owner.data(),
                                     request.owner.size(), 0);
  if (done != 0) return Error::FromErrno(errno, what, Outcome::kNotApplied);
  if (::fsync(directory.get()) != 0) {
    return Error::FromErrno(errno, what, Outcome::kMaybeApplied);
  }
  return Changed{true};
}

}  // namespace volumed
