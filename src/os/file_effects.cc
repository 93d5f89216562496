#include "os/file_effects.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "os/directory_reader.h"
#include "os/safe_open.h"

namespace volumed {
namespace {

constexpr size_t kReadPiece = 64 * 1024;
constexpr uint32_t kModeBits = 07777;

Error NotApplied(const std::string& what) {
  return Error::FromErrno(errno, what, Outcome::kNotApplied);
}

bool IsMissing(const Error& error) { return error.sys_errno() == ENOENT; }

FileInfo ToFileInfo(const struct statx& stat) {
  FileInfo info;
  info.type = FileTypeFromMode(stat.stx_mode);
  info.mode = stat.stx_mode & kModeBits;
  info.uid = stat.stx_uid;
  info.gid = stat.stx_gid;
  info.device = makedev(stat.stx_dev_major, stat.stx_dev_minor);
  info.inode = stat.stx_ino;
  info.size_bytes = static_cast<int64_t>(stat.stx_size);
  info.allocated_bytes = static_cast<int64_t>(stat.stx_blocks) * kStatBlock;
  info.is_mount_point = (stat.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  if (S_ISBLK(stat.stx_mode) || S_ISCHR(stat.stx_mode)) {
    info.device_number = makedev(stat.stx_rdev_major, stat.stx_rdev_minor);
  }
  return info;
}

// ---- stat ---------------------------------------------------------------------------------------

// The type of what lies mounted on `name`. To open a directory as such asks nothing of its
// filesystem; only a mounted file is asked, and only for what the kernel already has.
Result<FileType> TypeOfMounted(int parent, const std::string& name, const std::string& what) {
  const Descriptor directory(OpenChild(parent, name.c_str(), O_PATH | O_DIRECTORY));
  if (directory.valid()) return FileType::kDirectory;
  if (errno != ENOTDIR) return NotApplied(what);
  const Descriptor file(OpenChild(parent, name.c_str(), O_PATH));
  struct statx stat = {};
  if (!file.valid() ||
      ::statx(file.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &stat) != 0) {
    return NotApplied(what);
  }
  return FileTypeFromMode(stat.stx_mode);
}

Result<FileInfo> StatMountPoint(const Stat& request) {
  const std::string what = "stat " + request.path.Display();
  FileInfo info;
  if (request.path.root == "/" && request.path.relative.empty()) {
    info.type = FileType::kDirectory;
    info.is_mount_point = true;
    return info;
  }
  const Result<ParentAndName> parent = OpenParent(request.path);
  if (!parent.ok()) {
    if (IsMissing(parent.error())) return info;
    return parent.error();
  }
  const Descriptor opened(
      OpenChild(parent->parent.get(), parent->name.c_str(), O_PATH, RESOLVE_NO_XDEV));
  if (!opened.valid()) {
    if (errno == ENOENT) return info;
    if (errno != EXDEV) return NotApplied(what);
    info.is_mount_point = true;
    ASSIGN_OR_RETURN(info.type, TypeOfMounted(parent->parent.get(), parent->name, what));
    return info;
  }
  struct statx stat = {};
  if (::statx(opened.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &stat) != 0) {
    return NotApplied(what);
  }
  info.type = FileTypeFromMode(stat.stx_mode);
  return info;
}

// ---- make ---------------------------------------------------------------------------------------

// One directory whose parent exists. `outcome`: of a failure, given what was made before.
Result<Changed> MakeOneDirectory(int parent, const std::string& name, uint32_t mode,
                                 bool exact_mode, const std::string& what, Outcome outcome) {
  const bool made = ::mkdirat(parent, name.c_str(), mode & 0777) == 0;
  if (!made && errno != EEXIST) return Error::FromErrno(errno, what, outcome);
  if (made) outcome = Outcome::kMaybeApplied;
  if (!made && !exact_mode) {
    const Descriptor there(OpenChild(parent, name.c_str(), O_PATH | O_DIRECTORY));
    if (there.valid()) return Changed{false};
    return Error::FromErrno(errno == ENOTDIR || errno == ELOOP ? EEXIST : errno, what, outcome);
  }
  const Descriptor directory(OpenChild(parent, name.c_str(), O_RDONLY | O_DIRECTORY));
  if (!directory.valid()) {
    return Error::FromErrno(errno == ENOTDIR || errno == ELOOP ? EEXIST : errno, what, outcome);
  }
  struct stat stat = {};
  if (::fstat(directory.get(), &stat) != 0) return Error::FromErrno(errno, what, outcome);
  if ((stat.st_mode & kModeBits) == (mode & kModeBits)) return Changed{made};
  // The umask took bits away, or a setgid parent gave one.
  if (::fchmod(directory.get(), mode & kModeBits) != 0) {
    return Error::FromErrno(errno, what, outcome);
  }
  return Changed{true};
}

// Makes what is missing of the directories above the last component.
// The trusted root is made only when it is itself what the request is about.
Result<Changed> MakeParents(const SafePath& path, uint32_t mode, const std::string& what) {
  const bool in_root = path.relative.empty();
  const std::string& whole = in_root ? path.root : path.relative;
  Changed any;
  for (size_t slash = whole.find('/', 1); slash != std::string::npos;
       slash = whole.find('/', slash + 1)) {
    SafePath prefix = path;
    (in_root ? prefix.root : prefix.relative) = whole.substr(0, slash);
    // Links among the parents are allowed where the path's way of resolving allows them.
    const Result<Descriptor> there =
        in_root ? DescriptorFrom(::open(prefix.root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC),
                                 "open " + prefix.root)
                : OpenSafePath(prefix, O_PATH | O_DIRECTORY);
    if (there.ok()) continue;
    const Outcome outcome = any.changed ? Outcome::kMaybeApplied : Outcome::kNotApplied;
    if (!IsMissing(there.error())) {
      return any.changed ? there.error().AsMaybeApplied() : there.error();
    }
    const Result<ParentAndName> parent = OpenParent(prefix);
    if (!parent.ok()) return any.changed ? parent.error().AsMaybeApplied() : parent.error();
    ASSIGN_OR_RETURN(const Changed made, MakeOneDirectory(parent->parent.get(), parent->name, mode,
                                                          false, what, outcome));
    any.changed = any.changed || made.changed;
  }
  return any;
}

Result<std::string> ReadLinkAt(int directory, const std::string& name, const std::string& what) {
  std::array<char, PATH_MAX> target;
  const ssize_t size = ::readlinkat(directory, name.c_str(), target.data(), target.size());
  if (size < 0) return NotApplied(what);
  return std::string(target.data(), static_cast<size_t>(size));
}

// ---- remove -------------------------------------------------------------------------------------

Result<Changed> RemoveOne(const SafePath& path, int flags, const std::string& what) {
  const Result<ParentAndName> parent = OpenParent(path);
  if (!parent.ok()) {
    if (IsMissing(parent.error())) return Changed{false};
    return parent.error();
  }
  if (::unlinkat(parent->parent.get(), parent->name.c_str(), flags) == 0) return Changed{true};
  if (errno == ENOENT) return Changed{false};
  // Some filesystems say EEXIST for "not empty". Source: rmdir(2).
  return Error::FromErrno(errno == EEXIST ? ENOTEMPTY : errno, what, Outcome::kNotApplied);
}

// From sysfs: opening the device could hang, or wake it. 0 where it does not tell.
// Source: Documentation/ABI/stable/sysfs-block (size, in sectors of 512 bytes).
int64_t BlockDeviceBytes(uint32_t major, uint32_t minor) {
  std::ifstream file("/sys/dev/block/" + std::to_string(major) + ":" + std::to_string(minor) +
                     "/size");
  int64_t sectors = 0;
  return file >> sectors ? sectors * 512 : 0;
}

}  // namespace

Result<FileInfo> DoStat(const Stat& request) {
  if (request.only_mount_point) {
    if (request.follow) {
      return Error::NotApplied(
          Code::kInvalidArgument,
          "stat " + request.path.Display() + ": follow and only_mount_point exclude each other");
    }
    return StatMountPoint(request);
  }
  const Result<Descriptor> opened =
      OpenSafePath(request.path, O_PATH | (request.follow ? 0 : O_NOFOLLOW));
  if (!opened.ok()) {
    if (IsMissing(opened.error())) return FileInfo{};
    return opened.error();
  }
  struct statx stat = {};
  if (::statx(opened->get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stat) != 0) {
    return NotApplied("stat " + request.path.Display());
  }
  FileInfo info = ToFileInfo(stat);
  if (S_ISBLK(stat.stx_mode)) {
    info.size_bytes = BlockDeviceBytes(stat.stx_rdev_major, stat.stx_rdev_minor);
  }
  return info;
}

Result<FsInfo> DoStatFs(const StatFs& request) {
  ASSIGN_OR_RETURN(const Descriptor opened, OpenSafePath(request.path, O_PATH));
  struct statfs stat = {};
  if (::fstatfs(opened.get(), &stat) != 0) return NotApplied("statfs " + request.path.Display());
  FsInfo info;
  const auto block = static_cast<int64_t>(stat.f_bsize);
  info.fs_magic = static_cast<uint64_t>(stat.f_type);
  info.capacity_bytes = static_cast<int64_t>(stat.f_blocks) * block;
  info.available_bytes = static_cast<int64_t>(stat.f_bavail) * block;
  info.used_bytes = static_cast<int64_t>(stat.f_blocks - stat.f_bfree) * block;
  info.inodes = static_cast<int64_t>(stat.f_files);
  info.inodes_free = static_cast<int64_t>(stat.f_ffree);
  info.inodes_used = static_cast<int64_t>(stat.f_files - stat.f_ffree);
  return info;
}

Result<Changed> DoMakeDirectory(const MakeDirectory& request) {
  const std::string what = "make directory " + request.path.Display();
  if (request.path.root == "/" && request.path.relative.empty()) return Changed{false};
  Changed parents;
  Result<ParentAndName> parent = OpenParent(request.path);
  if (!parent.ok() && IsMissing(parent.error()) && request.parent_mode) {
    ASSIGN_OR_RETURN(parents, MakeParents(request.path, *request.parent_mode, what));
    parent = OpenParent(request.path);
  }
  if (!parent.ok()) return parents.changed ? parent.error().AsMaybeApplied() : parent.error();
  return MakeOneDirectory(parent->parent.get(), parent->name, request.mode, request.exact_mode,
                          what, parents.changed ? Outcome::kMaybeApplied : Outcome::kNotApplied);
}

Result<Changed> DoMakeFile(const MakeFile& request) {
  const std::string what = "make file " + request.path.Display();
  ASSIGN_OR_RETURN(const ParentAndName parent, OpenParent(request.path));
  const Descriptor file(::openat(parent.parent.get(), parent.name.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                 request.mode & 0777));
  if (file.valid()) {
    if (::fchmod(file.get(), request.mode & kModeBits) != 0) {
      return Error::FromErrno(errno, what, Outcome::kMaybeApplied);
    }
    return Changed{true};
  }
  if (errno != EEXIST) return NotApplied(what);
  struct statx stat = {};
  if (::statx(parent.parent.get(), parent.name.c_str(), AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC,
              STATX_TYPE, &stat) != 0) {
    return NotApplied(what);
  }
  if (FileTypeFromMode(stat.stx_mode) == FileType::kRegular) return Changed{false};
  return Error::FromErrno(EEXIST, what, Outcome::kNotApplied);
}

Result<Changed> DoMakeSymlink(const MakeSymlink& request) {
  const std::string what = "make link " + request.path.Display();
  ASSIGN_OR_RETURN(const ParentAndName parent, OpenParent(request.path));
  const auto make = [&] {
    return ::symlinkat(request.leads_to.c_str(), parent.parent.get(), parent.name.c_str());
  };
  if (make() == 0) return Changed{true};
  if (errno != EEXIST) return NotApplied(what);
  const Result<std::string> there = ReadLinkAt(parent.parent.get(), parent.name, what);
  if (!there.ok()) {
    const int failure = there.error().sys_errno();
    return Error::FromErrno(failure == EINVAL ? EEXIST : failure, what, Outcome::kNotApplied);
  }
  if (*there == request.leads_to) return Changed{false};
  if (::unlinkat(parent.parent.get(), parent.name.c_str(), 0) != 0) return NotApplied(what);
  if (make() != 0) return Error::FromErrno(errno, what, Outcome::kMaybeApplied);
  return Changed{true};
}

Result<FileContent> DoReadLink(const ReadLink& request) {
  ASSIGN_OR_RETURN(const ParentAndName parent, OpenParent(request.path));
  ASSIGN_OR_RETURN(std::string target, ReadLinkAt(parent.parent.get(), parent.name,
                                                  "read link " + request.path.Display()));
  return FileContent{std::move(target)};
}

Result<Changed> DoRemoveDirectory(const RemoveDirectory& request) {
  const std::string what = "remove directory " + request.path.Display();
  ASSIGN_OR_RETURN(const Changed changed, RemoveOne(request.path, AT_REMOVEDIR, what));
  if (!request.synced) return changed;
  // A call before this one may have removed it, and may have ended before the sync.
  const Result<ParentAndName> parent = OpenParent(request.path);
  if (!parent.ok() && parent.error().code() == Code::kNotFound) return changed;
  if (!parent.ok()) return parent.error().AsMaybeApplied();
  const Descriptor directory(OpenChild(parent->parent.get(), ".", O_RDONLY | O_DIRECTORY));
  if (directory.valid() && ::fsync(directory.get()) == 0) return changed;
  return Error::FromErrno(errno, what + ", sync the directory above", Outcome::kMaybeApplied);
}

Result<Changed> DoRemoveFile(const RemoveFile& request) {
  return RemoveOne(request.path, 0, "remove file " + request.path.Display());
}

Result<DirectoryListing> DoListDirectory(const ListDirectory& request) {
  ASSIGN_OR_RETURN(const Descriptor directory, OpenSafePath(request.path, O_RDONLY | O_DIRECTORY));
  return ListOpenDirectory(directory.get(), "list " + request.path.Display());
}

Result<DirectoryListing> ListOpenDirectory(int directory, const std::string& what) {
  if (::lseek(directory, 0, SEEK_SET) != 0) return NotApplied(what);
  std::vector<char> block(kDirectoryBlockBytes);
  DirectoryReader reader(directory, block);
  DirectoryListing listing;
  RawEntry raw = {};
  while (reader.Next(raw)) {
    FileType type = FileTypeFromDirent(raw.type);
    if (type == FileType::kMissing) {
      struct statx stat = {};
      if (::statx(directory, raw.name, AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC, STATX_TYPE,
                  &stat) != 0) {
        if (errno == ENOENT) continue;
        return NotApplied(what + ", entry " + raw.name);
      }
      type = FileTypeFromMode(stat.stx_mode);
    }
    listing.entries.push_back({raw.name, type});
  }
  if (reader.sys_errno() != 0) {
    return Error::FromErrno(reader.sys_errno(), what, Outcome::kNotApplied);
  }
  std::sort(listing.entries.begin(), listing.entries.end());
  return listing;
}

Result<FileContent> DoReadFile(const ReadFile& request) {
  const std::string what = "read " + request.path.Display();
  // O_NONBLOCK: a FIFO must not hold us before we see that it is one.
  ASSIGN_OR_RETURN(const Descriptor file,
                   OpenSafePath(request.path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  struct stat stat = {};
  if (::fstat(file.get(), &stat) != 0) return NotApplied(what);
  if (S_ISDIR(stat.st_mode)) return Error::FromErrno(EISDIR, what, Outcome::kNotApplied);
  if (!S_ISREG(stat.st_mode)) {
    return Error::NotApplied(Code::kFailedPrecondition, what + ": not a regular file");
  }
  FileContent content;
  std::array<char, kReadPiece> piece;
  while (content.bytes.size() <= request.max_bytes) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return NotApplied(what);
    if (got == 0) return content;
    content.bytes.append(piece.data(), static_cast<size_t>(got));
  }
  return Error::NotApplied(Code::kOutOfRange,
                           what + ": larger than " + std::to_string(request.max_bytes) + " bytes");
}

}  // namespace volumed
