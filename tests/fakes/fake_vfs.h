// FakeVfs: the part of Linux' virtual filesystem that the fake kernel needs, as a value: inodes,
// names (dentries), filesystems and one mount namespace with shared propagation. Every filesystem
// counts sizes as tmpfs does. The functions are system calls in miniature and return an errno or 0;
// the caller is root and no lock is taken.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "os/kernel_requests.h"
#include "os/mount_entry.h"

namespace volumed {

// What a path is after look-up: a name, seen through a mount.
struct FakeLocation {
  uint64_t mount = 0;
  uint64_t dentry = 0;
  friend bool operator==(const FakeLocation&, const FakeLocation&) = default;
};

struct FakeInode {
  uint64_t id = 0;
  uint64_t filesystem = 0;
  FileType type = FileType::kRegular;
  uint32_t mode = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t links = 0;                        // names of it; a directory has one
  std::string content;                       // of a file; of a link, its target
  std::map<std::string, uint64_t> children;  // of a directory: name to dentry
  std::string owner;                         // of a directory: "trusted.volumed.owner"
  // Of a file that is larger than its content: the rest reads as zero.
  int64_t size_bytes = 0;
  // What it was given, where that does not follow from the content: it has holes, or blocks ahead.
  std::optional<int64_t> allocated_bytes = std::nullopt;
  uint32_t holds = 0;     // loop devices on it, which keep it when its last name goes
  std::string copy_of{};  // of a file: "trusted.volumed.copy_of"
  // Of a file, what was written to it block by block (FakeVfs::WriteBlocks), in its order.
  std::vector<FileExtentRun> runs{};
  // By what its quota counts it: the project, or the subvolume of a btrfs that it lies in; 0: none,
  // or the one that a btrfs begins with.
  uint64_t account = 0;
  // Of the root of a subvolume.
  bool is_subvolume = false;
  bool subvolume_read_only = false;
  uint64_t snapshot_of = 0;  // that one's account
};

struct FakeDentry {
  uint64_t id = 0;
  uint64_t parent = 0;  // 0: the root of its filesystem
  std::string name;
  uint64_t inode = 0;
  bool deleted = false;
};

struct FakeTreeLimit {
  int64_t bytes = 0;   // 0: none
  int64_t inodes = 0;  // likewise
};

struct FakeFilesystem {
  uint64_t id = 0;
  std::string type;
  std::string source;
  uint64_t root = 0;  // dentry
  bool read_only = false;
  bool noswap = false;
  uint64_t max_pages = 262144;   // 0: no limit
  uint64_t max_inodes = 262144;  // 0: no limit
  bool shows_size = false;       // somebody set a limit
  uint64_t huge_page_bytes = 0;  // of a hugetlbfs
  uint64_t used_pages = 0;
  uint64_t used_inodes = 0;
  bool survives_reboot = false;
  bool on_device = false;     // stays while it is not mounted
  uint32_t device_major = 0;  // of that device; 0: it has a number of its own
  uint32_t device_minor = 0;
  bool frozen = false;
  bool counts_trees = false;  // a btrfs with its accounts on, or mounted with prjquota
  std::map<uint64_t, FakeTreeLimit> limits;  // by account
};

struct FakeMount {
  uint64_t id = 0;          // rises with time
  uint64_t parent = 0;      // 0: the root of the namespace, or not attached
  uint64_t mountpoint = 0;  // dentry in the parent
  uint64_t root = 0;        // dentry
  uint64_t attributes = 0;  // MOUNT_ATTR_*
  uint64_t peer_group = 0;  // 0: private
};

struct FakeWalk {
  bool follow_last = false;
  bool directory = false;    // ENOTDIR for anything else
  bool no_symlinks = false;  // ELOOP
  bool beneath = false;      // EXDEV for a way above the start
  bool no_xdev = false;      // EXDEV for a mount point
};

class FakeVfs {
 public:
  FakeVfs();

  // ---- look-up
  FakeLocation namespace_root() const;
  // From the root of the namespace, as open(2) does.
  int WalkAbsolute(const std::string& path, const FakeWalk& how, FakeLocation* found) const;
  int WalkFrom(FakeLocation start, const std::string& path, const FakeWalk& how,
               FakeLocation* found) const;
  // The name itself, below whatever is mounted on it. ENOENT, ENOTDIR, ENAMETOOLONG.
  int LookupCovered(FakeLocation directory, const std::string& name, FakeLocation* found) const;
  FakeLocation FollowMounts(FakeLocation at) const;
  const FakeInode& InodeAt(FakeLocation at) const;
  const FakeFilesystem& FilesystemAt(FakeLocation at) const;
  // Whether something is mounted on the name, seen through this mount.
  bool IsCovered(FakeLocation at) const;
  // Whether this is the root of a mount: what statx calls a mount root.
  bool IsMountRoot(FakeLocation at) const;
  bool SameInode(FakeLocation a, FakeLocation b) const;
  std::string NameOf(FakeLocation at) const;
  // The path in the namespace, as d_path gives it.
  std::string PathOf(FakeLocation at) const;
  // The path in its filesystem, as mountinfo shows the root of a mount of it.
  std::string PlaceOf(FakeLocation at) const { return RootText(at.dentry); }
  // The filesystem's number, as mountinfo shows it.
  static std::pair<uint32_t, uint32_t> NumberOf(const FakeFilesystem& filesystem);
  // A name of the inode in that filesystem, or 0.
  uint64_t FindName(uint64_t filesystem, uint64_t inode) const;
  // Whether a directory of it has an owner's mark.
  bool HasMarks(uint64_t filesystem) const;
  void SetOwner(FakeLocation at, const std::string& owner) { Inode(at.dentry).owner = owner; }

