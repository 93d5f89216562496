// The requests of the Kernel seam that are about block devices, and their answers. Part of
// os/kernel_requests.h, which lists them in AnyRequest.
//
// A device is named by any path that leads to a block device ("/dev/sdb", "/dev/disk/by-id/..").
// Links are followed; what they lead to is opened once, and what must be the same device as before
// is compared by its identity, never by its path.
//
// What is said of errors in os/kernel_requests.h holds here. A device that hangs holds up calls
// about this device alone: see LaneKind::kDevice.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/wire_enum.h"
#include "os/lane_kind.h"
#include "os/safe_path.h"

namespace volumed {

struct Changed;  // os/kernel_answers.h
struct Done;     // likewise

// What tells one device, and what is on it, from another. It is a value that outlives the device,
// and is compared by IdentityDifference().
struct DeviceIdentity {
  int64_t size_bytes = 0;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  // Rises with every device or medium that appears until the node reboots; a partition has its
  // disk's. 0: the kernel has none (before 5.15). Source: ioctl BLKGETDISKSEQ.
  uint64_t disk_sequence = 0;
  // What the device says of itself, the same after a reboot: "wwid:...", "serial:...", "dm:...",
  // "loop:<file>:<inode>". Empty where it says nothing. The bytes are the device's own, and a
  // file's name: they need not be UTF-8.
  std::string stable_id;
  // Of the filesystem on it; empty where there is none.
  std::string uuid;
  static void WireFields(auto& v, auto& m) {
    v(1, m.size_bytes);
    v(2, m.device_major);
    v(3, m.device_minor);
    v(4, m.disk_sequence);
    v(5, m.stable_id);
    v(6, m.uuid);
  }
  friend bool operator==(const DeviceIdentity&, const DeviceIdentity&) = default;
};

// Says each fact in which `now` differs from what was `expected`, as text for an error; empty if it
// is the same device with the same filesystem. A UUID is compared only if one is expected. Pure.
std::string IdentityDifference(const DeviceIdentity& expected, const DeviceIdentity& now);

// The fault domain of calls about one device (CallOptions::domain), "device:<path>", for a caller
// that knows no wider one. Pure.
std::string DeviceDomain(const std::string& device);

// What a device is, as itself and the kernel say it, without a look at what is on it. Like
// stable_id, wwid and serial are bytes of the device's own.
struct DeviceFacts {
  DeviceIdentity identity;  // without a UUID
  // Of the whole disk, also for a partition; empty where it says none.
  std::string wwid;    // "naa.5000c500a1b2c3d4", "eui.0025385b01234567"
  std::string serial;  // the unit's serial number
  static void WireFields(auto& v, auto& m) {
    v(1, m.identity);
    v(2, m.wwid);
    v(3, m.serial);
  }
  friend bool operator==(const DeviceFacts&, const DeviceFacts&) = default;
};

// What is on a device, as it was while it was read through one descriptor.
struct DeviceProbe {
  static constexpr uint32_t kWireNumber = 20;
  DeviceIdentity identity;
  // What libblkid calls the signature: "ext4", "xfs", "LVM2_member", "crypto_LUKS"; "ambivalent"
  // where several contradict each other. Empty: none.
  std::string fs_type;
  std::string usage;  // "filesystem", "raid", "crypto" or "other"
  std::string label;
  std::string partition_table;  // "gpt", "dos"; empty: none
  bool read_only = false;
  bool bad_checksum = false;  // the superblock's checksum is wrong
  // The superblock bears the mark that mkfs puts there first and takes away last: the in-progress
  // flag of xfs, the temporary magic of btrfs. mkfs was cut off, or it is still running. ext has no
  // such mark.
  bool unfinished = false;
  // Some evidence in the superblock that it was mounted. Only ext2, ext3 and ext4 keep any.
  bool was_mounted = false;
  // Readable, without a signature, and zero in every region of os/blank_regions.h.
  bool blank = false;
  // Every byte is zero: each was read, or the loop device's file is one hole (os/loop_holes.h).
  bool read_whole = false;
  std::string why_not_blank;  // empty exactly when blank
  // What the proof of blankness has read; what libblkid reads to find signatures is not counted.
  int64_t bytes_read = 0;
  // Another device with the same filesystem UUID, mounted now; see ProbeDevice. Empty: none found.
  std::string duplicate;
  // A part of the filesystem is on another device (os/filesystem_parts.h).
  bool spans_devices = false;
  static void WireFields(auto& v, auto& m) {
    v(1, m.identity);
    v(2, m.fs_type);
    v(3, m.usage);
    v(4, m.label);
    v(5, m.partition_table);
    v(6, m.read_only);
    v(7, m.bad_checksum);
    v(8, m.was_mounted);
    v(9, m.blank);
    v(10, m.read_whole);
    v(11, m.why_not_blank);
    v(12, m.bytes_read);
    v(13, m.duplicate);
    v(14, m.unfinished);
    v(15, m.spans_devices);
  }
};

// Looks at a device through a read-only descriptor. Blankness is looked into only if there is no
// signature. An I/O error is an error, never blank. Progress: bytes read.
// Errors, all not applied: NotFound; FailedPrecondition for what is no block device or has no
// medium; Unavailable if the device changed while it was read, or ends before its size; errno of
// reading.
struct ProbeDevice {
  using Answer = DeviceProbe;
  static constexpr const char* kName = "ProbeDevice";
  static constexpr uint32_t kWireNumber = 29;
  static constexpr LaneKind kLane = LaneKind::kDevice;
  static constexpr bool kMustFinish = false;
  std::string device;
  bool full_scan = false;  // proves blankness by reading everything
  // Reads the superblock of each mounted XFS for its UUID. For btrfs the kernel keeps a list, which
  // is always asked.
  bool find_duplicates = false;
  static void WireFields(auto& v, auto& m) {
    v(1, m.device);
    v(2, m.full_scan);
    v(3, m.find_duplicates);
  }
};

// Makes a filesystem on a device that is proven blank once more, under exclusive claim, right
// before. The tool takes the claim over: between the two nobody has it. Must finish: see
// CallOptions. Progress: bytes that the tool has read and written.
// Errors, all not applied before the tool starts, maybe applied from then on: InvalidArgument for
// another type, or without a UUID; NotFound naming the package of a missing tool;
// FailedPrecondition for another identity, for what is not blank, a mounted or claimed device
// (EBUSY) or a read-only one; Internal with the tool's last words, also if the device does not have
// this filesystem afterwards; Unavailable if a signal ended the tool.
struct FormatDevice {
  using Answer = Done;
  static constexpr const char* kName = "FormatDevice";
  static constexpr uint32_t kWireNumber = 30;
  static constexpr LaneKind kLane = LaneKind::kDevice;
  static constexpr bool kMustFinish = true;
  std::string device;
  DeviceIdentity expected;
  std::string fs_type;               // "ext2", "ext3", "ext4", "xfs", "btrfs"
  std::string fs_uuid;               // chosen by the caller
  std::vector<std::string> options;  // for the tool, before its own
  // The caller has seen every byte to be zero: what reads as zero need not be written.
  bool reads_zero = false;
  // An earlier run with this fs_uuid was interrupted. Then what is there may also be a filesystem
  // of this type with this UUID that is marked as unfinished (DeviceProbe::unfinished).
  bool repeat = false;
  static void WireFields(auto& v, auto& m) {
    v(1, m.device);
    v(2, m.expected);
    v(3, m.fs_type);
    v(4, m.fs_uuid);
    v(5, m.options);
    v(6, m.reads_zero);
    v(7, m.repeat);
  }
};

// What a check may do to the filesystem.
enum class CheckMode {
  kPreen,   // mends what is safe to mend
  kReport,  // writes nothing
};
// What is not known writes nothing.
constexpr WireEnum<CheckMode> WireEnumOf(CheckMode) {
  return {.last = CheckMode::kReport, .otherwise = CheckMode::kReport};
}

// How a check ended. None of these is an error of the call: what follows from it, its caller
// decides.
enum class CheckResult {
  kClean,
  kFixed,
  kUncorrected,       // errors are left
  kOperationalError,  // the tool could not do its work
  kSkipped,           // nothing to do by preening: the filesystem recovers at mount
};
// "clean", "fixed" and so on, for messages.
std::string_view CheckResultName(CheckResult result);
constexpr WireEnum<CheckResult> WireEnumOf(CheckResult) {
  return {.last = CheckResult::kSkipped, .otherwise = CheckResult::kOperationalError};
}

// The answer of a check. `output` is the end of what the tool printed, made printable for a
// terminal; it need not be UTF-8.
struct FilesystemCheck {
  static constexpr uint32_t kWireNumber = 21;
  CheckResult result = CheckResult::kSkipped;
  int exit_code = 0;
  std::string tool;    // with its arguments, without the device; empty when skipped
  std::string output;  // its end
  static void WireFields(auto& v, auto& m) {
    v(1, m.result);
    v(2, m.exit_code);
    v(3, m.tool);
    v(4, m.output);
  }
};

// Runs the filesystem's own checker: e2fsck -a to preen, e2fsck -f -n to report; xfs_repair -n or
// btrfs check --readonly to report, while to preen these two does nothing (kSkipped). Must finish
// if it preens; a report writes nothing and may be killed.
// Errors, not applied: InvalidArgument for another type; FailedPrecondition for another device than
// `expected`, and for one that is mounted or claimed (EBUSY); NotFound naming the package of a
// missing tool. Unavailable, maybe applied, if a signal ended the tool.
struct CheckFilesystem {
  using Answer = FilesystemCheck;
  static constexpr const char* kName = "CheckFilesystem";
  static constexpr uint32_t kWireNumber = 31;
  static constexpr LaneKind kLane = LaneKind::kDevice;
  std::string device;
  DeviceIdentity expected;
  std::string fs_type;
  CheckMode mode = CheckMode::kPreen;
  bool MustFinish() const { return mode == CheckMode::kPreen; }
  static void WireFields(auto& v, auto& m) {
    v(1, m.device);
    v(2, m.expected);
    v(3, m.fs_type);
    v(4, m.mode);
  }
};

// Who has a device, as it was at one moment: anybody may take it right after.
struct DeviceUsers {
  static constexpr uint32_t kWireNumber = 22;
  // There is a block device at the path, with the number that was asked for.
  bool present = false;
  // Somebody has it for himself: a mount in any namespace, swap, a device made of it, a program.
  bool in_use = false;
  // Devices that are made of it or of its partitions, by the kernel's names, sorted: "dm-0".
  std::vector<std::string> holders;
  static void WireFields(auto& v, auto& m) {
    v(1, m.present);
    v(2, m.in_use);
    v(3, m.holders);
  }
};

// Finds out whether a device is let go of: it is opened for itself (O_EXCL), and closed at once.
// That is the only proof there is that nothing uses it any more; a mount table knows of one
// namespace only. An open that the driver refuses (ENXIO: a SCSI disk that is offline) proves it
// too: the claim comes first. A device that is missing, or has another number than the one asked
// for, is answered as not present.
// Errors, not applied: FailedPrecondition for what is no block device; errno of open(2).
// Source: kubernetes pkg/volume/util/hostutil/hostutil_linux.go@v1.36.2 (DeviceOpened); Linux
// block/bdev.c (bd_prepare_to_claim).
struct CheckDeviceUse {
  using Answer = DeviceUsers;
  static constexpr const char* kName = "CheckDeviceUse";
  static constexpr uint32_t kWireNumber = 32;
  static constexpr LaneKind kLane = LaneKind::kDevice;
  static constexpr bool kMustFinish = false;
  std::string device;
  // The number that the device must have to be the one that is meant. 0:0: any.
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  static void WireFields(auto& v, auto& m) {
    v(1, m.device);
    v(2, m.device_major);
    v(3, m.device_minor);
  }
};

// The socket of a process that keeps a block device open (os/device_keeper.h). As long as somebody
// has it, the kernel gives the device's number to no other device, and a loop device keeps its
// file. It is open for reading alone and claims nothing: whoever writes to the device, formats it
// or takes it for himself may do so.
using DevicePin = std::shared_ptr<const Descriptor>;

// Which device a path led to when it was opened.
struct IdentifiedDevice {
  static constexpr uint32_t kWireNumber = 24;
  DeviceFacts facts;
  std::string path;  // of its node, with every link followed: "/dev/sdb"
  bool read_only = false;
  DevicePin pin;  // null unless it was asked for
  // Where the kernel has put the device's node: a path that stays when somebody's bind of the node
  // goes, which `path` may be. It is `path` if there is no such node.
  std::string node = {};
  uint32_t block_bytes = 0;  // of its logical blocks: nothing smaller is read or written
  // How much was written to it, with what ends the counting (a boot, another device of the number):
  // as long as this text is the same nothing was. Empty unless it was asked for, and if the kernel
  // does not count.
  std::string writes = {};
  static void WireFields(auto& v, auto& m) {
    v(1, m.facts);
    v(2, m.path);
    v(3, m.read_only);
    v.NotSent(m.pin);  // a worker sends it beside the message
    v(4, m.node);
    v(5, m.block_bytes);
    v(6, m.writes);
  }
};

// Opens a block device for reading and says which one it is. The facts are read through the
// descriptor, so that they are of one device whatever happens to its path; nothing is read from its
// medium. With `pin`, an open descriptor is answered too; a worker passes it to the agent, whose
// own it is from then on. It keeps no bind of the node from being unmounted. With `count_writes`
// what is in the kernel's cache of the device is written before its writes are counted.
// Errors, all not applied: NotFound; FailedPrecondition for what is no block device or has no
// medium; with `count_writes` also errno of fsync(2).
// Source: Linux Documentation/block/stat.rst.
struct IdentifyDevice {
  using Answer = IdentifiedDevice;
  static constexpr const char* kName = "IdentifyDevice";
  static constexpr uint32_t kWireNumber = 36;
  static constexpr LaneKind kLane = LaneKind::kDevice;
  static constexpr bool kMustFinish = false;
  SafePath path;
  bool pin = false;
  bool count_writes = false;
  static void WireFields(auto& v, auto& m) {
    v(1, m.path);
    v(2, m.pin);
    v(3, m.count_writes);
  }
};

// Detaches each loop device that was attached to this path, which need not be there any more, and
// each that has the regular file that is there, under another path. What a link or a device node
// leads to is never looked at. It answers whether there was one. One that is open goes when closed.
// Errors: NotFound if a loop device that is shown with the path has no node in /dev; errno of the
// look at the path, or of the ioctls. They are maybe applied once another one was detached.
struct DetachLoops {
  using Answer = Changed;
  static constexpr const char* kName = "DetachLoops";
  static constexpr uint32_t kWireNumber = 37;
  static constexpr LaneKind kLane = LaneKind::kDevice;
  static constexpr bool kMustFinish = false;
  SafePath path;
  static void WireFields(auto& v, auto& m) { v(1, m.path); }
};

// How large a filesystem is beside its device, before and after it was grown; both are the same if
// nothing was done.
struct FilesystemGrowth {
  static constexpr uint32_t kWireNumber = 25;
  std::string fs_type;
  int64_t device_bytes = 0;
  // By the filesystem's own geometry, which counts what it needs for itself; statfs(2) does not.
  int64_t before_bytes = 0;
  int64_t after_bytes = 0;
  // What is left of the device is less than the filesystem could take: less than a block group with
  // its tables (ext), an allocation group (xfs), a sector (btrfs).
  bool fills_device = false;
  // In the superblock: the kernel found errors, and nobody has mended them. Only ext keeps it.
  bool has_errors = false;
  std::string tool;  // that grew it: "resize2fs"; empty: the kernel, or nobody
  static void WireFields(auto& v, auto& m) {
    v(1, m.fs_type);
    v(2, m.device_bytes);
    v(3, m.before_bytes);
    v(4, m.after_bytes);
    v(5, m.fills_device);
    v(6, m.has_errors);
    v(7, m.tool);
  }
  friend bool operator==(const FilesystemGrowth&, const FilesystemGrowth&) = default;
};

// Makes the filesystem as large as its device. One that fills it is left alone, whoever may grow
// it; that is success. Mounted: by the kernel (ext3, ext4, xfs, btrfs). Not mounted: ext3 and ext4
// by e2fsck -f and resize2fs; a read-only device is refused. Must finish, unless `only_measure`.
// Progress: bytes that the tool has read and written.
// Errors: InvalidArgument, not applied, for a type that cannot be grown, or not unless it is
// mounted; FailedPrecondition, not applied, for another device or filesystem, a read-only one, one
// with errors, and with EPERM where the agent lacks CAP_SYS_RESOURCE (ext, mounted); EBUSY, not
// applied, for a device that is mounted after all; NotFound naming the package of a missing tool;
// from the moment at which its size may be changed on: maybe applied. What e2fsck has mended before
// that counts for nothing. That it succeeded does not say that the filesystem fills its device:
// fills_device does.
struct GrowFilesystem {
  using Answer = FilesystemGrowth;
  static constexpr const char* kName = "GrowFilesystem";
  static constexpr uint32_t kWireNumber = 39;
  static constexpr LaneKind kLane = LaneKind::kDevice;
  std::string device;
  DeviceIdentity expected;
  std::string fs_type;
  std::optional<SafePath> mounted_at = std::nullopt;
  bool only_measure =
      false;  // changes nothing; an xfs or btrfs that is not mounted may be measured
  bool MustFinish() const { return !only_measure; }
  static void WireFields(auto& v, auto& m) {
    v(1, m.device);
    v(2, m.expected);
    v(3, m.fs_type);
    v(4, m.mounted_at);
    v(5, m.only_measure);
  }
};

// Writes what the kernel keeps of the device back to it and waits until the device says that it has
// it; then nothing of it is cached any more, and whoever closes it last has nothing to wait for.
// What lies in a filesystem that is mounted is not written by this: unmount first. Source:
// blockdev(8) --flushbufs; fsync(2).
// Errors, not applied: NotFound; FailedPrecondition for what is no block device, or another one
// than `expected`; EIO where something could not be written. A failure says not applied although
// some of it may be written: to write it once more does no harm.
struct FlushDevice {
  using Answer = Done;
  static constexpr const char* kName = "FlushDevice";
  static constexpr uint32_t kWireNumber = 40;
  static constexpr LaneKind kLane = LaneKind::kDevice;
  static constexpr bool kMustFinish = false;
  std::string device;
  std::optional<DeviceIdentity> expected = std::nullopt;
  static void WireFields(auto& v, auto& m) {
    v(1, m.device);
    v(2, m.expected);
  }
};

// Says what a checker's exit code means, for the type that it checked. Pure. Source: fsck(8),
// e2fsck(8), xfs_repair(8), btrfs-check(8).
CheckResult ClassifyCheck(std::string_view fs_type, int exit_code);

}  // namespace volumed
