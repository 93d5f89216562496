// How a directory is recognised, while the agent runs and after a restart.
#pragma once

#include <optional>
#include <string>

#include "base/descriptor.h"
#include "base/result.h"
#include "kube/object_source.h"

namespace volumed {

// Identifies a directory for as long as an open descriptor or an inotify watch keeps its inode.
struct DirectoryInode {
  unsigned long device = 0;
  unsigned long inode = 0;
  friend bool operator==(const DirectoryInode&, const DirectoryInode&) = default;
};

// The descriptor keeps the inode, and with it the mount, in use for as long as it is open.
struct OpenDirectory {
  Descriptor fd;
  DirectoryInode inode;
};

// Opens the directory for reading; symbolic links in `path` are followed.
// Threads: any. Blocks: on the filesystem. Errors, not applied: errno's code, such as NotFound.
Result<OpenDirectory> OpenDirectoryAt(const std::string& path);

// What the directory is recognised by after the agent has started again:
//  - On ext4, xfs, btrfs and f2fs: the filesystem's UUID and the inode. Each subvolume of btrfs has
//    the same inode numbers, and a snapshot has the birth time of its original; so the UUID is
//    followed by "/" and the subvolume's filesystem id, also if the kernel does not tell the UUID.
//  - On tmpfs, overlay, FUSE, NFS and others: neither of them. If they have a UUID, each mount
//    makes a new one, and an inode number means nothing in another mount.
//  - On each filesystem that tells it: when the directory was made.
// Threads: any. Blocks: on the filesystem. Errors (not applied): errno's.
Result<KnownDirectory> IdentifyDirectory(const Descriptor& directory);

// When the entries of the directory changed last, in unix nanoseconds (its ctime). The result is
// nullopt if its filesystem is not one of those that are recognised by UUID and inode, or if the
// directory cannot be examined.
// Threads: any. Blocks: on the filesystem. Errors: none.
std::optional<int64_t> LastChangeOf(const Descriptor& directory);

// True if `now` is the directory `known` in an older state: the disk was put back to what it was
// earlier. Threads: any. Blocks: no.
bool IsOlderState(const KnownDirectory& known, const KnownDirectory& now);

// True if `now` is certainly the directory `known`, and not in an older state. A property that only
// one of the two has is not compared, since another kernel may tell more. False if the two share
// neither UUID and inode nor birth: such a directory cannot be recognised. Threads: any. Blocks:
// no.
bool IsSameDirectory(const KnownDirectory& known, const KnownDirectory& now);

}  // namespace volumed
