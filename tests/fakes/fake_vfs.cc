// The file half of FakeVfs.
#include "fakes/fake_vfs.h"

#include <sys/mount.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace volumed {
namespace {

// Source: Linux mm/shmem.c (BOGO_DIRENT_SIZE, SHORT_SYMLINK_LEN).
constexpr int64_t kDirentBytes = 20;
constexpr size_t kInlineLink = 128;
constexpr int64_t kPageBytes = 4096;

constexpr uint32_t kSetUid = 04000;
constexpr uint32_t kSetGid = 02000;

// Of a file that is larger than its content, for a reader of the world.
std::string HolesText(const FakeInode& inode) {
  const int64_t size = FakeVfs::SizeBytes(inode);
  if (size == static_cast<int64_t>(inode.content.size())) return "";
  return "(zeros up to " + std::to_string(size) + " bytes)";
}

int64_t Pages(const FakeInode& inode) { return FakeVfs::AllocatedBytes(inode) / kPageBytes; }

}  // namespace

FakeVfs::FakeVfs() {
  const uint64_t filesystem = NewFilesystem("ext4", "/dev/root");
  filesystems_.at(filesystem).survives_reboot = true;
  root_mount_ = NewMount(filesystem, 0);
}

int64_t FakeVfs::SizeBytes(const FakeInode& inode) {
  if (inode.type == FileType::kDirectory) {
    return kDirentBytes * (2 + static_cast<int64_t>(inode.children.size()));
  }
  return std::max(static_cast<int64_t>(inode.content.size()), inode.size_bytes);
}

std::string FakeVfs::ContentOf(const FakeInode& inode) {
  std::string content = inode.content;
  content.resize(std::max(content.size(), static_cast<size_t>(SizeBytes(inode))), '\0');
  return content;
}

std::map<std::string, std::string> FakeVfs::FilesOf(uint64_t filesystem) const {
  std::map<std::string, std::string> files;
  std::vector<std::pair<std::string, uint64_t>> left = {{"", filesystems_.at(filesystem).root}};
  while (!left.empty()) {
    const auto [path, dentry] = left.back();
    left.pop_back();
    const FakeInode& inode = Inode(dentry);
    if (inode.type == FileType::kRegular) files[path] = inode.content + HolesText(inode);
    for (const auto& [name, child] : inode.children) left.emplace_back(path + "/" + name, child);
  }
  return files;
}

int64_t FakeVfs::AllocatedBytes(const FakeInode& inode) {
  if (inode.allocated_bytes) return *inode.allocated_bytes;
  const auto size = static_cast<int64_t>(inode.content.size());
  if (inode.type == FileType::kSymlink) return inode.content.size() < kInlineLink ? 0 : kPageBytes;
  return (size + kPageBytes - 1) / kPageBytes * kPageBytes;
}

uint64_t FakeVfs::NewInode(uint64_t filesystem, FileType type, uint32_t mode) {
  FakeInode inode;
  inode.id = next_id_++;
  inode.filesystem = filesystem;
  inode.type = type;
  inode.mode = mode;
  inode.links = 1;
  const uint64_t id = inode.id;
  inodes_.emplace(id, std::move(inode));
  ++filesystems_.at(filesystem).used_inodes;
  return id;
}

uint64_t FakeVfs::NewDentry(uint64_t parent, const std::string& name, uint64_t inode) {
  const uint64_t id = next_id_++;
  dentries_.emplace(id, FakeDentry{id, parent, name, inode, false});
  if (parent != 0) Inode(parent).children.emplace(name, id);
  return id;
}

int FakeVfs::CheckMake(FakeLocation directory, const std::string& name) const {
  FakeLocation there;
  const int error = LookupCovered(directory, name, &there);
  if (error == 0) return EEXIST;
  if (error != ENOENT) return error;
  // A directory that is gone takes nothing, whether it could be written or not.
  if (dentries_.at(directory.dentry).deleted) return ENOENT;
  if (IsReadOnly(directory)) return EROFS;
  const FakeFilesystem& filesystem = FilesystemAt(directory);
  if (filesystem.max_inodes == 0 || filesystem.used_inodes + 1 < filesystem.max_inodes) return 0;
  // All marks of a small tree take the place of one inode.
  const bool full = filesystem.used_inodes >= filesystem.max_inodes || HasMarks(filesystem.id);
  return full ? ENOSPC : 0;
}

