// The answers of the Kernel seam's primitive requests, and of a batch. Part of
// os/kernel_requests.h, which lists them in AnyAnswer; those about devices and storage stand beside
// their requests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/wire_enum.h"
#include "os/mount_entry.h"

namespace volumed {

// What is at a path. kMissing stands for nothing, and for a type that a worker of another release
// says.
enum class FileType {
  kMissing,
  kRegular,
  kDirectory,
  kSymlink,
  kSocket,
  kCharDevice,
  kBlockDevice,
  kFifo,
};
// As messages have it: "directory", "block device".
std::string_view FileTypeName(FileType type);
constexpr WireEnum<FileType> WireEnumOf(FileType) {
  return {.last = FileType::kFifo, .otherwise = FileType::kMissing};
}

// The answer of a request that has nothing to tell but that it was done.
struct Done {
  static constexpr uint32_t kWireNumber = 10;
  static void WireFields(auto& /*v*/, auto& /*m*/) {}
  friend bool operator==(Done, Done) = default;
};

// The answer of an idempotent request: false says that everything was so before.
struct Changed {
  static constexpr uint32_t kWireNumber = 11;
  bool changed = false;
  static void WireFields(auto& v, auto& m) { v(1, m.changed); }
  friend bool operator==(Changed, Changed) = default;
};

// What one statx(2) says, of the last component itself or of what it leads to, as the request
// asked. `type` is kMissing, and the rest zero, if nothing is there. `device` is that of the
// filesystem, as makedev(3) has it.
struct FileInfo {
  static constexpr uint32_t kWireNumber = 12;
  FileType type = FileType::kMissing;
  uint32_t mode = 0;  // permission bits with setuid, setgid and sticky: 07777
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t size_bytes = 0;  // of a block device its capacity, 0 where that is unknown
  bool is_mount_point = false;
  uint64_t device_number = 0;  // of a device: which one it is, as makedev(3) has it
  // What the filesystem has given to it, by its own account: a file with holes has less than its
  // size.
  int64_t allocated_bytes = 0;
  static void WireFields(auto& v, auto& m) {
    v(1, m.type);
    v(2, m.mode);
    v(3, m.uid);
    v(4, m.gid);
    v(5, m.device);
    v(6, m.inode);
    v(7, m.size_bytes);
    v(8, m.is_mount_point);
    v(9, m.device_number);
    v(10, m.allocated_bytes);
  }
};

// Source: statfs(2). Sizes use f_bsize, as kubelet's do.
// `available_bytes` is what a user other than root may still use, so that used and available need
// not add up to the capacity. Filesystems without inodes of their own have zero of them.
struct FsInfo {
  static constexpr uint32_t kWireNumber = 13;
  uint64_t fs_magic = 0;
  int64_t capacity_bytes = 0;
  int64_t available_bytes = 0;
  int64_t used_bytes = 0;
  int64_t inodes = 0;
  int64_t inodes_free = 0;
  int64_t inodes_used = 0;
  static void WireFields(auto& v, auto& m) {
    v(1, m.fs_magic);
    v(2, m.capacity_bytes);
    v(3, m.available_bytes);
    v(4, m.used_bytes);
    v(5, m.inodes);
    v(6, m.inodes_free);
    v(7, m.inodes_used);
  }
};

// What a tree uses. Source: kubernetes pkg/volume/util/fs/fs.go@v1.36.2 (DiskUsage): 512-byte
// blocks, hard links once, one filesystem, the root counted.
struct UsageInfo {
  static constexpr uint32_t kWireNumber = 14;
  int64_t used_bytes = 0;
  int64_t inodes_used = 0;
  static void WireFields(auto& v, auto& m) {
    v(1, m.used_bytes);
    v(2, m.inodes_used);
  }
};

// What a run over a tree did: how many entries it came to, the root among them, and how many of
// these it changed.
struct OwnershipInfo {
  static constexpr uint32_t kWireNumber = 15;
  int64_t visited = 0;
  int64_t changed = 0;
  bool skipped = false;  // OnRootMismatch, and the root was right
  static void WireFields(auto& v, auto& m) {
    v(1, m.visited);
    v(2, m.changed);
    v(3, m.skipped);
  }
};

// A name in a directory, as bytes. For a mount point it is the type of what lies below the mount.
struct DirectoryEntry {
  std::string name;
  FileType type = FileType::kMissing;
  static void WireFields(auto& v, auto& m) {
    v(1, m.name);
    v(2, m.type);
  }
  friend auto operator<=>(const DirectoryEntry&, const DirectoryEntry&) = default;
};
struct DirectoryListing {
  static constexpr uint32_t kWireNumber = 16;
  std::vector<DirectoryEntry> entries;  // sorted by name
  static void WireFields(auto& v, auto& m) { v(1, m.entries); }
};

// The bytes of a small file, or of a link's target; they need not be UTF-8.
struct FileContent {
  static constexpr uint32_t kWireNumber = 17;
  std::string bytes;
  static void WireFields(auto& v, auto& m) { v(1, m.bytes); }
};

// How a program ended, whatever it did. The output is bytes as it printed them: who shows it makes
// it printable.
struct ProgramEnd {
  static constexpr uint32_t kWireNumber = 23;
  int exit_status = 0;  // 128 + the signal's number when a signal ended it
  std::string output;   // the end of what it wrote to stdout and stderr
  static void WireFields(auto& v, auto& m) {
    v(1, m.exit_status);
    v(2, m.output);
  }
};

struct BatchItemAnswer;  // os/kernel_requests.h: it holds any answer
// A batch that was tried is no error, whatever became of its items.
struct BatchAnswer {
  static constexpr uint32_t kWireNumber = 28;
  std::vector<BatchItemAnswer> items;  // one for each of the request, in its order
  static void WireFields(auto& v, auto& m) { v(1, m.items); }
};

// Mounts as they were when the question was answered.
struct MountListing {
  static constexpr uint32_t kWireNumber = 18;
  std::vector<MountEntry> mounts;  // in the kernel's order: a later one covers an earlier one
  static void WireFields(auto& v, auto& m) { v(1, m.mounts); }
};

// What this kernel can do; each can be masked by its name, for a run as on an older one. What is
// missing is done in another way, or not at all, as each user says.
struct KernelFeatures {
  static constexpr uint32_t kWireNumber = 19;
  bool open_tree_detached_clone =
      false;                   // "open-tree-detached-clone", 6.15: anchor without attaching it
  bool mount_setattr = false;  // "mount-setattr", 5.12: read-only from birth, recursive
  bool statmount = false;      // "statmount", 6.8
  bool mount_events = false;   // "mount-events", 6.15: fanotify FAN_REPORT_MNT
  bool fchmodat2 = false;      // "fchmodat2", 6.6
  bool tmpfs_noswap = false;   // "tmpfs-noswap", 6.4
  // "grows-mounted-ext": the capability CAP_SYS_RESOURCE, without which the kernel refuses to grow
  // an ext3 or ext4 that is mounted.
  bool grows_mounted_ext = false;
  bool fsopen = false;  // "fsopen", 5.2: a filesystem can be mounted where nobody sees it
  static void WireFields(auto& v, auto& m) {
    v(1, m.open_tree_detached_clone);
    v(2, m.mount_setattr);
    v(3, m.statmount);
    v(4, m.mount_events);
    v(5, m.fchmodat2);
    v(6, m.tmpfs_noswap);
    v(7, m.grows_mounted_ext);
    v(8, m.fsopen);
  }
};

}  // namespace volumed
