// The requests of the Kernel seam that are about files which hold a whole device's content
// (images), about the loop devices on them, about what a device is copied to and how far it is read
// ahead, and about a lock that its holder takes to the grave; with their answers. Part of
// os/kernel_requests.h, which lists them in AnyRequest.
//
// A file is opened once, and must be the expected one: every request with an `expected` that has an
// inode refuses another file (FailedPrecondition, not applied), whatever its path says. Without an
// inode any file will do. What is no regular file is FailedPrecondition, not applied.
//
// What is said of errors in os/kernel_requests.h holds here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "os/device_requests.h"
#include "os/lane_kind.h"
#include "os/safe_path.h"
#include "os/storage_requests.h"

namespace volumed {

// The loop device of a file. It stays until somebody detaches it (DetachLoops) or the node reboots.
struct AttachedLoop {
  static constexpr uint32_t kWireNumber = 29;
  // As IdentifyDevice answers it, without a pin; `path` and `node` are "/dev/loop3".
  IdentifiedDevice device = {};
  // Whether the kernel reads and writes the file past its own cache, which it does not do on every
  // filesystem.
  bool direct_io = false;
  bool changed = false;  // false: the file had this loop device before
  static void WireFields(auto& v, auto& m) {
    v(1, m.device);
    v(2, m.direct_io);
    v(3, m.changed);
  }
};

// Attaches a free loop device to the whole of a file, and answers which one it is. The loop device
// that the file has already, under whatever path, is answered again: a file must never have two,
// since each has a cache of its own. So that it can be asked, every loop device of the node is
// opened for a moment; one of another program whose file does not answer holds this up until the
// deadline. The loop device is never one that goes by itself when nobody has it open.
//
// `block_size` is the loop device's logical block size in bytes, whatever the file's filesystem
// would suggest: left to the kernel, it is 512 for a fresh file and 4096 for one that shares blocks
// with another (Linux 6.14 and later), and a filesystem that was made with the one does not mount
// with the other.
// Errors, not applied: NotFound; FailedPrecondition if the file's loop device has another block
// size, another read-only flag or another part of the file, or goes by itself, naming it; for a
// file that is smaller than one block; ENOSPC (ResourceExhausted) if no loop device is free;
// NotFound if the free one has no node in /dev; EBUSY if others took each free one first. What
// fails after the device was attached is maybe applied; to repeat the call finds that device.
// Source: loop(4); Linux drivers/block/loop.c (loop_configure).
struct AttachLoop {
  using Answer = AttachedLoop;
  static constexpr const char* kName = "AttachLoop";
  static constexpr uint32_t kWireNumber = 52;
  static constexpr LaneKind kLane = LaneKind::kWalks;
  static constexpr bool kMustFinish = false;
  SafePath path;
  StorageObject expected = {};
  bool read_only = false;
  // Past the cache if the file's filesystem can; AttachedLoop says whether it does. A loop device
  // that is there already is left as it is.
  bool direct_io = true;
  uint32_t block_size = 4096;  // a power of two, from 512 to 4096
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v.If(2, m.expected, m.expected.inode != 0);
    v(3, m.read_only);
    v(4, m.direct_io);
    v(5, m.block_size);
  }
};

// A loop device with a file, as sysfs shows it.
struct LoopEntry {
  std::string path;  // of its node: "/dev/loop3"
  // As the file's path was when this was asked, without links; bytes. The path of a file that was
  // removed is the one that it had.
  std::string file;
  bool deleted = false;     // that path was removed; another file may be there now
  int64_t size_bytes = 0;   // of the device, which follows the file's only when it is asked to
  uint32_t block_size = 0;  // logical, in bytes
  bool read_only = false;
  bool direct_io = false;
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.file);
    v(3, m.deleted);
    v(4, m.size_bytes);
    v(5, m.block_size);
    v(6, m.read_only);
    v(7, m.direct_io);
  }
  friend bool operator==(const LoopEntry&, const LoopEntry&) = default;
};
struct LoopList {
  static constexpr uint32_t kWireNumber = 30;
  std::vector<LoopEntry> loops;  // by the path of the node
  static void WireFields(auto& v, auto& m) { v(1, m.loops); }
};

// Answers the loop devices whose file is at this path or lies below it, which need not be there any
// more. Paths are compared as text, with those that the kernel shows, once as they are given and
// once without the links among the trusted parents; and those of the regular file that is there,
// under whatever path, unless a server has their file. One that comes or goes may be missing.
// Errors, not applied: errno of reading sysfs, of looking at the path or of asking a device.
struct ListLoops {
  using Answer = LoopList;
  static constexpr const char* kName = "ListLoops";
  static constexpr uint32_t kWireNumber = 53;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;
  static void WireFields(auto& v, auto& m) { v(1, m.path); }
};