int FakeVfs::AddInode(FakeLocation directory, const std::string& name, FileType type, uint32_t mode,
                      const std::string& content) {
  if (const int error = CheckMake(directory, name)) return error;
  FakeFilesystem& filesystem = filesystems_.at(InodeAt(directory).filesystem);
  FakeInode draft;
  draft.type = type;
  draft.content = content;
  const auto pages = static_cast<uint64_t>(Pages(draft));
  if (filesystem.max_pages != 0 && filesystem.used_pages + pages > filesystem.max_pages) {
    return ENOSPC;
  }
  const uint64_t account = InodeAt(directory).account;
  const auto bytes = static_cast<int64_t>(pages) * kPageBytes;
  if (const int error = CheckLimit(filesystem.id, account, bytes, 1)) return error;
  const uint64_t id = NewInode(filesystem.id, type, mode);
  FakeInode& inode = inodes_.at(id);
  inode.account = account;
  inode.content = content;
  filesystem.used_pages += pages;
  // A setgid directory hands on its group, and to directories the bit.
  const FakeInode& parent = InodeAt(directory);
  if ((parent.mode & kSetGid) != 0) {
    inode.gid = parent.gid;
    if (type == FileType::kDirectory) inode.mode |= kSetGid;
  }
  NewDentry(directory.dentry, name, id);
  return 0;
}

int FakeVfs::MakeDirectory(FakeLocation directory, const std::string& name, uint32_t mode) {
  return AddInode(directory, name, FileType::kDirectory, mode & 01777, "");
}

int FakeVfs::MakeNode(FakeLocation directory, const std::string& name, FileType type,
                      uint32_t mode) {
  return AddInode(directory, name, type, mode & 07777, "");
}

int FakeVfs::MakeSymlink(FakeLocation directory, const std::string& name,
                         const std::string& target) {
  return AddInode(directory, name, FileType::kSymlink, 0777, target);
}

int FakeVfs::MakeHardLink(FakeLocation directory, const std::string& name, FakeLocation existing) {
  if (InodeAt(existing).filesystem != InodeAt(directory).filesystem) return EXDEV;
  if (const int error = CheckMake(directory, name)) return error;
  FakeInode& inode = Inode(existing.dentry);
  ++inode.links;
  ++filesystems_.at(inode.filesystem).used_inodes;  // tmpfs counts names
  NewDentry(directory.dentry, name, inode.id);
  return 0;
}

bool FakeVfs::IsMountpoint(uint64_t dentry) const {
  for (const auto& [point, mount] : points_) {
    if (point.second == dentry) return true;
  }
  return false;
}

// What is removed stays as long as a mount shows it, or something that lies in it.
bool FakeVfs::IsHeldByMount(uint64_t dentry) const {
  return std::any_of(mounts_.begin(), mounts_.end(),
                     [&](const auto& mount) { return IsBelow(mount.second.root, dentry); });
}

void FakeVfs::DropName(FakeLocation directory, uint64_t dentry) {
  FakeDentry& name = dentries_.at(dentry);
  Inode(directory.dentry).children.erase(name.name);
  name.deleted = true;
  FakeInode& inode = inodes_.at(name.inode);
  FakeFilesystem& filesystem = filesystems_.at(inode.filesystem);
  if (--inode.links == 0 && inode.holds == 0 && !IsHeldByMount(dentry)) {
    filesystem.used_pages -= static_cast<uint64_t>(Pages(inode));
    --filesystem.used_inodes;
    inodes_.erase(name.inode);
  } else if (inode.links != 0) {
    --filesystem.used_inodes;
  }
  // The dentry stays: the path of a mount whose root was deleted is told by it.
  for (const auto& [id, mount] : mounts_) {
    if (dentries_.at(mount.root).deleted) return;
  }
  dentries_.erase(dentry);
}

int FakeVfs::Unlink(FakeLocation directory, const std::string& name) {
  if (InodeAt(directory).type != FileType::kDirectory) return ENOTDIR;
  if (IsReadOnly(directory)) return EROFS;
  FakeLocation victim;
  if (const int error = LookupCovered(directory, name, &victim)) return error;
  if (InodeAt(victim).type == FileType::kDirectory) return EISDIR;
  if (IsMountpoint(victim.dentry)) return EBUSY;
  DropName(directory, victim.dentry);
  return 0;
}