  // ---- files. `directory` must be one (else ENOTDIR).
  int MakeDirectory(FakeLocation directory, const std::string& name, uint32_t mode);
  // Regular files, sockets, devices.
  int MakeNode(FakeLocation directory, const std::string& name, FileType type, uint32_t mode);
  int MakeSymlink(FakeLocation directory, const std::string& name, const std::string& target);
  int MakeHardLink(FakeLocation directory, const std::string& name, FakeLocation existing);
  int Unlink(FakeLocation directory, const std::string& name);
  int RemoveDirectory(FakeLocation directory, const std::string& name);
  // Within one directory; replaces what has the new name, unless that is a directory.
  int Rename(FakeLocation directory, const std::string& from, const std::string& to);
  int WriteFile(FakeLocation file, const std::string& content);
  // Never makes it smaller. ENOSPC only if `allocate`.
  int SetSize(FakeLocation file, int64_t bytes, bool allocate);
  // Gives a file the content of another one behind `from_offset`, its size, and with `share` the
  // places of its blocks, too.
  void CopyContent(FakeLocation from, FakeLocation to, int64_t from_offset, bool share);
  // What is written to these bytes of a file lies in a new place. What it is, is not kept.
  void WriteBlocks(FakeLocation file, int64_t offset, int64_t bytes);
  void SetCopyOf(FakeLocation file, const std::string& mark) { Inode(file.dentry).copy_of = mark; }
  // A file of no bytes.
  void Empty(FakeLocation file);
  // With the zeros that are not kept. REQUIRES: it is small.
  static std::string ContentOf(const FakeInode& inode);
  // The file stays when its last name goes, until it is let go of.
  void Hold(FakeLocation file) { ++Inode(file.dentry).holds; }
  void LetGo(uint64_t inode);
  // Null if there is none any more.
  const FakeInode* FindInode(uint64_t inode) const;
  // Whether this name is still there, seen through this mount.
  bool HasName(FakeLocation at) const;
  int Chmod(FakeLocation at, uint32_t mode);
  // Clears setuid and setgid of files, as the kernel does.
  int Chown(FakeLocation at, std::optional<uint32_t> uid, std::optional<uint32_t> gid);
  bool IsReadOnly(FakeLocation at) const;
  // Every regular file of the filesystem, mounted or not: path from its root -> content.
  std::map<std::string, std::string> FilesOf(uint64_t filesystem) const;
  static int64_t SizeBytes(const FakeInode& inode);
  static int64_t AllocatedBytes(const FakeInode& inode);

  // ---- trees with an account; in fake_vfs_trees.cc. REQUIRES of the first two: a btrfs.
  int MakeSubvolume(FakeLocation directory, const std::string& name);
  int Snapshot(FakeLocation of, FakeLocation directory, const std::string& name, bool read_only);
  // With those inside of it. EBUSY while a mount shows a part of it or lies in it, naming one.
  int RemoveSubvolume(FakeLocation directory, const std::string& name, std::string* mounted);
  FakeTreeLimit UsageOf(uint64_t filesystem, uint64_t account) const;
  // Where a mount shows a part of it or lies in it; empty: nowhere.
  std::string FindMountOf(FakeLocation directory) const;
  // renameat2(2) of a directory, which replaces nothing.
  int MoveDirectory(FakeLocation from, const std::string& name, FakeLocation to,
                    const std::string& new_name);
  // What is in the one into the other, which is empty; with `half` only the first of it.
  int CopyTree(FakeLocation from, FakeLocation to, bool half);
  // Whether files that are copied there share their blocks.
  bool SharesBlocks(FakeLocation at) const;
  void SetAccount(FakeLocation at, uint64_t account) { Inode(at.dentry).account = account; }
  // Nothing for what is no root of a subvolume.
  void MakeSubvolumeWritable(FakeLocation at) { Inode(at.dentry).subvolume_read_only = false; }

