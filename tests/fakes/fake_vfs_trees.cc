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

int FakeVfs::RemoveSubvolume(FakeLocation directory, const std::string& name,
                             std::string* mounted) {
  FakeLocation there;
  if (const int error = LookupCovered(directory, name, &there)) return error;
  for (const auto& [id, mount] : mounts_) {
    const bool is_attached = mount.parent != 0;
    const bool shows = IsBelow(mount.root, there.dentry);
    const bool lies_in = mount.mountpoint != 0 && IsBelow(mount.mountpoint, there.dentry);
    if (!is_attached || (!shows && !lies_in)) continue;
    *mounted = PathOf({id, mount.root});
    return EBUSY;
  }
  if (IsReadOnly(directory)) return EROFS;
  const uint64_t account = InodeAt(there).account;
  filesystems_.at(InodeAt(there).filesystem).limits.erase(account);
  DropTree(directory, there.dentry);
  return 0;
}

}  // namespace volumed