// The kernel would keep more; it is no use, and memory for each reader.
inline constexpr int64_t kMostReadAheadKib = 1024 * 1024;

// Changes a loop device that may be in use. `refresh_size` makes it as large as its file is now;
// what is on the device is not grown by that. `direct_io` switches between the kernel's cache and
// none. `read_ahead_kib` is how much the kernel reads ahead of whoever reads in order; files that
// are open keep what they have. What is so already stays, so that the call may be repeated; but of
// `expected` everything is compared except the size, which is what this changes.
// Errors: NotFound; FailedPrecondition, not applied, for another device than `expected`, and for
// what is no loop device or has no file; InvalidArgument with EINVAL, if the file's filesystem
// cannot do without the cache, maybe applied once the size was changed; InvalidArgument, not
// applied, for a read-ahead that is below zero, is no number of whole pages, or is above
// kMostReadAheadKib. Internal, maybe applied, if the kernel then shows something else than was
// asked for. Source: loop(4) (LOOP_SET_CAPACITY, LOOP_SET_DIRECT_IO), Linux
// Documentation/ABI/stable/sysfs-block (read_ahead_kb).
struct ConfigureLoop {
  using Answer = Done;
  static constexpr const char* kName = "ConfigureLoop";
  static constexpr uint32_t kWireNumber = 54;
  static constexpr LaneKind kLane = LaneKind::kDevice;
  static constexpr bool kMustFinish = false;
  std::string device;
  DeviceIdentity expected;
  bool refresh_size = false;
  std::optional<bool> direct_io = std::nullopt;
  std::optional<int64_t> read_ahead_kib = std::nullopt;
  static void WireFields(auto& v, auto& m) {
    v(1, m.device);
    v(2, m.expected);
    v(3, m.refresh_size);
    v(4, m.direct_io);
    v(5, m.read_ahead_kib);
  }
};

// Sets how much the kernel reads ahead of whoever reads a block device in order, and reads it back.
// It is a setting of the whole disk, also for a partition; files that are open keep what they have.
// Errors: NotFound; FailedPrecondition, not applied, for another device than `expected`, of which
// everything is compared except the size; InvalidArgument and Internal as ConfigureLoop's.
// Source: Linux Documentation/ABI/stable/sysfs-block (read_ahead_kb).
struct SetReadAhead {
  using Answer = Done;
  static constexpr const char* kName = "SetReadAhead";
  static constexpr uint32_t kWireNumber = 70;
  static constexpr LaneKind kLane = LaneKind::kDevice;
  static constexpr bool kMustFinish = false;
  std::string device;
  DeviceIdentity expected;
  int64_t kib = 0;
  static void WireFields(auto& v, auto& m) {
    v(1, m.device);
    v(2, m.expected);
    v(3, m.kib);
  }
};

// A file after something was done to it.
struct FileExtent {
  static constexpr uint32_t kWireNumber = 31;
  StorageObject object = {};
  int64_t size_bytes = 0;
  // By the filesystem's account (statx(2), blocks): blocks that it shares with other files are
  // counted in each, and what the filesystem keeps to find them may be counted too.
  int64_t allocated_bytes = 0;
  bool changed = false;  // false: it was so before
  static void WireFields(auto& v, auto& m) {
    v(1, m.object);
    v(2, m.size_bytes);
    v(3, m.allocated_bytes);
    v(4, m.changed);
  }
  friend bool operator==(const FileExtent&, const FileExtent&) = default;
};

// Makes a file as large as `bytes`; what is added reads as zero. It never makes a file smaller.
// With `allocate` the filesystem also gives the whole file its blocks. File and size are on the
// disk when this answers, and so is the file's name with `make`. To repeat a call that was cut off
// goes on with it.
//
// With `make` the file is made if it is missing, with exactly `mode`. One that is there must be
// empty or of this size already, as an earlier call may have left it, and gets the mode.
// Errors: InvalidArgument, not applied, unless `bytes` is above zero; NotFound without `make`, or
// for a missing directory; AlreadyExists, not applied, with `make` if the file has another size, or
// what is there is no regular file; FailedPrecondition, not applied, for a larger file; ENOSPC
// (ResourceExhausted), not applied, if the filesystem cannot allocate that much: the file is as
// large as before and has its mode back, and one that this call has made is gone again, though some
// of its holes may have got blocks. EFBIG for more than the filesystem can have in one file. An
// error of the syncs at the end is maybe applied. Source: ftruncate(2), fallocate(2).
struct SetFileSize {
  using Answer = FileExtent;
  static constexpr const char* kName = "SetFileSize";
  static constexpr uint32_t kWireNumber = 55;
  static constexpr LaneKind kLane = LaneKind::kWalks;
  static constexpr bool kMustFinish = false;
  SafePath path;
  bool make = false;
  StorageObject expected = {};
  int64_t bytes = 0;
  bool allocate = false;
  uint32_t mode = 0600;
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.make);
    v.If(3, m.expected, m.expected.inode != 0);
    v(4, m.bytes);
    v(5, m.allocate);
    v(6, m.mode);
  }
};

