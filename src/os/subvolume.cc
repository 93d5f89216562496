#include "os/subvolume.h"

#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "os/btrfs_search.h"
#include "os/directory_reader.h"
#include "os/mounts_of_tree.h"
#include "os/regular_file.h"
#include "os/safe_open.h"
#include "os/storage_identity.h"

namespace volumed {
namespace {

constexpr uint64_t kRootInode = BTRFS_FIRST_FREE_OBJECTID;  // of every subvolume
constexpr mode_t kSubvolumeMode = 0755;
constexpr int kSubvolumeOpen = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC;

Error SubvolumeRefused(const std::string& what, Code code, const std::string& why) {
  return Error::NotApplied(code, what + ": " + why);
}

Result<Descriptor> ReopenDirectory(int file, const std::string& what) {
  return DescriptorFrom(::open(ProcFdPath(file).c_str(), kSubvolumeOpen), what);
}

Result<btrfs_ioctl_vol_args_v2> NamedArguments(const std::string& name, const std::string& what) {
  btrfs_ioctl_vol_args_v2 arguments = {};
  if (name.size() >= sizeof(arguments.name)) {
    return Error::FromErrno(ENAMETOOLONG, what, Outcome::kNotApplied);
  }
  std::memcpy(arguments.name, name.data(), name.size());
  return arguments;
}

Result<btrfs_ioctl_get_subvol_info_args> InfoOf(int subvolume, const std::string& what) {
  btrfs_ioctl_get_subvol_info_args info = {};
  if (::ioctl(subvolume, BTRFS_IOC_GET_SUBVOL_INFO, &info) >= 0) return info;
  return Error::FromErrno(errno, what + ", ask what it is", Outcome::kNotApplied);
}

Result<bool> HasNoEntries(int directory, const std::string& what) {
  std::vector<char> block(kDirectoryBlockBytes);
  DirectoryReader reader(directory, block);
  RawEntry entry = {};
  if (reader.Next(entry)) return false;
  if (reader.sys_errno() == 0) return true;
  return Error::FromErrno(reader.sys_errno(), what + ", look into it", Outcome::kNotApplied);
}

class SubvolumeMaker {
 public:
  SubvolumeMaker(const MakeSubvolume& request, const KernelFeatures& features)
      : request_(request), features_(features), what_("make subvolume " + request.path.Display()) {}

  Result<FileExtent> Run() {
    if (request_.read_only && !request_.of) {
      return Refused(Code::kInvalidArgument, "only a snapshot can be read-only");
    }
    ASSIGN_OR_RETURN(place_, OpenParent(request_.path).With(what_));
    ASSIGN_OR_RETURN(parent_, ReopenDirectory(place_.parent.get(), what_));
    if (!IsOnBtrfs(parent_.get())) {
      return Refused(Code::kUnimplemented,
                     "its filesystem is no btrfs, and no other has subvolumes");
    }
    RETURN_IF_ERROR(OpenSource());
    ASSIGN_OR_RETURN(const bool made, MakeOrFind());
    ASSIGN_OR_RETURN(StorageObject object, Finish());
    FileExtent answer;
    answer.object = std::move(object);
    answer.changed = made;
    return answer;
  }

 private:
  Error Refused(Code code, const std::string& why) const {
    return SubvolumeRefused(what_, code, why);
  }

  Status OpenSource() {
    if (!request_.of) return OkStatus();
    ASSIGN_OR_RETURN(source_, OpenSafePath(*request_.of, kSubvolumeOpen).With(what_));
    if (!IsSubvolumeRoot(source_.get())) {
      return Refused(Code::kFailedPrecondition, request_.of->Display() + " is no subvolume");
    }
    if (request_.expected.inode == 0) return OkStatus();
    return CheckIsExpected(source_.get(), request_.expected, features_).With(what_);
  }

