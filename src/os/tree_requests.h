// The requests of the Kernel seam that are about whole directories with all that is in them: one is
// given another place, or copied. Part of os/kernel_requests.h, which lists them in AnyRequest.
//
// What is said of errors in os/kernel_requests.h holds here.
#pragma once

#include <cstdint>

#include "os/lane_kind.h"
#include "os/safe_path.h"
#include "os/storage_requests.h"

namespace volumed {

struct Changed;  // os/kernel_answers.h

// Gives a directory another name in its filesystem, with all that is in it; nothing is copied, and
// nothing is ever replaced. Both names are on the disk when this answers. The expected one, which
// has to be named, may be at `to` already, as an earlier call may have left it: that is success
// with changed = false, whatever is at `from`.
//
// Whoever has it bound, or a part of it, or something mounted in it, would see it go: so one with
// such a mount in this mount namespace is refused.
// Errors, not applied: InvalidArgument without `expected`; NotFound of either parent, and if it is
// at neither place; AlreadyExists for anything else at `to`; FailedPrecondition for another one
// than `expected`, for the root of a subvolume, while something of it is mounted, naming where, and
// (EXDEV) if it lies on another filesystem, in another subvolume, or is to be of another project:
// then it could only be copied. Aborted, maybe applied, if somebody put another one at `from`
// meanwhile, which is given back its name. An error of the syncs at the end is maybe applied.
// Source: rename(2) (RENAME_NOREPLACE).
struct MoveDirectory {
  using Answer = Changed;
  static constexpr const char* kName = "MoveDirectory";
  static constexpr uint32_t kWireNumber = 68;
  static constexpr LaneKind kLane = LaneKind::kWalks;
  static constexpr bool kMustFinish = false;
  SafePath to;
  SafePath from;
  StorageObject expected = {};
  static void WireFields(auto& v, auto& m) {
    v(1, m.to);
    v(2, m.from);
    v.If(3, m.expected, m.expected.inode != 0);
  }
};

// What a copy of a tree has, with the directory that it is in.
struct TreeCopied {
  static constexpr uint32_t kWireNumber = 38;
  int64_t allocated_bytes = 0;
  bool shares_blocks = false;  // with what it was copied from
  static void WireFields(auto& v, auto& m) {
    v(1, m.allocated_bytes);
    v(2, m.shares_blocks);
  }
};

// Copies all that is in a directory into one that is there and empty, which gets its owner, mode,
// times and attributes at the end. Owners, modes, times, links of both kinds, special files, holes
// and extended attributes with access lists are kept; files share their blocks if the filesystem
// can do that. All is on the disk when this answers.
//
// It is done by descriptors, and follows no link: whoever renames in `from` meanwhile leads it
// nowhere else. Then the copy is of no moment: a file may be copied half written, and what is moved
// or removed meanwhile may be missing, or be there twice. Nobody else may change `to`.
// Other filesystems are not entered: an empty directory stands for each. Whoever may write in a
// tree on a btrfs can make a subvolume there, which is refused, since it would be missing. What
// says whose a directory is (MarkStorage) is not copied. Progress: bytes of files that were copied.
// A cancel is seen within a fifth of a second.
//
// With `most_bytes` it ends before more blocks than that are the copy's, by the filesystem's own
// account of its files and directories, so that nobody who writes in `from` meanwhile makes it as
// large as he likes. Blocks that are shared count in it, too: they may have to be written anew.
//
// Errors, not applied until something was made, and maybe applied then: NotFound of either;
// InvalidArgument for a rate or a bound below zero; FailedPrecondition for another one than
// `expected`, if `to` is not empty, and (EXDEV) if a subvolume is in it; ResourceExhausted for what
// cannot be kept in mind: more than 1,048,576 files with several names of which not all were met,
// or 64 MiB of names of directories that are still to be copied, and (EDQUOT) beyond `most_bytes`;
// Cancelled; errno of the first thing that could not be copied, with its path. Source: openat2(2),
// copy_file_range(2), ioctl_ficlone(2), GNU cp(1)
// (-a).
struct CopyTree {
  using Answer = TreeCopied;
  static constexpr const char* kName = "CopyTree";
  static constexpr uint32_t kWireNumber = 69;
  static constexpr LaneKind kLane = LaneKind::kWalks;
  static constexpr bool kMustFinish = false;
  SafePath to;
  SafePath from;
  StorageObject expected = {};   // of `from`
  int64_t bytes_per_second = 0;  // 0: no limit; holes, and blocks that are shared, are not counted
  int64_t most_bytes = 0;        // 0: no bound
  static void WireFields(auto& v, auto& m) {
    v(1, m.to);
    v(2, m.from);
    v.If(3, m.expected, m.expected.inode != 0);
    v(4, m.bytes_per_second);
    v(5, m.most_bytes);
  }
};

}  // namespace volumed
