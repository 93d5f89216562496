#include "fakes/fake_effects.h"

#include <sys/mount.h>

#include <sys/sysmacros.h>

#include <cerrno>
#include <string_view>

namespace volumed {
namespace {

constexpr uint32_t kModeBits = 07777;
constexpr size_t kWriteFileLimit = 64 * 1024;

bool CleanComponents(std::string_view path) {
  size_t begin = 0;
  while (true) {
    size_t end = path.find('/', begin);
    if (end == std::string_view::npos) end = path.size();
    const std::string_view name = path.substr(begin, end - begin);
    if (name.empty() || name == "." || name == "..") return false;
    if (end == path.size()) return true;
    begin = end + 1;
  }
}

Error OpenError(const SafePath& path, int sys_errno) {
  return Error::FromErrno(sys_errno, "open " + path.Display(), Outcome::kNotApplied);
}

std::string ParentPath(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

FakeWalk WalkBelow(const SafePath& path, bool follow, bool directory) {
  FakeWalk walk;
  walk.follow_last = follow;
  walk.directory = directory;
  walk.beneath = true;
  walk.no_symlinks = path.resolve == Resolve::kNoSymlinks;
  return walk;
}

uint64_t FsMagic(const std::string& type) {
  // Source: linux/magic.h.
  if (type == "tmpfs") return 0x01021994;
  if (type == "hugetlbfs") return 0x958458F6;
  if (type == "xfs") return 0x58465342;
  if (type == "btrfs") return 0x9123683E;
  if (type == "nfs" || type == "nfs4") return 0x6969;
  if (type.compare(0, 4, "fuse") == 0) return 0x65735546;
  return 0xEF53;
}

}  // namespace

Status FakeEffects::Validate(const SafePath& path) {
  const bool clean = !path.root.empty() && path.root[0] == '/' &&
                     (path.root == "/" || CleanComponents(std::string_view(path.root).substr(1))) &&
                     (path.relative.empty() || CleanComponents(path.relative)) &&
                     (path.root + path.relative).find('\0') == std::string::npos;
  if (clean) return OkStatus();
  return Error::NotApplied(Code::kInvalidArgument, "path \"" + path.Display() + "\" is malformed");
}

// ---- look-up ------------------------------------------------------------------------------------

int FakeEffects::RootOf(const SafePath& path, OpenHow how, FakeLocation* found) const {
  FakeWalk walk;
  walk.follow_last = !how.nofollow;
  walk.directory = how.directory;
  if (path.resolve == Resolve::kNoSymlinks && !how.nofollow && path.root != "/") {
    // Links among the trusted parents are allowed, a link in the place of the root is not.
    FakeLocation parent;
    FakeWalk trusted;
    trusted.follow_last = true;
    trusted.directory = true;
    const int error = vfs_.WalkAbsolute(ParentPath(path.root), trusted, &parent);
    if (error != 0) return error;
    walk.no_symlinks = true;
    return vfs_.WalkFrom(parent, path.root.substr(path.root.rfind('/') + 1), walk, found);
  }
  return vfs_.WalkAbsolute(path.root, walk, found);
}

Result<FakeLocation> FakeEffects::Open(const SafePath& path, OpenHow how) const {
  RETURN_IF_ERROR(Validate(path));
  FakeLocation found;
  if (path.relative.empty()) {
    if (const int error = RootOf(path, how, &found)) return OpenError(path, error);
    return found;
  }
  FakeLocation root;
  if (const int error = RootOf(path, {false, true}, &root)) return OpenError(path, error);
  const int error =
      vfs_.WalkFrom(root, path.relative, WalkBelow(path, !how.nofollow, how.directory), &found);
  if (error != 0) return OpenError(path, error);
  return found;
}

Result<FakeEffects::Parent> FakeEffects::OpenParent(const SafePath& path) const {
  RETURN_IF_ERROR(Validate(path));
  const std::string& whole = path.relative.empty() ? path.root : path.relative;
  const size_t slash = whole.rfind('/');
  Parent result;
  result.name = slash == std::string::npos ? whole : whole.substr(slash + 1);
  if (result.name.empty()) {
    return Error::NotApplied(Code::kInvalidArgument, "the root directory has no parent");
  }
  int error = 0;
  if (path.relative.empty()) {
    FakeWalk trusted;
    trusted.follow_last = true;
    trusted.directory = true;
    error = vfs_.WalkAbsolute(ParentPath(whole), trusted, &result.directory);
  } else {
    error = RootOf(path, {false, true}, &result.directory);
    if (error == 0 && slash != std::string::npos) {
      error = vfs_.WalkFrom(result.directory, whole.substr(0, slash), WalkBelow(path, true, true),
                            &result.directory);
    }
  }
  if (error != 0) return OpenError(path, error);
  return result;
}

int FakeEffects::OpenChild(FakeLocation directory, const std::string& name, bool no_xdev,
                           FakeLocation* found) const {
  FakeWalk walk;
  walk.no_symlinks = true;
  walk.beneath = true;
  walk.no_xdev = no_xdev;
  return vfs_.WalkFrom(directory, name, walk, found);
}

Result<bool> FakeEffects::IsMountPoint(const SafePath& path) const {
  if (path.root == "/" && path.relative.empty()) return true;
  ASSIGN_OR_RETURN(const Parent parent, OpenParent(path));
  FakeLocation found;
  const int error = OpenChild(parent.directory, parent.name, true, &found);
  if (error == EXDEV) return true;
  if (error != 0) return OpenError(path, error);
  return false;
}

// ---- reading ------------------------------------------------------------------------------------

Result<MountListing> FakeEffects::operator()(const ListMounts& request) {
  const bool by_path = !request.below.empty() || !request.around.empty();
  if ((!request.below.empty() && !request.around.empty()) || (by_path && request.showing)) {
    return Error::NotApplied(Code::kInvalidArgument, "list mounts: two questions at once");
  }
  if (by_path) RETURN_IF_ERROR(Validate({request.below + request.around, ""}));
  const auto is_in = [](const std::string& path, const std::string& directory) {
    return directory == "/" || path == directory || path.rfind(directory + "/", 0) == 0;
  };
  MountListing listing;
  for (MountEntry& entry : vfs_.Table()) {
    bool listed = true;
    if (!request.below.empty()) listed = is_in(entry.mount_point, request.below);
    if (!request.around.empty()) listed = is_in(request.around, entry.mount_point);
    if (request.showing) {
      listed = entry.device_major == request.showing->device_major &&
               entry.device_minor == request.showing->device_minor &&
               (request.showing->root.empty() || request.showing->root == entry.root);
    }
    if (listed) listing.mounts.push_back(std::move(entry));
  }
  return listing;
}

Result<KernelFeatures> FakeEffects::operator()(const ProbeFeatures&) { return state_.features; }

Result<ProgramEnd> FakeEffects::operator()(const RunProgram& request) {
  if (request.arguments.empty() || request.arguments[0].rfind('/', 0) != 0) {
    return Error::NotApplied(Code::kInvalidArgument, "run: not an absolute path");
  }
  const auto fail = [&request](int sys_errno) {
    return Error::FromErrno(sys_errno, "start " + request.arguments[0], Outcome::kNotApplied);
  };
  FakeWalk walk;
  walk.follow_last = true;
  FakeLocation found;
  if (const int error = vfs_.WalkAbsolute(request.arguments[0], walk, &found)) return fail(error);
  const FakeInode& inode = vfs_.InodeAt(found);
  const bool noexec = (vfs_.GetMount(found.mount).attributes & MOUNT_ATTR_NOEXEC) != 0;
  if (inode.type != FileType::kRegular || noexec || (inode.mode & 0111) == 0) return fail(EACCES);
  if (!state_.programs.contains(vfs_.PathOf(found))) return fail(ENOEXEC);
  if (!state_.program_end) return Error::NotApplied(Code::kInternal, "the program has not run");
  return *state_.program_end;
}

Result<FileInfo> FakeEffects::operator()(const Stat& request) {
  FileInfo info;
  if (request.only_mount_point) {
    if (request.follow) {
      return Error::NotApplied(Code::kInvalidArgument,
                               "follow and only_mount_point exclude each other");
    }
    const Result<bool> mounted = IsMountPoint(request.path);
    if (!mounted.ok()) {
      if (IsMissing(mounted.error())) return info;
      return mounted.error();
    }
    info.is_mount_point = *mounted;
    ASSIGN_OR_RETURN(const FakeLocation there, Open(request.path, {true, false}));
    info.type = vfs_.InodeAt(there).type;
    return info;
  }
  const Result<FakeLocation> there = Open(request.path, {!request.follow, false});
  if (!there.ok()) {
    if (IsMissing(there.error())) return info;
    return there.error();
  }
  const FakeInode& inode = vfs_.InodeAt(*there);
  info.type = inode.type;
  info.mode = inode.mode;
  info.uid = inode.uid;
  info.gid = inode.gid;
  info.device = inode.filesystem;
  info.inode = inode.id;
  info.size_bytes = FakeVfs::SizeBytes(inode);
  info.allocated_bytes = FakeVfs::AllocatedBytes(inode);
  info.is_mount_point = vfs_.IsMountRoot(*there);
  if (const Result<FakeDevice*> device = FindNode(*there, ""); device.ok()) {
    info.size_bytes = (*device)->identity.size_bytes;
    info.device_number =
        makedev((*device)->identity.device_major, (*device)->identity.device_minor);
  }
  return info;
}

Result<FsInfo> FakeEffects::operator()(const StatFs& request) {
  ASSIGN_OR_RETURN(const FakeLocation there, Open(request.path));
  const FakeFilesystem& filesystem = vfs_.FilesystemAt(there);
  FsInfo info;
  info.fs_magic = FsMagic(filesystem.type);
  // Without a limit a tmpfs says nothing at all.
  if (filesystem.max_pages != 0) {
    info.capacity_bytes = static_cast<int64_t>(filesystem.max_pages) * 4096;
    info.used_bytes = static_cast<int64_t>(filesystem.used_pages) * 4096;
    info.available_bytes = info.capacity_bytes - info.used_bytes;
  }
  if (filesystem.max_inodes != 0) {
    info.inodes = static_cast<int64_t>(filesystem.max_inodes);
    // All marks of a small tree take the place of one inode.
    info.inodes_used =
        static_cast<int64_t>(filesystem.used_inodes) + (vfs_.HasMarks(filesystem.id) ? 1 : 0);
    info.inodes_free = info.inodes - info.inodes_used;
  }
  return info;
}

Result<DirectoryListing> FakeEffects::operator()(const ListDirectory& request) {
  ASSIGN_OR_RETURN(const FakeLocation directory, Open(request.path, {false, true}));
  DirectoryListing listing;
  for (const auto& [name, dentry] : vfs_.InodeAt(directory).children) {
    listing.entries.push_back({name, vfs_.InodeAt({directory.mount, dentry}).type});
  }
  return listing;
}

Result<FileContent> FakeEffects::operator()(const ReadFile& request) {
  const std::string what = "read " + request.path.Display();
  ASSIGN_OR_RETURN(const FakeLocation file, Open(request.path));
  const FakeInode& inode = vfs_.InodeAt(file);
  switch (inode.type) {
    case FileType::kRegular:
      break;
    case FileType::kDirectory:
      return Error::FromErrno(EISDIR, what, Outcome::kNotApplied);
    case FileType::kSocket:
      return Error::FromErrno(ENXIO, what, Outcome::kNotApplied);
    case FileType::kMissing:
    case FileType::kSymlink:
    case FileType::kCharDevice:
    case FileType::kBlockDevice:
    case FileType::kFifo:
      return Error::NotApplied(Code::kFailedPrecondition, what + ": not a regular file");
  }
  if (static_cast<uint64_t>(FakeVfs::SizeBytes(inode)) > request.max_bytes) {
    return Error::NotApplied(
        Code::kOutOfRange, what + ": larger than " + std::to_string(request.max_bytes) + " bytes");
  }
  return FileContent{FakeVfs::ContentOf(inode)};
}

// ---- making -------------------------------------------------------------------------------------

Result<Changed> FakeEffects::MakeOneDirectory(FakeLocation parent, const std::string& name,
                                              uint32_t mode, bool exact_mode,
                                              const std::string& what, Outcome outcome) {
  const int made = vfs_.MakeDirectory(parent, name, mode & 0777);
  if (made != 0 && made != EEXIST) return Error::FromErrno(made, what, outcome);
  FakeLocation there;
  if (const int error = OpenChild(parent, name, false, &there)) {
    return Error::FromErrno(error, what, outcome);
  }
  const FakeInode& inode = vfs_.InodeAt(there);
  if (inode.type != FileType::kDirectory) return Error::FromErrno(EEXIST, what, outcome);
  if (made == 0) outcome = Outcome::kMaybeApplied;
  if (made != 0 && !exact_mode) return Changed{false};
  if (inode.mode == (mode & kModeBits)) return Changed{made == 0};
  if (const int error = vfs_.Chmod(there, mode & kModeBits)) {
    return Error::FromErrno(error, what, outcome);
  }
  return Changed{true};
}

Result<Changed> FakeEffects::MakeParents(const SafePath& path, uint32_t mode,
                                         const std::string& what) {
  const bool in_root = path.relative.empty();
  const std::string& whole = in_root ? path.root : path.relative;
  Changed any;
  const auto failed = [&any](const Error& error) {
    return any.changed ? error.AsMaybeApplied() : error;
  };
  for (size_t slash = whole.find('/', 1); slash != std::string::npos;
       slash = whole.find('/', slash + 1)) {
    SafePath prefix = path;
    (in_root ? prefix.root : prefix.relative) = whole.substr(0, slash);
    SafePath looked_at = prefix;
    if (in_root) looked_at.resolve = Resolve::kBeneath;  // the parents of a root may be links
    const Result<FakeLocation> there = Open(looked_at, {false, true});
    if (there.ok()) continue;
    if (!IsMissing(there.error())) return failed(there.error());
    const Result<Parent> parent = OpenParent(prefix);
    if (!parent.ok()) return failed(parent.error());
    ASSIGN_OR_RETURN(const Changed made,
                     MakeOneDirectory(parent->directory, parent->name, mode, false, what,
                                      any.changed ? Outcome::kMaybeApplied : Outcome::kNotApplied));
    any.changed = any.changed || made.changed;
  }
  return any;
}

Result<Changed> FakeEffects::operator()(const MakeDirectory& request) {
  const std::string what = "make directory " + request.path.Display();
  if (request.path.root == "/" && request.path.relative.empty()) return Changed{false};
  Changed parents;
  Result<Parent> parent = OpenParent(request.path);
  if (!parent.ok() && IsMissing(parent.error()) && request.parent_mode) {
    ASSIGN_OR_RETURN(parents, MakeParents(request.path, *request.parent_mode, what));
    parent = OpenParent(request.path);
  }
  if (!parent.ok()) return parents.changed ? parent.error().AsMaybeApplied() : parent.error();
  return MakeOneDirectory(parent->directory, parent->name, request.mode, request.exact_mode, what,
                          parents.changed ? Outcome::kMaybeApplied : Outcome::kNotApplied);
}

Result<Changed> FakeEffects::operator()(const MakeFile& request) {
  const std::string what = "make file " + request.path.Display();
  ASSIGN_OR_RETURN(const Parent parent, OpenParent(request.path));
  const int error =
      vfs_.MakeNode(parent.directory, parent.name, FileType::kRegular, request.mode & kModeBits);
  if (error == 0) return Changed{true};
  if (error != EEXIST) return Error::FromErrno(error, what, Outcome::kNotApplied);
  FakeLocation there;
  if (const int missing = OpenChild(parent.directory, parent.name, false, &there)) {
    return Error::FromErrno(missing, what, Outcome::kNotApplied);
  }
  if (vfs_.InodeAt(there).type == FileType::kRegular) return Changed{false};
  return Error::FromErrno(EEXIST, what, Outcome::kNotApplied);
}

Result<Changed> FakeEffects::operator()(const MakeSymlink& request) {
  const std::string what = "make link " + request.path.Display();
  ASSIGN_OR_RETURN(const Parent parent, OpenParent(request.path));
  const int error = vfs_.MakeSymlink(parent.directory, parent.name, request.leads_to);
  if (error == 0) return Changed{true};
  if (error != EEXIST) return Error::FromErrno(error, what, Outcome::kNotApplied);
  const Result<std::string> there = LinkAt(parent, what);
  if (!there.ok()) return Error::FromErrno(EEXIST, what, Outcome::kNotApplied);
  if (*there == request.leads_to) return Changed{false};
  int failure = vfs_.Unlink(parent.directory, parent.name);
  if (failure != 0) return Error::FromErrno(failure, what, Outcome::kNotApplied);
  failure = vfs_.MakeSymlink(parent.directory, parent.name, request.leads_to);
  if (failure != 0) return Error::FromErrno(failure, what, Outcome::kMaybeApplied);
  return Changed{true};
}

Result<Changed> FakeEffects::operator()(const WriteFile& request) {
  const std::string what = "write " + request.path.Display();
  const auto fail = [&what](int error) {
    return Error::FromErrno(error, what, Outcome::kNotApplied);
  };
  const std::string& content = request.content.Reveal();
  if (content.size() > kWriteFileLimit) {
    return Error::NotApplied(Code::kOutOfRange, what + ": larger than 65536 bytes");
  }
  ASSIGN_OR_RETURN(const Parent parent, OpenParent(request.path));
  FakeLocation there;
  const int missing = vfs_.LookupCovered(parent.directory, parent.name, &there);
  if (missing != 0 && missing != ENOENT) return fail(missing);
  if (missing == 0) {
    if (vfs_.IsCovered(there)) return fail(EBUSY);
    const FakeInode& inode = vfs_.InodeAt(there);
    if (inode.type != FileType::kRegular) return fail(EEXIST);
    const bool same_size = FakeVfs::SizeBytes(inode) == static_cast<int64_t>(content.size());
    if (inode.mode == (request.mode & kModeBits) && same_size &&
        FakeVfs::ContentOf(inode) == content) {
      return Changed{false};
    }
  }
  const std::string fresh = "." + parent.name + ".new";
  (void)vfs_.Unlink(parent.directory, fresh);
  if (const int error = vfs_.MakeNode(parent.directory, fresh, FileType::kRegular, 0600)) {
    return fail(error);
  }
  FakeLocation made;
  int error = vfs_.LookupCovered(parent.directory, fresh, &made);
  if (error == 0) error = vfs_.WriteFile(made, content);
  if (error == 0) error = vfs_.Chmod(made, request.mode & kModeBits);
  if (error == 0) error = vfs_.Rename(parent.directory, fresh, parent.name);
  if (error == 0) return Changed{true};
  (void)vfs_.Unlink(parent.directory, fresh);
  return fail(error);
}

Result<Done> FakeEffects::operator()(const WriteAttribute& request) {
  const std::string what = "write to " + request.path.Display();
  ASSIGN_OR_RETURN(const FakeLocation file, Open(request.path));
  switch (vfs_.InodeAt(file).type) {
    case FileType::kRegular:
      break;
    case FileType::kDirectory:
      return Error::FromErrno(EISDIR, what, Outcome::kNotApplied);
    case FileType::kSocket:
    case FileType::kFifo:
      return Error::FromErrno(ENXIO, what, Outcome::kNotApplied);
    case FileType::kMissing:
    case FileType::kSymlink:
    case FileType::kCharDevice:
    case FileType::kBlockDevice:
      return Error::NotApplied(Code::kFailedPrecondition, what + ": not a regular file");
  }
  if (vfs_.IsReadOnly(file)) return Error::FromErrno(EROFS, what, Outcome::kNotApplied);
  if (const int error = vfs_.WriteFile(file, request.value)) {
    return Error::FromErrno(error, what, Outcome::kMaybeApplied);
  }
  return Done{};
}

Result<FileContent> FakeEffects::operator()(const ReadLink& request) {
  ASSIGN_OR_RETURN(const Parent parent, OpenParent(request.path));
  ASSIGN_OR_RETURN(std::string target, LinkAt(parent, "read link " + request.path.Display()));
  return FileContent{std::move(target)};
}

Result<std::string> FakeEffects::LinkAt(const Parent& parent, const std::string& what) const {
  FakeLocation found;
  const int error = vfs_.LookupCovered(parent.directory, parent.name, &found);
  if (error != 0) return Error::FromErrno(error, what, Outcome::kNotApplied);
  const FakeInode& inode = vfs_.InodeAt(found);
  if (inode.type != FileType::kSymlink) {
    return Error::FromErrno(EINVAL, what, Outcome::kNotApplied);
  }
  return inode.content;
}

// ---- removing -----------------------------------------------------------------------------------

Result<Changed> FakeEffects::RemoveOne(const SafePath& path, bool directory,
                                       const std::string& what) {
  const Result<Parent> parent = OpenParent(path);
  if (!parent.ok()) {
    if (IsMissing(parent.error())) return Changed{false};
    return parent.error();
  }
  const int error = directory ? vfs_.RemoveDirectory(parent->directory, parent->name)
                              : vfs_.Unlink(parent->directory, parent->name);
  if (error == 0) return Changed{true};
  if (error == ENOENT) return Changed{false};
  return Error::FromErrno(error, what, Outcome::kNotApplied);
}

Result<Changed> FakeEffects::operator()(const RemoveDirectory& request) {
  return RemoveOne(request.path, true, "remove directory " + request.path.Display());
}

Result<Changed> FakeEffects::operator()(const RemoveFile& request) {
  return RemoveOne(request.path, false, "remove file " + request.path.Display());
}

}  // namespace volumed
