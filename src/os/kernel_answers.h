// The answers of the Kernel seam's primitive requests, and of a batch. Part of os/kernel.h, which
// lists them in AnyAnswer; those about devices and storage stand beside their requests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "os/mount_entry.h"

namespace volumed {

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
std::string_view FileTypeName(FileType type);

struct Done {
  friend bool operator==(Done, Done) = default;
};

struct Changed {
  bool changed = false;
  friend bool operator==(Changed, Changed) = default;
};

// What one statx says. `type` is kMissing, and the rest zero, when nothing is there.
struct FileInfo {
  FileType type = FileType::kMissing;
  uint32_t mode = 0;  // permission bits with setuid, setgid and sticky: 07777
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t size_bytes = 0;  // of a block device its capacity, 0 where that is unknown
  bool is_mount_point = false;
  uint64_t device_number = 0;  // of a device: which one it is, as makedev(3) has it
};

// Source: statfs(2). Sizes use f_bsize, as kubelet's do.
struct FsInfo {
  uint64_t fs_magic = 0;
  int64_t capacity_bytes = 0;
  int64_t available_bytes = 0;
  int64_t used_bytes = 0;
  int64_t inodes = 0;
  int64_t inodes_free = 0;
  int64_t inodes_used = 0;
};

// Source: kubernetes pkg/volume/util/fs/fs.go@v1.36.2 (DiskUsage): 512-byte blocks, hard links
// once, one filesystem, the root counted.
struct UsageInfo {
  int64_t used_bytes = 0;
  int64_t inodes_used = 0;
};

struct OwnershipInfo {
  int64_t visited = 0;
  int64_t changed = 0;
  bool skipped = false;  // OnRootMismatch, and the root was right
};

struct DirectoryEntry {
  std::string name;
  FileType type = FileType::kMissing;
  friend auto operator<=>(const DirectoryEntry&, const DirectoryEntry&) = default;
};
struct DirectoryListing {
  std::vector<DirectoryEntry> entries;  // sorted by name
};

struct FileContent {
  std::string bytes;
};

struct ProgramEnd {
  int exit_status = 0;  // 128 + the signal's number when a signal ended it
  std::string output;   // the end of what it wrote to stdout and stderr
};

struct BatchItemAnswer;  // os/kernel.h: it holds any answer
struct BatchAnswer {
  std::vector<BatchItemAnswer> items;  // one for each of the request, in its order
};

struct MountListing {
  std::vector<MountEntry> mounts;  // in the kernel's order: a later one covers an earlier one
};

// What this kernel can do; each can be masked by name for tests. Missing ones are degraded.
struct KernelFeatures {
  bool open_tree_detached_clone =
      false;                   // "open-tree-detached-clone", 6.15: anchor without attaching it
  bool mount_setattr = false;  // "mount-setattr", 5.12: read-only from birth, recursive
  bool statmount = false;      // "statmount", 6.8
  bool mount_events = false;   // "mount-events", 6.15: fanotify FAN_REPORT_MNT
  bool fchmodat2 = false;      // "fchmodat2", 6.6
  bool tmpfs_noswap = false;   // "tmpfs-noswap", 6.4
};

}  // namespace volumed