// An open descriptor of a file whose lock goes with it: when the last owner of this ends, however
// he ends.
using FilePin = std::shared_ptr<const Descriptor>;

struct FileLock {
  static constexpr uint32_t kWireNumber = 32;
  FilePin pin = nullptr;  // never null
  // A worker sends it beside the message.
  static void WireFields(auto& v, auto& m) { v.NotSent(m.pin); }
};

// Takes the lock of a file (flock(2), exclusive) for whoever has the answer: a worker passes the
// open descriptor to the agent, whose own it is from then on. It never waits for the lock.
// With a `content` the file is made if it is missing (0600), and gets this content once it is
// locked, so that whoever comes later can be told who has it; nothing syncs that, and on a full
// disk it keeps what it says. Without one the file must be there, and stays as it is.
// Errors: NotFound, of the file or its directory; Aborted, not applied, with the beginning of the
// file's content, if somebody else has the lock; EOPNOTSUPP or the like on a filesystem without
// locks. An error of writing the content is maybe applied; the lock is let go of.
// Source: flock(2).
struct TakeFileLock {
  using Answer = FileLock;
  static constexpr const char* kName = "TakeFileLock";
  static constexpr uint32_t kWireNumber = 56;
  static constexpr LaneKind kLane = LaneKind::kOwnFilesystem;
  static constexpr bool kMustFinish = false;
  SafePath path;
  std::string content = {};  // for people, at most 4096 bytes
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.content);
  }
};

// Makes a file that shares all blocks of another one of its filesystem (FICLONE), as that is at one
// moment: the filesystem lets nobody write to `from` meanwhile. What a loop device on it had done
// by then is in it, and nothing of what it does later. File, content and name are on the disk when
// this answers.
//
// The file is made with the mode 0600. One that is there must be empty, or bear the mark that this
// call and CopyFile leave, of the same `from`: then it is what an earlier call has made, and is
// made anew. Whoever has such a file in use must not let this be called again.
// Errors, not applied: NotFound of either; AlreadyExists for another file, or what is no regular
// file; InvalidArgument for `from` itself; Unimplemented (EOPNOTSUPP) on a filesystem that cannot
// share blocks, or keeps no marks (trusted.*); FailedPrecondition (EXDEV) across filesystems;
// ENOSPC (ResourceExhausted). After them a file that was made is gone again, or this is maybe
// applied. An error of the syncs at the end is maybe applied. Source: ioctl_ficlone(2).
struct CloneFile {
  using Answer = FileExtent;
  static constexpr const char* kName = "CloneFile";
  static constexpr uint32_t kWireNumber = 57;
  static constexpr LaneKind kLane = LaneKind::kWalks;
  static constexpr bool kMustFinish = false;
  SafePath from;
  StorageObject expected = {};  // of `from`
  SafePath to;
  static void WireFields(auto& v, auto& m) {
    v(1, m.from);
    v.If(2, m.expected, m.expected.inode != 0);
    v(3, m.to);
  }
};

// Copies the content of a file, hole for hole, to another one, of whatever filesystem. Nobody may
// write to `from` meanwhile: its time of change (ctime), which the mark has, tells at the end, and
// a later call that goes on. All is on the disk when this answers.
//
// Without `from_offset` the file is made, or made anew, as CloneFile makes one. With it, it must be
// there with its mark, and be right up to there; all behind that is thrown away first.
// Progress: the offset up to which the copy is on the disk, from which a later call can go on.
// Errors, not applied: as CloneFile's of the files and their mark; OutOfRange for an offset behind
// the end of either file; FailedPrecondition if `to` has no mark of `from` and there is an offset,
// or if `from` was changed since the copy began.
// Once bytes were copied each is maybe applied, Cancelled too, and what was copied stays.
// Source: lseek(2) (SEEK_DATA, SEEK_HOLE).
struct CopyFile {
  using Answer = FileExtent;
  static constexpr const char* kName = "CopyFile";
  static constexpr uint32_t kWireNumber = 58;
  static constexpr LaneKind kLane = LaneKind::kWalks;
  static constexpr bool kMustFinish = false;
  SafePath from;
  StorageObject expected = {};  // of `from`
  SafePath to;
  int64_t from_offset = 0;
  int64_t bytes_per_second = 0;  // 0: no limit; holes are not counted
  static void WireFields(auto& v, auto& m) {
    v(1, m.from);
    v.If(2, m.expected, m.expected.inode != 0);
    v(3, m.to);
    v(4, m.from_offset);
    v(5, m.bytes_per_second);
  }
};