  // Whether it was made now.
  Result<bool> MakeOrFind() {
    ASSIGN_OR_RETURN(btrfs_ioctl_vol_args_v2 arguments, NamedArguments(place_.name, what_));
    arguments.flags = request_.read_only ? BTRFS_SUBVOL_RDONLY : 0;
    if (request_.of) arguments.fd = source_.get();
    const unsigned long call = request_.of ? BTRFS_IOC_SNAP_CREATE_V2 : BTRFS_IOC_SUBVOL_CREATE_V2;
    const bool made = ::ioctl(parent_.get(), call, &arguments) == 0;
    const int failure = errno;
    if (!made && failure != EEXIST) return Error::FromErrno(failure, what_, Outcome::kNotApplied);
    const int found = OpenChild(parent_.get(), place_.name.c_str(), kSubvolumeOpen);
    subvolume_ = Descriptor(found);
    if (made && !subvolume_.valid()) {
      return Error::FromErrno(errno, what_ + ", open it", Outcome::kMaybeApplied);
    }
    if (!made) RETURN_IF_ERROR(CheckIsOurs());
    return made;
  }

  Status CheckIsOurs() const {
    const Error other = Refused(Code::kAlreadyExists, "something else is there");
    if (!subvolume_.valid() || !IsSubvolumeRoot(subvolume_.get())) return other;
    ASSIGN_OR_RETURN(const auto info, InfoOf(subvolume_.get(), what_));
    const bool is_read_only = (info.flags & BTRFS_ROOT_SUBVOL_RDONLY) != 0;
    if (is_read_only != request_.read_only) return other;
    if (!request_.of) {
      ASSIGN_OR_RETURN(const bool is_empty, HasNoEntries(subvolume_.get(), what_));
      return is_empty ? OkStatus() : Status(other);
    }
    ASSIGN_OR_RETURN(const auto source, InfoOf(source_.get(), what_));
    const bool is_of =
        std::equal(std::begin(source.uuid), std::end(source.uuid), std::begin(info.parent_uuid));
    return is_of ? OkStatus() : Status(other);
  }

  // The ioctl commits; so does this what an earlier call, which was cut off, has made. Its mode is
  // by the umask of whoever made it.
  Result<StorageObject> Finish() const {
    if (!request_.of && ::fchmod(subvolume_.get(), kSubvolumeMode) != 0) {
      return Error::FromErrno(errno, what_ + ", set its mode", Outcome::kMaybeApplied);
    }
    if (::fsync(subvolume_.get()) != 0 && errno != EROFS) {
      return Error::FromErrno(errno, what_ + ", sync", Outcome::kMaybeApplied);
    }
    if (::fsync(parent_.get()) != 0) {
      return Error::FromErrno(errno, what_ + ", sync its directory", Outcome::kMaybeApplied);
    }
    Result<StorageObject> object = ObjectOfFile(subvolume_.get(), features_, what_);
    if (!object.ok()) return object.error().AsMaybeApplied();
    return object;
  }

  const MakeSubvolume& request_;
  const KernelFeatures& features_;
  const std::string what_;
  ParentAndName place_;
  Descriptor parent_;  // for reading, as the ioctls ask for that
  Descriptor source_;  // of a snapshot
  Descriptor subvolume_;
};

class SubvolumeRemover {
 public:
  SubvolumeRemover(const RemoveSubvolume& request, const KernelFeatures& features)
      : request_(request),
        features_(features),
        what_("remove subvolume " + request.path.Display()) {}