  // ---- mounts. The mounts that are made are detached until Attach().
  uint64_t NewFilesystem(const std::string& type, const std::string& source);
  uint64_t NewMount(uint64_t filesystem, uint64_t attributes);
  // The attributes of the root directory that mount options ask for; read-only or not.
  void InitRoot(uint64_t mount, std::optional<uint32_t> mode, std::optional<uint32_t> uid,
                std::optional<uint32_t> gid);
  // EINVAL for what is not in the namespace.
  int CloneMount(FakeLocation source, bool recursive, bool keep_group, uint64_t* cloned);
  // Whether the name of what lies on top at `target` is deleted: nothing is mounted over it.
  bool IsDeleted(FakeLocation target) const;
  // On top of whatever is mounted at `target`. ENOENT for a deleted name. The caller has compared
  // the kinds. The mount is dropped on failure.
  int Attach(uint64_t mount, FakeLocation target);
  void DropDetached(uint64_t mount);
  void MakePrivate(uint64_t mount) { mounts_.at(mount).peer_group = 0; }
  // `at` must be a mount root (EINVAL). EBUSY while another mount lies in it.
  int Unmount(FakeLocation at);
  // Takes it away with all that is mounted in it.
  void UnmountTree(uint64_t mount);
  void ChangeAttributes(uint64_t mount, uint64_t set, uint64_t clear, bool recursive);
  // Each mount of the tree that is private becomes a peer group of its own.
  void Share(uint64_t mount, bool recursive);
  const FakeMount& GetMount(uint64_t mount) const { return mounts_.at(mount); }
  // Another one, which is not mounted, with the same files.
  uint64_t CopyFilesystem(uint64_t id);
  FakeFilesystem& MutableFilesystem(uint64_t id) { return filesystems_.at(id); }
  // In the order of their making.
  std::vector<MountEntry> Table() const;
  bool SeesFilesystem(uint64_t id) const { return filesystems_.count(id) != 0; }
  bool IsMounted(uint64_t id) const;
  // Of one on a device, when that gets another.
  void DropFilesystem(uint64_t id);

  // Only the filesystem at "/" is left, and on it only what survives.
  void Reboot();

 private:
  using Point = std::pair<uint64_t, uint64_t>;  // mount, dentry

  FakeInode& Inode(uint64_t dentry) { return inodes_.at(dentries_.at(dentry).inode); }
  const FakeInode& Inode(uint64_t dentry) const { return inodes_.at(dentries_.at(dentry).inode); }
  uint64_t NewInode(uint64_t filesystem, FileType type, uint32_t mode);
  uint64_t NewDentry(uint64_t parent, const std::string& name, uint64_t inode);
  // What every making of a name checks, in the kernel's order.
  int CheckMake(FakeLocation directory, const std::string& name) const;
  int AddInode(FakeLocation directory, const std::string& name, FileType type, uint32_t mode,
               const std::string& content);
  void DropName(FakeLocation directory, uint64_t dentry);
  bool IsMountpoint(uint64_t dentry) const;
  bool IsHeldByMount(uint64_t dentry) const;
  // The dentry of the root of the subvolume that this one lies in, or of its filesystem.
  uint64_t SubvolumeOf(uint64_t dentry) const;
  void CopyChildren(uint64_t from, uint64_t to, uint64_t account,
                    std::map<uint64_t, uint64_t>* copies);
  void DropTree(FakeLocation directory, uint64_t dentry);
  // One of CopyTree's; `copies` are those with several names, by their inodes.
  int CopyEntry(FakeLocation source, FakeLocation to, std::map<uint64_t, uint64_t>* copies);
  int CopyInto(FakeLocation from, FakeLocation to, bool half, std::map<uint64_t, uint64_t>* copies);
  int CopyFileContent(FakeLocation from, FakeLocation to);
  void CopyOwnerAndMode(const FakeInode& from, FakeLocation to);
  // EDQUOT, and ENOSPC on an xfs, if the account has no room for so much more.
  int CheckLimit(uint64_t filesystem, uint64_t account, int64_t bytes, int64_t inodes) const;
  bool IsBelow(uint64_t dentry, uint64_t ancestor) const;
  int StepUp(FakeLocation start, const FakeWalk& how, FakeLocation* at) const;
  int Step(FakeLocation start, const FakeWalk& how, const std::string& name, bool last,
           std::vector<std::string>* pending, int* links, FakeLocation* at) const;
  void FreeFilesystemIfUnused(uint64_t id);

  std::vector<uint64_t> ChildrenOf(uint64_t mount) const;
  std::vector<uint64_t> PeersOf(uint64_t mount) const;
  uint64_t CopyMount(uint64_t mount, uint64_t root, bool keep_group);
  uint64_t CopyTree(uint64_t mount, uint64_t root, bool keep_group);
  void SetPoint(uint64_t mount, uint64_t parent, uint64_t mountpoint);
  void ClearPoint(uint64_t mount);
  void AttachOne(uint64_t mount, uint64_t parent, uint64_t mountpoint);
  void Forget(uint64_t mount);
  std::string RootText(uint64_t dentry) const;

  std::unordered_map<uint64_t, FakeInode> inodes_;
  std::unordered_map<uint64_t, FakeDentry> dentries_;
  std::map<uint64_t, FakeFilesystem> filesystems_;
  std::map<uint64_t, FakeMount> mounts_;
  std::map<Point, uint64_t> points_;  // what is mounted directly on a name
  uint64_t root_mount_ = 0;
  uint64_t next_id_ = 1;
  int64_t next_place_ = 1 << 20;  // for what is written next
};

}  // namespace volumed
