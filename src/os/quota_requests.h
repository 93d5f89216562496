// The requests of the Kernel seam that bound what a directory may have, and say what it has: by the
// project quota of ext4 and xfs, or by the qgroup of a subvolume of btrfs. Part of
// os/kernel_requests.h, which lists them in AnyRequest.
//
// What is said of errors in os/kernel_requests.h holds here.
#pragma once

#include <cstdint>

#include "base/wire_enum.h"
#include "os/lane_kind.h"
#include "os/safe_path.h"
#include "os/storage_requests.h"

namespace volumed {

// By what the filesystem counts. kNone: it could, and does not for this directory.
enum class TreeQuotaKind { kNone, kProject, kQgroup };
constexpr WireEnum<TreeQuotaKind> WireEnumOf(TreeQuotaKind) {
  return {.last = TreeQuotaKind::kQgroup, .otherwise = TreeQuotaKind::kNone};
}

// What a directory has, with all that is below it, and what it may have at most.
struct TreeQuota {
  static constexpr uint32_t kWireNumber = 36;
  TreeQuotaKind kind = TreeQuotaKind::kNone;
  uint64_t id = 0;           // of the project, or of the subvolume
  int64_t limit_bytes = 0;   // 0: none
  int64_t used_bytes = 0;    // of a qgroup also what is shared with snapshots
  int64_t limit_inodes = 0;  // 0: none
  int64_t used_inodes = 0;   // 0 of a qgroup, which does not count them
  static void WireFields(auto& v, auto& m) {
    v(1, m.kind);
    v(2, m.id);
    v(3, m.limit_bytes);
    v(4, m.used_bytes);
    v(5, m.limit_inodes);
    v(6, m.used_inodes);
  }
  friend bool operator==(const TreeQuota&, const TreeQuota&) = default;
};

// Bounds a directory. Writes beyond that fail (EDQUOT; ENOSPC on an xfs); what is there stays.
//
// On ext4 and xfs the directory becomes one of the project `project_id`, and so does what is made
// in it later: REQUIRES, that nothing is in it when it gets its project. 0 is the project that it
// has. On btrfs it must be the root of a subvolume, and the accounts of the whole filesystem are
// switched on if they are not (which counts what is there in the background).
//
// With `limit_alone` the limit is that of the project `project_id`, whatever the directory is of:
// it says only on which filesystem, and stays as it is. Whoever owns a directory can give it to
// another project, so that only who has the number on record knows which limit is to go.
// Errors, not applied: NotFound; InvalidArgument for a limit below zero, for project 0 if the
// directory has none, or with `limit_alone`, and on btrfs for a limit of inodes and for
// `limit_alone`; AlreadyExists if the directory has none, and the project has files already: it is
// somebody else's; FailedPrecondition if the directory is of another project, or is not the
// expected one; Unimplemented if the filesystem has no such quota, or was mounted without it, and
// for what is no root of a subvolume on btrfs: it says which. What fails after the project was set
// is maybe applied. Source: quotactl(2) (quotactl_fd, Q_SETQUOTA), Linux include/uapi/linux/fs.h
// (FS_IOC_FSSETXATTR), include/uapi/linux/btrfs.h (BTRFS_IOC_QGROUP_LIMIT).
struct SetTreeQuota {
  using Answer = TreeQuota;
  static constexpr const char* kName = "SetTreeQuota";
  static constexpr uint32_t kWireNumber = 65;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;
  StorageObject expected = {};
  uint32_t project_id = 0;
  int64_t bytes = 0;   // 0: no limit
  int64_t inodes = 0;  // likewise
  bool limit_alone = false;
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v.If(2, m.expected, m.expected.inode != 0);
    v(3, m.project_id);
    v(4, m.bytes);
    v(5, m.inodes);
    v.If(6, m.limit_alone, m.limit_alone);
  }
};

// Answers what bounds a directory, and what it has by that account, which a btrfs writes when it is
// synced.
// Errors, not applied: NotFound; Unimplemented as SetTreeQuota.
struct ReadTreeQuota {
  using Answer = TreeQuota;
  static constexpr const char* kName = "ReadTreeQuota";
  static constexpr uint32_t kWireNumber = 66;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;
  static void WireFields(auto& v, auto& m) { v(1, m.path); }
};

}  // namespace volumed
