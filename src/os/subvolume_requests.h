// The requests of the Kernel seam that are about the subvolumes of a btrfs: trees that can be
// copied as they are at one moment, and that have an account of their own. Part of
// os/kernel_requests.h, which lists them in AnyRequest.
//
// Every root of a subvolume has the same inode number: its file handle tells it from others
// (StorageObject::handle).
//
// What is said of errors in os/kernel_requests.h holds here.
#pragma once

#include <optional>

#include "os/image_requests.h"
#include "os/lane_kind.h"
#include "os/safe_path.h"
#include "os/storage_requests.h"

namespace volumed {

// Makes a subvolume: an empty one (0755), or a snapshot of another one of the same filesystem, as
// that is at one moment; what lies in subvolumes and mounts inside of that is not in it. It is on
// the disk when this answers. Of the answer the sizes are zero. It waits while the filesystem is
// frozen.
//
// What is there already is answered with changed = false, if an earlier call may have made it: an
// empty subvolume without `of`, a snapshot of `of` with it; the moment is that of the earlier call.
// Errors, not applied: NotFound of the parent or of `of`; AlreadyExists for anything else that is
// there; FailedPrecondition if `of` is no subvolume, or not the expected one, or of another
// filesystem (EXDEV); Unimplemented if the filesystem is no btrfs, naming it.
// Source: Linux include/uapi/linux/btrfs.h (BTRFS_IOC_SUBVOL_CREATE_V2, BTRFS_IOC_SNAP_CREATE_V2).
struct MakeSubvolume {
  using Answer = FileExtent;
  static constexpr const char* kName = "MakeSubvolume";
  static constexpr uint32_t kWireNumber = 63;
  static constexpr LaneKind kLane = LaneKind::kWalks;
  static constexpr bool kMustFinish = false;
  SafePath path;
  std::optional<SafePath> of = std::nullopt;
  StorageObject expected = {};  // of `of`
  bool read_only = false;       // from its birth, and only with `of`
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.of);
    v.If(3, m.expected, m.expected.inode != 0);
    v(4, m.read_only);
  }
};

// Removes a subvolume, and the ones that somebody has made inside of it. The filesystem gets the
// space back later, by itself. One that is missing is success with changed = false. It waits while
// the filesystem is frozen.
//
// The kernel would take it away under every mount that shows it or lies in it, so one that has such
// a mount in this mount namespace is refused.
// Errors, not applied: FailedPrecondition for another one than `expected`, for what is no root of a
// subvolume, and while something of it is mounted, naming where. What fails once a subvolume inside
// of it was removed is maybe applied.
// Source: Linux include/uapi/linux/btrfs.h (BTRFS_IOC_SNAP_DESTROY_V2,
// BTRFS_IOC_GET_SUBVOL_ROOTREF).
struct RemoveSubvolume {
  using Answer = Changed;
  static constexpr const char* kName = "RemoveSubvolume";
  static constexpr uint32_t kWireNumber = 64;
  static constexpr LaneKind kLane = LaneKind::kWalks;
  static constexpr bool kMustFinish = false;
  SafePath path;
  StorageObject expected = {};
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v.If(2, m.expected, m.expected.inode != 0);
  }
};

}  // namespace volumed