int FakeVfs::RemoveDirectory(FakeLocation directory, const std::string& name) {
  if (InodeAt(directory).type != FileType::kDirectory) return ENOTDIR;
  if (IsReadOnly(directory)) return EROFS;
  FakeLocation victim;
  if (const int error = LookupCovered(directory, name, &victim)) return error;
  const FakeInode& inode = InodeAt(victim);
  if (inode.type != FileType::kDirectory) return ENOTDIR;
  if (IsMountpoint(victim.dentry)) return EBUSY;
  if (!inode.children.empty()) return ENOTEMPTY;
  DropName(directory, victim.dentry);
  return 0;
}

int FakeVfs::Rename(FakeLocation directory, const std::string& from, const std::string& to) {
  if (IsReadOnly(directory)) return EROFS;
  FakeLocation source;
  if (const int error = LookupCovered(directory, from, &source)) return error;
  FakeLocation old;
  const int missing = LookupCovered(directory, to, &old);
  if (missing != 0 && missing != ENOENT) return missing;
  const bool from_directory = InodeAt(source).type == FileType::kDirectory;
  if (missing == 0) {
    const FakeInode& inode = InodeAt(old);
    if (from_directory && inode.type != FileType::kDirectory) return ENOTDIR;
    if (!from_directory && inode.type == FileType::kDirectory) return EISDIR;
    if (SameInode(source, old)) return 0;
    if (IsMountpoint(source.dentry) || IsMountpoint(old.dentry)) return EBUSY;
    if (!inode.children.empty()) return ENOTEMPTY;
    DropName(directory, old.dentry);
  } else if (IsMountpoint(source.dentry)) {
    return EBUSY;
  }
  FakeInode& parent = Inode(directory.dentry);
  parent.children.erase(from);
  parent.children[to] = source.dentry;
  dentries_.at(source.dentry).name = to;
  return 0;
}

int FakeVfs::WriteFile(FakeLocation file, const std::string& content) {
  if (IsReadOnly(file)) return EROFS;
  FakeInode& inode = Inode(file.dentry);
  FakeFilesystem& filesystem = filesystems_.at(inode.filesystem);
  FakeInode next;
  next.content = content;
  const auto pages = static_cast<uint64_t>(Pages(next));
  const uint64_t others = filesystem.used_pages - static_cast<uint64_t>(Pages(inode));
  if (filesystem.max_pages != 0 && others + pages > filesystem.max_pages) return ENOSPC;
  const auto more = (static_cast<int64_t>(pages) - Pages(inode)) * kPageBytes;
  if (const int error = CheckLimit(filesystem.id, inode.account, more, 0)) return error;
  filesystem.used_pages = others + pages;
  inode.content = content;
  inode.size_bytes = 0;
  inode.allocated_bytes.reset();
  return 0;
}

int FakeVfs::SetSize(FakeLocation file, int64_t bytes, bool allocate) {
  FakeInode& inode = Inode(file.dentry);
  FakeFilesystem& filesystem = filesystems_.at(inode.filesystem);
  const int64_t before = AllocatedBytes(inode);
  const int64_t whole = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  const int64_t allocated = allocate ? std::max(before, whole) : before;
  const auto more = static_cast<uint64_t>((allocated - before) / kPageBytes);
  if (filesystem.max_pages != 0 && filesystem.used_pages + more > filesystem.max_pages) {
    return ENOSPC;
  }
  if (const int error = CheckLimit(filesystem.id, inode.account, allocated - before, 0)) {
    return error;
  }
  filesystem.used_pages += more;
  inode.size_bytes = std::max(SizeBytes(inode), bytes);
  inode.allocated_bytes = allocated;
  return 0;
}

void FakeVfs::Empty(FakeLocation file) {
  FakeInode& inode = Inode(file.dentry);
  filesystems_.at(inode.filesystem).used_pages -= static_cast<uint64_t>(Pages(inode));
  inode.content.clear();
  inode.size_bytes = 0;
  inode.allocated_bytes.reset();
  inode.runs.clear();
}

