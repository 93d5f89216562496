// Which directory this is: what it is recognised by while the agent runs, and after a restart.
#pragma once

#include <optional>
#include <string>

#include "base/descriptor.h"
#include "base/result.h"
#include "kube/object_source.h"

namespace volumed {

// A directory as long as something keeps its inode: an open descriptor or an inotify watch.
struct DirectoryInode {
  unsigned long device = 0;
  unsigned long inode = 0;
  friend bool operator==(const DirectoryInode&, const DirectoryInode&) = default;
};

struct OpenDirectory {
  Descriptor fd;
  DirectoryInode inode;
};

// Threads: any. Blocks: on the filesystem. Errors (not applied): errno's, as NotFound.
Result<OpenDirectory> OpenDirectoryAt(const std::string& path);

// What the directory is recognised by when the agent starts anew:
//  - ext4, xfs, btrfs, f2fs: the filesystem's UUID and the inode. btrfs has one inode number in
//    each subvolume, and a snapshot has the birth of what it was taken of: its UUID is followed by
//    "/" and the subvolume's filesystem id, which a kernel that tells no UUID tells as well.
//  - tmpfs, overlay, FUSE, NFS and others: neither. Their UUID, if they have one, is made anew with
//    each mount, and an inode number means nothing in another mount.
//  - any that tells it: when the directory was made.
// Threads: any. Blocks: on the filesystem. Errors (not applied): errno's.
Result<KnownDirectory> IdentifyDirectory(const Descriptor& directory);

// When the entries of such a directory changed last; nullopt if its filesystem is none of the
// first. Threads: any. Blocks: on the filesystem. Errors: none.
std::optional<int64_t> LastChangeOf(const Descriptor& directory);

// True if `now` is the directory that `known` was, as it was before it became that: somebody has
// put its disk back to an older state. Threads: any. Blocks: no.
bool IsOlderState(const KnownDirectory& known, const KnownDirectory& now);

// True if `now` is certainly the directory that `known` was, and no older state of it. What only
// one of them tells is not compared (a kernel that tells more). False if they have neither UUID and
// inode nor birth in common: such a directory cannot be recognised. Threads: any. Blocks: no.
bool IsSameDirectory(const KnownDirectory& known, const KnownDirectory& now);

}  // namespace volumed
