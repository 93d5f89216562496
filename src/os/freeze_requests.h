// The requests of the Kernel seam that hold a filesystem still while its image is copied, and that
// give a copy a name of its own; with their answers. Part of os/kernel_requests.h, which lists them
// in AnyRequest.
//
// A filesystem that is frozen (FIFREEZE) has everything on its device, and every write to it waits.
// It stays so until somebody thaws it: not even an unmount or the death of who froze it ends that.
// So a process of its own, the thawer (os/thawer.h), watches whoever freezes.
//
// What is said of errors in os/kernel_requests.h holds here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "os/image_requests.h"
#include "os/lane_kind.h"
#include "os/safe_path.h"
#include "os/storage_requests.h"

namespace volumed {

// A mounted filesystem that is to be frozen or thawed.
struct FreezePoint {
  SafePath mount_point;
  // The filesystem's number as the mount table shows it (MountEntry), with which it must still be
  // mounted there.
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  static void WireFields(auto& v, auto& m) {
    v(1, m.mount_point);
    v(2, m.device_major);
    v(3, m.device_minor);
  }
  friend bool operator==(const FreezePoint&, const FreezePoint&) = default;
};

// One file to clone while everything is frozen: as CloneFile.
struct CutPart {
  SafePath from;
  StorageObject expected = {};
  SafePath to;
  static void WireFields(auto& v, auto& m) {
    v(1, m.from);
    v.If(2, m.expected, m.expected.inode != 0);
    v(3, m.to);
  }
  friend bool operator==(const CutPart&, const CutPart&) = default;
};

struct FrozenCut {
  static constexpr uint32_t kWireNumber = 34;
  std::vector<FileExtent> files;  // one for each part, in their order
  int64_t frozen_us = 0;          // how long all of them were frozen together
  // From the first freeze's begin to the last thaw's end: so long may a write have waited.
  int64_t stall_us = 0;
  static void WireFields(auto& v, auto& m) {
    v(1, m.files);
    v(2, m.frozen_us);
    v(3, m.stall_us);
  }
};

// Freezes filesystems, clones files, and thaws: all files are as they were at one moment, and what
// is on them is as clean as a freeze makes it (of an xfs the log is still to be replayed).
//
// In this order: every mount point is opened, and must be the filesystem that it is said to be;
// every file is made; a thawer for each filesystem is started; each is synced until that takes less
// than `sync_until_us`, at most `syncs_most` times, so that the freeze has little left to write;
// the thawers watch; they are frozen in the order of the list; every file is cloned; they are
// thawed, the last one first; the thawers are asked; the files are synced. A thawer thaws once
// `longest_us` have passed since the freeze of its filesystem began, or if this worker dies. It is
// what bounds how long pods wait; nothing bounds the time that the kernel takes to freeze. A cancel
// is seen until the first freeze. Progress: syncs.
//
// Errors, not applied, before anything is frozen: InvalidArgument for an empty list of either, a
// mount point given twice, or limits that are not above zero; FailedPrecondition if another
// filesystem or none is mounted at a place, and for a filesystem that has one of the `never` or a
// file of a part, since whoever had to write there would wait for ever; those of CloneFile for each
// part; Unavailable if no thawer can be had.
// FIFREEZE's own, not applied if all could be taken back: EBUSY (FailedPrecondition) if somebody
// else has frozen it, EOPNOTSUPP (Unimplemented). Those of FICLONE, likewise.
// Aborted, maybe applied: it was thawed by its watch, or its thawer died. The files are gone again
// unless the error says so; one that stayed is no cut.
// After any error that is maybe applied a filesystem may be frozen still: ThawFilesystem must
// follow. Source: ioctl_fsfreeze (Linux include/uapi/linux/fs.h, fs/super.c).
struct CutFrozen {
  using Answer = FrozenCut;
  static constexpr const char* kName = "CutFrozen";
  static constexpr uint32_t kWireNumber = 60;
  static constexpr LaneKind kLane = LaneKind::kWalks;
  static constexpr bool kMustFinish = false;
  std::vector<FreezePoint> freeze;
  std::vector<SafePath> never = {};  // each must be there
  std::vector<CutPart> cuts;
  int64_t longest_us = 1'000'000;
  int64_t sync_until_us = 100'000;
  uint32_t syncs_most = 5;
  static void WireFields(auto& v, auto& m) {
    v(1, m.freeze);
    v(2, m.never);
    v(3, m.cuts);
    v(4, m.longest_us);
    v(5, m.sync_until_us);
    v(6, m.syncs_most);
  }
};

// Thaws a filesystem, whoever froze it. One that is not frozen is success with changed = false.
// Errors, not applied: NotFound; FailedPrecondition if another filesystem or none is mounted there;
// errno of FITHAW.
struct ThawFilesystem {
  using Answer = Changed;
  static constexpr const char* kName = "ThawFilesystem";
  static constexpr uint32_t kWireNumber = 61;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  FreezePoint point;
  static void WireFields(auto& v, auto& m) { v(1, m.point); }
};

// What a filesystem is called, as its superblock says.
struct FilesystemName {
  static constexpr uint32_t kWireNumber = 35;
  std::string fs_type;
  std::string uuid;
  bool changed = false;  // false: it had this UUID before
  static void WireFields(auto& v, auto& m) {
    v(1, m.fs_type);
    v(2, m.uuid);
    v(3, m.changed);
  }
  friend bool operator==(const FilesystemName&, const FilesystemName&) = default;
};

// Gives the filesystem on an image or a device another UUID, to be mounted beside the one that it
// was copied from. Nobody has it meanwhile: no loop device, and a device is opened for one alone
// (O_EXCL). An xfs is mounted where nobody sees it, an image by a loop device that goes by itself,
// so that its log is replayed; then log and superblocks are written in steps that can be gone on
// with (os/xfs_uuid.h). Nothing but a look at the superblock afterwards is believed.
// To repeat a call that was cut off goes on with it. Half way, the filesystem may not be mountable.
// Progress: bytes that the tools have read and written.
// Errors, not applied: InvalidArgument for a type that is none of ext2, ext3, ext4, xfs, btrfs, or
// for an empty UUID; NotFound of what `path` names, or of a tool, with its package;
// FailedPrecondition if somebody has it, for another filesystem than `fs_type`, one that has a part
// on another device, or a UUID that is neither of the two; DataLoss for a superblock that is
// damaged, and of a btrfs also if it is larger than what it is on; Unimplemented for xfs without
// fsopen. errno of the private mount (EUCLEAN if it is damaged), maybe applied. Internal, maybe
// applied, if a tool failed, or if the UUID is another one at the end.
// Source: tune2fs(8) (-U); for xfs os/xfs_uuid.h; for btrfs os/btrfs_superblock.h, and btrfstune(8)
// (-M) of one whose checksums are not crc32c.
struct ChangeFilesystemUuid {
  using Answer = FilesystemName;
  static constexpr const char* kName = "ChangeFilesystemUuid";
  static constexpr uint32_t kWireNumber = 62;
  static constexpr LaneKind kLane = LaneKind::kWalks;
  static constexpr bool kMustFinish = true;
  SafePath path;
  StorageObject expected = {};
  std::string fs_type;
  std::string old_uuid;
  std::string new_uuid;
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v.If(2, m.expected, m.expected.inode != 0);
    v(3, m.fs_type);
    v(4, m.old_uuid);
    v(5, m.new_uuid);
  }
};

}  // namespace volumed