  Result<Changed> Run() {
    Result<ParentAndName> place = OpenParent(request_.path).With(what_);
    if (!place.ok() && place.error().sys_errno() == ENOENT) return Changed{false};
    if (!place.ok()) return place.error();
    place_ = *std::move(place);
    const Descriptor top(OpenChild(place_.parent.get(), place_.name.c_str(), kSubvolumeOpen));
    if (!top.valid() && errno == ENOENT) return Changed{false};
    if (!top.valid()) return Error::FromErrno(errno, what_, Outcome::kNotApplied);
    RETURN_IF_ERROR(Check(top.get()));
    ASSIGN_OR_RETURN(const Descriptor parent, ReopenDirectory(place_.parent.get(), what_));
    ASSIGN_OR_RETURN(btrfs_ioctl_vol_args_v2 arguments, NamedArguments(place_.name, what_));
    const auto destroy = [&] {
      return ::ioctl(parent.get(), BTRFS_IOC_SNAP_DESTROY_V2, &arguments) == 0;
    };
    if (destroy()) return Changed{true};
    if (errno != ENOTEMPTY) return Failed(errno, "");
    RETURN_IF_ERROR(RemoveInside(top.get()));
    if (!destroy()) return Failed(errno, "");
    return Changed{true};
  }

 private:
  Error Refused(const std::string& why) const {
    return SubvolumeRefused(what_, Code::kFailedPrecondition, why);
  }
  Error Failed(int error, const std::string& step) const {
    return Error::FromErrno(error, what_ + step,
                            removed_ ? Outcome::kMaybeApplied : Outcome::kNotApplied);
  }

  Status Check(int top) const {
    if (!IsSubvolumeRoot(top)) return Refused("it is no root of a subvolume");
    if (request_.expected.inode != 0) {
      RETURN_IF_ERROR(CheckIsExpected(top, request_.expected, features_).With(what_));
    }
    return CheckNothingIsMounted(top, features_, what_);
  }

  // Those inside of it, the deepest first, however deep that is. Whoever may write in it has made
  // them, and each is opened by its number: there may be more of them than descriptors, and deeper
  // than a path leads.
  Status RemoveInside(int top) {
    ASSIGN_OR_RETURN(const uint64_t top_id, SubvolumeIdOf(top, what_));
    std::vector<uint64_t> path = {top_id};  // to the one that is looked at
    while (true) {
      ASSIGN_OR_RETURN(const Descriptor at, OpenInside(top, path.back(), kRootInode));
      ASSIGN_OR_RETURN(const std::optional<uint64_t> inside, FirstInside(at.get()));
      if (inside) {
        path.push_back(*inside);
        continue;
      }
      if (path.size() == 1) return OkStatus();
      path.pop_back();
      RETURN_IF_ERROR(RemoveOne(top, at.get(), path.back()));
    }
  }

  // Removes one that has none inside of it, by its name where it lies: the kernel finds one by its
  // number alone only as deep as a path leads. What somebody has made read-only is made writable,
  // as nothing can be removed from it otherwise.
  Status RemoveOne(int top, int subvolume, uint64_t parent) {
    const std::string step = ", remove a subvolume inside of it";
    ASSIGN_OR_RETURN(const auto info, InfoOf(subvolume, what_ + step));
    // Moved meanwhile.
    if (info.parent_id != parent) return Failed(ESTALE, step);
    ASSIGN_OR_RETURN(const Descriptor root, OpenInside(top, parent, kRootInode));
    if (const int failure = MakeSubvolumeWritable(root.get())) {
      return Failed(failure, ", make one inside of it writable");
    }
    ASSIGN_OR_RETURN(const Descriptor directory, OpenInside(top, parent, info.dirid));
    ASSIGN_OR_RETURN(
        btrfs_ioctl_vol_args_v2 arguments,
        NamedArguments(std::string(info.name, ::strnlen(info.name, sizeof(info.name))), what_));
    if (::ioctl(directory.get(), BTRFS_IOC_SNAP_DESTROY_V2, &arguments) != 0) {
      return Failed(errno, step);
    }
    removed_ = true;
    return OkStatus();
  }

  Result<std::optional<uint64_t>> FirstInside(int subvolume) const {
    btrfs_ioctl_get_subvol_rootref_args found = {};
    // More than one answer holds is no error here.
    if (::ioctl(subvolume, BTRFS_IOC_GET_SUBVOL_ROOTREF, &found) != 0 && errno != EOVERFLOW) {
      return Failed(errno, ", look for subvolumes inside of it");
    }
    if (found.num_items == 0) return std::optional<uint64_t>();
    return std::optional<uint64_t>(found.rootref[0].treeid);
  }