// Copies a block device, which has `bytes`, to a file; blocks of zeros become holes.
// The device is read past the kernel's cache. While this runs it is claimed (O_EXCL), so that
// nobody mounts it; but if it is mounted for readers alone already it is copied beside them.
// Whoever opens a device without a claim may write to it, and readers may make way for somebody who
// does: so with `writes`, which is what IdentifyDevice said when the copy's moment was, nothing may
// have been written from then on until the end. Beside readers it is needed.
//
// With `only_look` all is checked and nothing is copied; the answer is empty. Else the file is made
// and gone on with as by CopyFile, with its progress, rate (zeros count, too) and errors. Besides,
// not applied: InvalidArgument, unless `bytes` and `from_offset` are whole blocks of 4096 bytes, of
// which the device's last one may have less, and is filled up with zeros; OutOfRange, if the device
// has fewer; FailedPrecondition if it has more, for another device, if something was written,
// beside readers without `writes`, and, saying who it is, while it is mounted for writing or
// somebody has it for himself; without `only_look` it is Unavailable if nobody knows who, as it may
// be another copy. What was written, and who has it beside readers, is asked again at the end, and
// is maybe applied then. Source: open(2) (O_EXCL, O_DIRECT).
struct CopyDevice {
  using Answer = FileExtent;
  static constexpr const char* kName = "CopyDevice";
  static constexpr uint32_t kWireNumber = 71;
  static constexpr LaneKind kLane = LaneKind::kWalks;
  static constexpr bool kMustFinish = false;
  std::string device;
  DeviceIdentity expected;
  SafePath to;
  int64_t bytes = 0;
  int64_t from_offset = 0;
  int64_t bytes_per_second = 0;  // 0: no limit
  bool only_look = false;
  std::string writes = {};  // empty: it is not known
  static void WireFields(auto& v, auto& m) {
    v(1, m.device);
    v(2, m.expected);
    v(3, m.to);
    v(4, m.bytes);
    v(5, m.from_offset);
    v(6, m.bytes_per_second);
    v(7, m.only_look);
    v(8, m.writes);
  }
};

// Bytes of a file that lie together on the disk.
struct FileExtentRun {
  int64_t logical = 0;   // where they begin in the file
  int64_t physical = 0;  // where they begin on the filesystem's disk; 0 if that is not known
  int64_t bytes = 0;
  uint32_t flags = 0;  // FIEMAP_EXTENT_*, as the kernel gives them
  static void WireFields(auto& v, auto& m) {
    v(1, m.logical);
    v(2, m.physical);
    v(3, m.bytes);
    v(4, m.flags);
  }
  friend bool operator==(const FileExtentRun&, const FileExtentRun&) = default;
};
struct ExtentList {
  static constexpr uint32_t kWireNumber = 33;
  std::vector<FileExtentRun> runs;  // in the order of the file; what is in none of them is a hole
  bool done = false;                // there is none behind these
  static void WireFields(auto& v, auto& m) {
    v(1, m.runs);
    v(2, m.done);
  }
  friend bool operator==(const ExtentList&, const ExtentList&) = default;
};

// Answers where the bytes of a file lie, from the one on that has `from_offset`, which its first
// run may begin before. What nobody has written to the disk yet is written first. Two files that
// share blocks have runs at the same physical place, and so a difference of the lists is at least
// what differs; it may be more.
// Errors, not applied: NotFound; InvalidArgument for a negative offset, or a `most` of zero or
// above 65536; Unimplemented on a filesystem that does not tell.
// Source: Linux Documentation/filesystems/fiemap.rst.
struct ListExtents {
  using Answer = ExtentList;
  static constexpr const char* kName = "ListExtents";
  static constexpr uint32_t kWireNumber = 59;
  static constexpr LaneKind kLane = LaneKind::kWalks;
  static constexpr bool kMustFinish = false;
  SafePath path;
  StorageObject expected = {};
  int64_t from_offset = 0;
  uint32_t most = 4096;  // runs in an answer
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v.If(2, m.expected, m.expected.inode != 0);
    v(3, m.from_offset);
    v(4, m.most);
  }
};

}  // namespace volumed
