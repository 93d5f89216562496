// The part of FakeVfs that is about trees with an account: subvolumes of a btrfs, and directories
// of a project.
#include <sys/mount.h>

#include <algorithm>
#include <cerrno>

#include "fakes/fake_vfs.h"

namespace volumed {

uint64_t FakeVfs::SubvolumeOf(uint64_t dentry) const {
  while (dentries_.at(dentry).parent != 0 && !Inode(dentry).is_subvolume) {
    dentry = dentries_.at(dentry).parent;
  }
  return dentry;
}

bool FakeVfs::IsReadOnly(FakeLocation at) const {
  if ((mounts_.at(at.mount).attributes & MOUNT_ATTR_RDONLY) != 0) return true;
  return FilesystemAt(at).read_only || Inode(SubvolumeOf(at.dentry)).subvolume_read_only;
}

FakeTreeLimit FakeVfs::UsageOf(uint64_t filesystem, uint64_t account) const {
  FakeTreeLimit used;
  for (const auto& [id, inode] : inodes_) {
    if (inode.filesystem != filesystem || inode.account != account) continue;
    used.bytes += AllocatedBytes(inode);
    ++used.inodes;
  }
  return used;
}

int FakeVfs::CheckLimit(uint64_t filesystem, uint64_t account, int64_t bytes,
                        int64_t inodes) const {
  const FakeFilesystem& of = filesystems_.at(filesystem);
  const auto limit = of.limits.find(account);
  if (!of.counts_trees || limit == of.limits.end()) return 0;
  const FakeTreeLimit used = UsageOf(filesystem, account);
  const auto is_beyond = [](int64_t most, int64_t has, int64_t more) {
    return most != 0 && more > 0 && has + more > most;
  };
  const bool beyond = is_beyond(limit->second.bytes, used.bytes, bytes) ||
                      is_beyond(limit->second.inodes, used.inodes, inodes);
  if (!beyond) return 0;
  return of.type == "xfs" ? ENOSPC : EDQUOT;
}

int FakeVfs::MakeSubvolume(FakeLocation directory, const std::string& name) {
  if (const int error = MakeDirectory(directory, name, 0755)) return error;
  FakeLocation made;
  if (const int error = LookupCovered(directory, name, &made)) return error;
  FakeInode& inode = Inode(made.dentry);
  inode.is_subvolume = true;
  inode.account = inode.id;
  return 0;
}

// Another subvolume is no part of it: its place is an empty directory.
void FakeVfs::CopyChildren(uint64_t from, uint64_t to, uint64_t account,
                           std::map<uint64_t, uint64_t>* copies) {
  const std::map<std::string, uint64_t> children = Inode(from).children;
  for (const auto& [name, child] : children) {
    const FakeInode source = Inode(child);
    const auto known = copies->find(source.id);
    uint64_t id = known == copies->end() ? 0 : known->second;
    if (id == 0) {
      id = NewInode(source.filesystem, source.type, source.mode);
      FakeInode copy = source;
      copy.id = id;
      copy.account = account;
      copy.links = 0;
      copy.holds = 0;
      copy.children.clear();
      copy.is_subvolume = false;
      inodes_.at(id) = std::move(copy);
      (*copies)[source.id] = id;
    }
    ++inodes_.at(id).links;
    const uint64_t dentry = NewDentry(to, name, id);
    if (!source.is_subvolume) CopyChildren(child, dentry, account, copies);
  }
}

int FakeVfs::Snapshot(FakeLocation of, FakeLocation directory, const std::string& name,
                      bool read_only) {
  if (const int error = MakeSubvolume(directory, name)) return error;
  FakeLocation made;
  if (const int error = LookupCovered(directory, name, &made)) return error;
  const FakeInode source = Inode(of.dentry);
  FakeInode& inode = Inode(made.dentry);
  inode.mode = source.mode;
  inode.uid = source.uid;
  inode.gid = source.gid;
  inode.snapshot_of = source.account;
  inode.subvolume_read_only = read_only;
  FakeFilesystem& filesystem = filesystems_.at(inode.filesystem);
  const auto limit = filesystem.limits.find(source.account);
  if (limit != filesystem.limits.end()) filesystem.limits[inode.account] = limit->second;
  std::map<uint64_t, uint64_t> copies;
  CopyChildren(of.dentry, made.dentry, inode.account, &copies);
  return 0;
}

void FakeVfs::DropTree(FakeLocation directory, uint64_t dentry) {
  const std::map<std::string, uint64_t> children = Inode(dentry).children;
  for (const auto& [name, child] : children) DropTree({directory.mount, dentry}, child);
  DropName(directory, dentry);
}

std::string FakeVfs::FindMountOf(FakeLocation directory) const {
  for (const auto& [id, mount] : mounts_) {
    const bool is_attached = mount.parent != 0;
    const bool shows = IsBelow(mount.root, directory.dentry);
    const bool lies_in = mount.mountpoint != 0 && IsBelow(mount.mountpoint, directory.dentry);
    if (is_attached && (shows || lies_in)) return PathOf({id, mount.root});
  }
  return "";
}

int FakeVfs::RemoveSubvolume(FakeLocation directory, const std::string& name,
                             std::string* mounted) {
  FakeLocation there;
  if (const int error = LookupCovered(directory, name, &there)) return error;
  *mounted = FindMountOf(there);
  if (!mounted->empty()) return EBUSY;
  if (IsReadOnly(directory)) return EROFS;
  const uint64_t account = InodeAt(there).account;
  filesystems_.at(InodeAt(there).filesystem).limits.erase(account);
  DropTree(directory, there.dentry);
  return 0;
}

// Both names are of one mount, or it is EXDEV, whatever filesystem that shows. A directory is to be
// of the project that its new place hands on.
int FakeVfs::MoveDirectory(FakeLocation from, const std::string& name, FakeLocation to,
                           const std::string& new_name) {
  if (from.mount != to.mount) return EXDEV;
  if (IsReadOnly(from) || IsReadOnly(to)) return EROFS;
  FakeLocation source;
  FakeLocation there;
  if (const int error = LookupCovered(from, name, &source)) return error;
  if (LookupCovered(to, new_name, &there) == 0) return EEXIST;
  if (IsBelow(to.dentry, source.dentry)) return EINVAL;
  if (IsMountpoint(source.dentry)) return EBUSY;
  const FakeFilesystem& filesystem = FilesystemAt(to);
  const uint64_t account = Inode(to.dentry).account;
  const bool is_btrfs = filesystem.type == "btrfs";
  const bool is_apart = is_btrfs ? SubvolumeOf(from.dentry) != SubvolumeOf(to.dentry)
                                 : account != 0 && account != Inode(source.dentry).account;
  if (is_apart) return EXDEV;
  Inode(from.dentry).children.erase(name);
  Inode(to.dentry).children[new_name] = source.dentry;
  dentries_.at(source.dentry).name = new_name;
  dentries_.at(source.dentry).parent = to.dentry;
  return 0;
}

// ---- copies, as CopyTree makes them -------------------------------------------------------------

void FakeVfs::CopyOwnerAndMode(const FakeInode& from, FakeLocation to) {
  FakeInode& inode = Inode(to.dentry);
  inode.uid = from.uid;
  inode.gid = from.gid;
  if (from.type != FileType::kSymlink) inode.mode = from.mode;
}

bool FakeVfs::SharesBlocks(FakeLocation at) const {
  const std::string& type = FilesystemAt(at).type;
  return type == "xfs" || type == "btrfs";
}

int FakeVfs::CopyFileContent(FakeLocation from, FakeLocation to) {
  const FakeFilesystem& filesystem = FilesystemAt(to);
  const FakeInode source = Inode(from.dentry);
  const int64_t bytes = AllocatedBytes(source);
  if (const int error = CheckLimit(filesystem.id, Inode(to.dentry).account, bytes, 0)) return error;
  CopyContent(from, to, 0, SharesBlocks(to));
  return Inode(to.dentry).content.size() < source.content.size() ? ENOSPC : 0;
}

int FakeVfs::CopyEntry(FakeLocation source, FakeLocation to, std::map<uint64_t, uint64_t>* copies) {
  const FakeInode inode = Inode(source.dentry);
  const std::string name = NameOf(source);
  const bool is_directory = inode.type == FileType::kDirectory;
  if (inode.is_subvolume && !IsCovered(source)) return EXDEV;
  if (IsCovered(source)) {
    return is_directory ? MakeDirectory(to, name, 0755) : 0;
  }
  const auto known = copies->find(inode.id);
  if (known != copies->end()) return MakeHardLink(to, name, {to.mount, known->second});
  int error = 0;
  if (is_directory) {
    error = MakeDirectory(to, name, 0700);
  } else if (inode.type == FileType::kSymlink) {
    error = MakeSymlink(to, name, inode.content);
  } else {
    error = MakeNode(to, name, inode.type, 0600);
  }
  FakeLocation made;
  if (error == 0) error = LookupCovered(to, name, &made);
  if (error == 0 && is_directory) error = CopyInto(source, made, false, copies);
  if (error == 0 && inode.type == FileType::kRegular) error = CopyFileContent(source, made);
  if (error != 0) return error;
  CopyOwnerAndMode(inode, made);
  if (!is_directory && inode.links > 1) (*copies)[inode.id] = made.dentry;
  return 0;
}

int FakeVfs::CopyInto(FakeLocation from, FakeLocation to, bool half,
                      std::map<uint64_t, uint64_t>* copies) {
  const std::map<std::string, uint64_t> children = Inode(from.dentry).children;
  for (const auto& [name, child] : children) {
    if (const int error = CopyEntry({from.mount, child}, to, copies)) return error;
    if (half) return 0;
  }
  return 0;
}

int FakeVfs::CopyTree(FakeLocation from, FakeLocation to, bool half) {
  if (IsReadOnly(to)) return EROFS;
  std::map<uint64_t, uint64_t> copies;
  if (const int error = CopyInto(from, to, half, &copies)) return error;
  if (!half) CopyOwnerAndMode(Inode(from.dentry), to);
  return 0;
}

}  // namespace volumed