  // Of an inode in a subvolume.
  Result<uint32_t> GenerationOf(int top, uint64_t id, uint64_t inode) const {
    BtrfsSearch search(id, BTRFS_INODE_ITEM_KEY);
    search.key().min_objectid = search.key().max_objectid = inode;
    btrfs_inode_item item = {};
    if (!search.Run(top)) return Failed(errno, ", look for a subvolume inside of it");
    if (search.found() && search.Read(item)) return static_cast<uint32_t>(item.generation);
    return Failed(ESTALE, ", look for a subvolume inside of it");
  }

  // A directory in a subvolume, by its handle. Older kernels take none without its generation.
  // Source: Linux fs/btrfs/export.c@v6.1 (btrfs_fid, btrfs_fh_to_dentry), include/linux/exportfs.h
  // (FILEID_BTRFS_WITHOUT_PARENT).
  Result<Descriptor> OpenInside(int top, uint64_t id, uint64_t inode) const {
    ASSIGN_OR_RETURN(const uint32_t generation, GenerationOf(top, id, inode));
    constexpr size_t kFidBytes = 20;
    constexpr char kDigits[] = "0123456789abcdef";
    std::array<unsigned char, kFidBytes> fid = {};
    std::memcpy(fid.data(), &inode, sizeof(inode));
    std::memcpy(fid.data() + sizeof(inode), &id, sizeof(id));
    std::memcpy(fid.data() + sizeof(inode) + sizeof(id), &generation, sizeof(generation));
    std::string handle = "77:";
    for (const unsigned char byte : fid) {
      handle += kDigits[byte >> 4];
      handle += kDigits[byte & 15];
    }
    Result<Descriptor> found = OpenByHandle(top, handle);
    if (!found.ok()) return Failed(found.error().sys_errno(), ", open a subvolume inside of it");
    return ReopenDirectory(found->get(), what_);
  }

  const RemoveSubvolume& request_;
  const KernelFeatures& features_;
  const std::string what_;
  ParentAndName place_;
  bool removed_ = false;  // one inside of it
};

}  // namespace

bool IsOnBtrfs(int file) {
  struct statfs info = {};
  return ::fstatfs(file, &info) == 0 && info.f_type == BTRFS_SUPER_MAGIC;
}

bool IsSubvolumeRoot(int file) {
  struct stat info = {};
  return IsOnBtrfs(file) && ::fstat(file, &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_ino == kRootInode;
}

int MakeSubvolumeWritable(int subvolume) {
  uint64_t flags = 0;
  if (::ioctl(subvolume, BTRFS_IOC_SUBVOL_GETFLAGS, &flags) != 0) return errno;
  if ((flags & BTRFS_SUBVOL_RDONLY) == 0) return 0;
  flags &= ~static_cast<uint64_t>(BTRFS_SUBVOL_RDONLY);
  return ::ioctl(subvolume, BTRFS_IOC_SUBVOL_SETFLAGS, &flags) == 0 ? 0 : errno;
}

Result<uint64_t> SubvolumeIdOf(int directory, const std::string& what) {
  btrfs_ioctl_ino_lookup_args lookup = {};
  lookup.objectid = kRootInode;
  if (::ioctl(directory, BTRFS_IOC_INO_LOOKUP, &lookup) == 0) return lookup.treeid;
  return Error::FromErrno(errno, what + ", ask for its subvolume", Outcome::kNotApplied);
}

Result<FileExtent> DoMakeSubvolume(const MakeSubvolume& request, const KernelFeatures& features) {
  return SubvolumeMaker(request, features).Run();
}

Result<Changed> DoRemoveSubvolume(const RemoveSubvolume& request, const KernelFeatures& features) {
  return SubvolumeRemover(request, features).Run();
}

}  // namespace volumed