// What does not fit into a filesystem that is full is missing at the end.
void FakeVfs::CopyContent(FakeLocation from, FakeLocation to, int64_t from_offset, bool share) {
  const FakeInode source = Inode(from.dentry);
  const auto keep = static_cast<size_t>(from_offset);
  const auto pages = [](int64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes; };
  std::string content = Inode(to.dentry).content.substr(0, keep);
  // What lies before the offset without a page is a hole, which the copy leaves.
  const int64_t before = std::min(Pages(Inode(to.dentry)), pages(from_offset));
  Empty(to);
  FakeInode& inode = Inode(to.dentry);
  FakeFilesystem& filesystem = filesystems_.at(inode.filesystem);
  int64_t allocated = before;
  if (source.content.size() > keep) {
    const int64_t first = std::max(before, from_offset / kPageBytes);
    int64_t more = pages(static_cast<int64_t>(source.content.size())) - first;
    if (!share && filesystem.max_pages != 0) {
      const auto used = static_cast<int64_t>(filesystem.used_pages) + before;
      more =
          std::min(more, std::max<int64_t>(static_cast<int64_t>(filesystem.max_pages) - used, 0));
    }
    const auto end =
        std::min(source.content.size(), static_cast<size_t>((first + more) * kPageBytes));
    content.resize(keep, '\0');
    if (end > keep) content += source.content.substr(keep, end - keep);
    allocated = before + more;
  }
  inode.content = std::move(content);
  inode.size_bytes = SizeBytes(source);
  inode.allocated_bytes = share ? AllocatedBytes(source) : allocated * kPageBytes;
  if (share) inode.runs = source.runs;
  filesystem.used_pages += static_cast<uint64_t>(Pages(inode));
}

void FakeVfs::WriteBlocks(FakeLocation file, int64_t offset, int64_t bytes) {
  const int64_t begin = offset / kPageBytes * kPageBytes;
  const int64_t end = (offset + bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  FakeInode& inode = Inode(file.dentry);
  std::vector<FileExtentRun> runs;
  const auto keep = [&runs](const FileExtentRun& run, int64_t from, int64_t to) {
    if (from >= to) return;
    runs.push_back({from, run.physical + from - run.logical, to - from, 0});
  };
  for (const FileExtentRun& run : inode.runs) {
    keep(run, run.logical, std::min(run.logical + run.bytes, begin));
    keep(run, std::max(run.logical, end), run.logical + run.bytes);
  }
  runs.push_back({begin, next_place_, end - begin, 0});
  next_place_ += end - begin;
  std::sort(runs.begin(), runs.end(),
            [](const FileExtentRun& a, const FileExtentRun& b) { return a.logical < b.logical; });
  inode.runs = std::move(runs);
  inode.size_bytes = std::max(SizeBytes(inode), end);
}

void FakeVfs::LetGo(uint64_t id) {
  const auto inode = inodes_.find(id);
  if (inode == inodes_.end() || --inode->second.holds != 0 || inode->second.links != 0) return;
  FakeFilesystem& filesystem = filesystems_.at(inode->second.filesystem);
  filesystem.used_pages -= static_cast<uint64_t>(Pages(inode->second));
  --filesystem.used_inodes;
  inodes_.erase(inode);
}

const FakeInode* FakeVfs::FindInode(uint64_t id) const {
  const auto inode = inodes_.find(id);
  return inode == inodes_.end() ? nullptr : &inode->second;
}

bool FakeVfs::HasName(FakeLocation at) const {
  const auto dentry = dentries_.find(at.dentry);
  return mounts_.contains(at.mount) && dentry != dentries_.end() && !dentry->second.deleted;
}

int FakeVfs::Chmod(FakeLocation at, uint32_t mode) {
  if (IsReadOnly(at)) return EROFS;
  Inode(at.dentry).mode = mode & 07777;
  return 0;
}

int FakeVfs::Chown(FakeLocation at, std::optional<uint32_t> uid, std::optional<uint32_t> gid) {
  if (IsReadOnly(at)) return EROFS;
  FakeInode& inode = Inode(at.dentry);
  if (uid) inode.uid = *uid;
  if (gid) inode.gid = *gid;
  if (inode.type != FileType::kDirectory && inode.type != FileType::kSymlink) {
    inode.mode &= ~kSetUid;
    if ((inode.mode & 010) != 0) inode.mode &= ~kSetGid;
  }
  return 0;
}

}  // namespace volumed
