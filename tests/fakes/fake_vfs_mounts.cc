// The mount half of FakeVfs. Source: Linux fs/namespace.c, fs/pnode.c (v6.18), of which this keeps
// what one namespace with shared and private mounts can show.
#include <sys/mount.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <tuple>

#include "fakes/fake_vfs.h"

namespace volumed {
namespace {

std::vector<std::string> OptionTexts(uint64_t attributes) {
  std::vector<std::string> texts = {(attributes & MOUNT_ATTR_RDONLY) != 0 ? "ro" : "rw"};
  if ((attributes & MOUNT_ATTR_NOSUID) != 0) texts.push_back("nosuid");
  if ((attributes & MOUNT_ATTR_NODEV) != 0) texts.push_back("nodev");
  if ((attributes & MOUNT_ATTR_NOEXEC) != 0) texts.push_back("noexec");
  const uint64_t atime = attributes & MOUNT_ATTR__ATIME;
  if (atime == MOUNT_ATTR_NOATIME) texts.push_back("noatime");
  if ((attributes & MOUNT_ATTR_NODIRATIME) != 0) texts.push_back("nodiratime");
  if (atime == MOUNT_ATTR_RELATIME) texts.push_back("relatime");
  return texts;
}

}  // namespace

uint64_t FakeVfs::NewFilesystem(const std::string& type, const std::string& source) {
  FakeFilesystem filesystem;
  filesystem.id = next_id_++;
  filesystem.type = type;
  filesystem.source = source;
  const uint64_t id = filesystem.id;
  filesystems_.emplace(id, filesystem);
  const uint64_t inode = NewInode(id, FileType::kDirectory, type == "tmpfs" ? 01777 : 0755);
  filesystems_.at(id).root = NewDentry(0, "", inode);
  return id;
}

uint64_t FakeVfs::CopyFilesystem(uint64_t id) {
  FakeFilesystem copy = filesystems_.at(id);
  copy.id = next_id_++;
  copy.on_device = true;
  copy.frozen = false;
  // Hard links stay links: each inode is copied once.
  std::map<uint64_t, uint64_t> inodes;
  std::vector<std::pair<uint64_t, uint64_t>> left = {{copy.root, 0}};  // a name, its new parent
  while (!left.empty()) {
    const auto [old, parent] = left.back();
    left.pop_back();
    const FakeDentry dentry = dentries_.at(old);
    const bool known = inodes.contains(dentry.inode);
    if (!known) {
      FakeInode inode = inodes_.at(dentry.inode);
      inode.id = next_id_++;
      inode.filesystem = copy.id;
      inode.holds = 0;
      inode.children.clear();
      inodes[dentry.inode] = inode.id;
      inodes_.emplace(inode.id, std::move(inode));
    }
    // NewDentry puts the name into its parent.
    const uint64_t made = NewDentry(parent, dentry.name, inodes.at(dentry.inode));
    if (parent == 0) copy.root = made;
    for (const auto& [name, child] : inodes_.at(dentry.inode).children) {
      left.emplace_back(child, made);
    }
  }
  const uint64_t made = copy.id;
  filesystems_.emplace(made, std::move(copy));
  return made;
}

uint64_t FakeVfs::NewMount(uint64_t filesystem, uint64_t attributes) {
  FakeMount mount;
  mount.id = next_id_++;
  mount.root = filesystems_.at(filesystem).root;
  mount.attributes = attributes;
  mounts_.emplace(mount.id, mount);
  return mount.id;
}

void FakeVfs::InitRoot(uint64_t mount, std::optional<uint32_t> mode, std::optional<uint32_t> uid,
                       std::optional<uint32_t> gid) {
  FakeInode& root = Inode(mounts_.at(mount).root);
  if (mode) root.mode = *mode & 07777;
  if (uid) root.uid = *uid;
  if (gid) root.gid = *gid;
}

std::vector<uint64_t> FakeVfs::ChildrenOf(uint64_t mount) const {
  std::vector<uint64_t> children;
  for (auto on = points_.lower_bound({mount, 0}); on != points_.end() && on->first.first == mount;
       ++on) {
    children.push_back(on->second);
  }
  return children;
}

std::vector<uint64_t> FakeVfs::PeersOf(uint64_t mount) const {
  std::vector<uint64_t> peers;
  const uint64_t group = mounts_.at(mount).peer_group;
  if (group == 0) return peers;
  for (const auto& [id, other] : mounts_) {
    if (id != mount && other.peer_group == group) peers.push_back(id);
  }
  return peers;
}

void FakeVfs::SetPoint(uint64_t mount, uint64_t parent, uint64_t mountpoint) {
  FakeMount& child = mounts_.at(mount);
  child.parent = parent;
  child.mountpoint = mountpoint;
  points_[{parent, mountpoint}] = mount;
}

void FakeVfs::ClearPoint(uint64_t mount) {
  FakeMount& child = mounts_.at(mount);
  points_.erase({child.parent, child.mountpoint});
  child.parent = 0;
  child.mountpoint = 0;
}

uint64_t FakeVfs::CopyMount(uint64_t mount, uint64_t root, bool keep_group) {
  FakeMount copy = mounts_.at(mount);
  copy.id = next_id_++;
  copy.parent = 0;
  copy.mountpoint = 0;
  copy.root = root;
  if (!keep_group) copy.peer_group = 0;
  mounts_.emplace(copy.id, copy);
  return copy.id;
}

uint64_t FakeVfs::CopyTree(uint64_t mount, uint64_t root, bool keep_group) {
  const uint64_t copy = CopyMount(mount, root, keep_group);
  std::vector<uint64_t> children = ChildrenOf(mount);
  std::sort(children.begin(), children.end());
  for (const uint64_t child : children) {
    const FakeMount& original = mounts_.at(child);
    const uint64_t mountpoint = original.mountpoint;
    // What is mounted on the very root of a mount covers it, and is not seen from within.
    if (!IsBelow(mountpoint, root)) continue;
    const uint64_t child_copy = CopyTree(child, original.root, keep_group);
    SetPoint(child_copy, copy, mountpoint);
  }
  return copy;
}

int FakeVfs::CloneMount(FakeLocation source, bool recursive, bool keep_group, uint64_t* cloned) {
  // What was removed is no place any more, although a mount may still show it.
  if (dentries_.at(source.dentry).deleted) return ENOENT;
  *cloned = recursive ? CopyTree(source.mount, source.dentry, keep_group)
                      : CopyMount(source.mount, source.dentry, keep_group);
  return 0;
}

void FakeVfs::AttachOne(uint64_t mount, uint64_t parent, uint64_t mountpoint) {
  const auto covered = points_.find({parent, mountpoint});
  if (covered == points_.end()) {
    SetPoint(mount, parent, mountpoint);
    return;
  }
  // A propagated mount slips beneath one that is there already, which goes on top of it.
  const uint64_t above = covered->second;
  SetPoint(mount, parent, mountpoint);
  const FakeLocation top = FollowMounts({mount, mounts_.at(mount).root});
  SetPoint(above, top.mount, top.dentry);
}

bool FakeVfs::IsDeleted(FakeLocation target) const {
  return dentries_.at(FollowMounts(target).dentry).deleted;
}

int FakeVfs::Attach(uint64_t mount, FakeLocation target) {
  const FakeLocation top = FollowMounts(target);
  if (IsDeleted(target)) {
    DropDetached(mount);
    return ENOENT;
  }
  const FakeMount& parent = mounts_.at(top.mount);
  std::vector<uint64_t> copies;
  std::vector<uint64_t> places;
  if (parent.peer_group != 0) {
    // The mounts of the tree that is being attached do not take part.
    std::set<uint64_t> own = {mount};
    std::vector<uint64_t> open = {mount};
    while (!open.empty()) {
      const uint64_t next = open.back();
      open.pop_back();
      for (const uint64_t child : ChildrenOf(next)) {
        own.insert(child);
        open.push_back(child);
      }
    }
    Share(mount, true);
    for (const uint64_t peer : PeersOf(top.mount)) {
      if (own.count(peer) == 0 && IsBelow(top.dentry, mounts_.at(peer).root)) {
        places.push_back(peer);
      }
    }
    for (size_t i = 0; i < places.size(); ++i) {
      copies.push_back(CopyTree(mount, mounts_.at(mount).root, true));
    }
  }
  AttachOne(mount, top.mount, top.dentry);
  for (size_t i = 0; i < places.size(); ++i) AttachOne(copies[i], places[i], top.dentry);
  return 0;
}

void FakeVfs::Forget(uint64_t mount) {
  const uint64_t root = mounts_.at(mount).root;
  const uint64_t filesystem = inodes_.at(dentries_.at(root).inode).filesystem;
  mounts_.erase(mount);
  // What was removed and only this mount has held goes, and the directories that it lay in.
  for (uint64_t at = root; dentries_.at(at).deleted && !IsHeldByMount(at);) {
    const FakeDentry& dentry = dentries_.at(at);
    const auto inode = inodes_.find(dentry.inode);
    if (inode != inodes_.end() && inode->second.links == 0 && inode->second.holds == 0) {
      FakeFilesystem& owner = filesystems_.at(filesystem);
      owner.used_pages -= static_cast<uint64_t>(AllocatedBytes(inode->second)) / 4096;
      --owner.used_inodes;
      inodes_.erase(inode);
    }
    at = dentry.parent;
    if (!dentries_.contains(at)) break;
  }
  FreeFilesystemIfUnused(filesystem);
}

bool FakeVfs::IsMounted(uint64_t id) const {
  return std::any_of(mounts_.begin(), mounts_.end(), [&](const auto& entry) {
    const auto inode = inodes_.find(dentries_.at(entry.second.root).inode);
    return inode != inodes_.end() && inode->second.filesystem == id;
  });
}

void FakeVfs::DropFilesystem(uint64_t id) {
  filesystems_.at(id).on_device = false;
  FreeFilesystemIfUnused(id);
}

void FakeVfs::FreeFilesystemIfUnused(uint64_t id) {
  if (filesystems_.at(id).on_device || IsMounted(id)) return;
  std::set<uint64_t> gone;
  for (auto inode = inodes_.begin(); inode != inodes_.end();) {
    if (inode->second.filesystem == id) {
      gone.insert(inode->first);
      inode = inodes_.erase(inode);
    } else {
      ++inode;
    }
  }
  for (auto dentry = dentries_.begin(); dentry != dentries_.end();) {
    dentry = gone.count(dentry->second.inode) != 0 ? dentries_.erase(dentry) : std::next(dentry);
  }
  filesystems_.erase(id);
}

void FakeVfs::DropDetached(uint64_t mount) {
  for (const uint64_t child : ChildrenOf(mount)) {
    ClearPoint(child);
    DropDetached(child);
  }
  Forget(mount);
}

void FakeVfs::UnmountTree(uint64_t mount) {
  ClearPoint(mount);
  DropDetached(mount);
}

int FakeVfs::Unmount(FakeLocation at) {
  if (!IsMountRoot(at)) return EINVAL;
  const FakeMount mount = mounts_.at(at.mount);
  if (mount.parent == 0) return EINVAL;
  if (!ChildrenOf(at.mount).empty()) return EBUSY;
  // What was propagated with it goes too, unless something lies in it.
  std::vector<uint64_t> going;
  for (const uint64_t peer : PeersOf(mount.parent)) {
    const auto on = points_.find({peer, mount.mountpoint});
    if (on != points_.end() && on->second != at.mount) going.push_back(on->second);
  }
  const auto topper = [this](uint64_t id) {
    const auto on = points_.find({id, mounts_.at(id).root});
    return on == points_.end() ? uint64_t{0} : on->second;
  };
  for (bool shrunk = true; shrunk;) {
    shrunk = false;
    for (auto candidate = going.begin(); candidate != going.end() && !shrunk; ++candidate) {
      for (const uint64_t child : ChildrenOf(*candidate)) {
        const bool goes = child == at.mount || child == topper(*candidate) ||
                          std::find(going.begin(), going.end(), child) != going.end();
        if (goes) continue;
        going.erase(candidate);
        shrunk = true;
        break;
      }
      if (shrunk) break;
    }
  }
  going.insert(going.begin(), at.mount);
  for (const uint64_t id : going) {
    const FakeMount leaving = mounts_.at(id);
    const uint64_t above = topper(id);
    ClearPoint(id);
    if (above != 0) {
      points_.erase({id, leaving.root});
      SetPoint(above, leaving.parent, leaving.mountpoint);
    }
    Forget(id);
  }
  return 0;
}

void FakeVfs::ChangeAttributes(uint64_t mount, uint64_t set, uint64_t clear, bool recursive) {
  FakeMount& changed = mounts_.at(mount);
  changed.attributes = (changed.attributes & ~clear) | set;
  if (!recursive) return;
  for (const uint64_t child : ChildrenOf(mount)) ChangeAttributes(child, set, clear, true);
}

void FakeVfs::Share(uint64_t mount, bool recursive) {
  FakeMount& shared = mounts_.at(mount);
  if (shared.peer_group == 0) shared.peer_group = next_id_++;
  if (!recursive) return;
  for (const uint64_t child : ChildrenOf(mount)) Share(child, true);
}

std::string FakeVfs::RootText(uint64_t dentry) const {
  const bool deleted = dentries_.at(dentry).deleted;
  std::string path;
  for (const FakeDentry* at = &dentries_.at(dentry); at->parent != 0;
       at = &dentries_.at(at->parent)) {
    path = "/" + at->name + path;
  }
  if (path.empty()) path = "/";
  return deleted ? path + "//deleted" : path;
}

uint64_t FakeVfs::FindName(uint64_t filesystem, uint64_t inode) const {
  for (const auto& [id, dentry] : dentries_) {
    if (dentry.inode != inode || dentry.deleted) continue;
    if (inodes_.at(inode).filesystem == filesystem) return id;
  }
  return 0;
}

bool FakeVfs::HasMarks(uint64_t filesystem) const {
  return std::any_of(inodes_.begin(), inodes_.end(), [filesystem](const auto& entry) {
    const FakeInode& inode = entry.second;
    return inode.filesystem == filesystem && !(inode.owner.empty() && inode.copy_of.empty());
  });
}

std::pair<uint32_t, uint32_t> FakeVfs::NumberOf(const FakeFilesystem& filesystem) {
  if (filesystem.device_major == 0) return {0, static_cast<uint32_t>(filesystem.id)};
  return {filesystem.device_major, filesystem.device_minor};
}

std::vector<MountEntry> FakeVfs::Table() const {
  std::vector<MountEntry> table;
  for (const auto& [id, mount] : mounts_) {
    if (mount.parent == 0 && id != root_mount_) continue;
    const FakeFilesystem& filesystem = filesystems_.at(Inode(mount.root).filesystem);
    MountEntry entry;
    entry.mount_id = id;
    entry.parent_id = mount.parent;
    std::tie(entry.device_major, entry.device_minor) = NumberOf(filesystem);
    entry.root = RootText(mount.root);
    entry.mount_point = PathOf({id, mount.root});
    entry.options = OptionTexts(mount.attributes);
    if (mount.peer_group != 0) {
      entry.propagation = {"shared:" + std::to_string(mount.peer_group)};
    }
    entry.fs_type = filesystem.type;
    entry.source = filesystem.source.empty() ? "none" : filesystem.source;
    entry.super_options = {filesystem.read_only ? "ro" : "rw"};
    if (filesystem.shows_size) {
      entry.super_options.push_back("size=" + std::to_string(filesystem.max_pages * 4) + "k");
    }
    if (filesystem.huge_page_bytes != 0) {
      entry.super_options.push_back("pagesize=" + std::to_string(filesystem.huge_page_bytes >> 20) +
                                    "M");
    }
    if (filesystem.noswap) entry.super_options.push_back("noswap");
    table.push_back(std::move(entry));
  }
  return table;
}

void FakeVfs::Reboot() {
  const std::vector<uint64_t> children = ChildrenOf(root_mount_);
  for (const uint64_t child : children) UnmountTree(child);
  FakeMount& root = mounts_.at(root_mount_);
  root.peer_group = 0;
  root.attributes = 0;
  for (auto& [id, filesystem] : filesystems_) filesystem.frozen = false;
}

}  // namespace volumed
