// The requests of the Kernel seam that are about block devices, and their answers. Part of
// os/kernel.h, which lists them in AnyRequest.
//
// A device is named by any path that leads to a block device ("/dev/sdb", "/dev/disk/by-id/..").
// Links are followed; what they lead to is opened once, and what must be the same device as before
// is compared by its identity, never by its path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace volumed {

struct Done;  // os/kernel.h

// What tells one device, and what is on it, from another.
struct DeviceIdentity {
  int64_t size_bytes = 0;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  // Rises with every device or medium that appears until the node reboots; a partition has its
  // disk's. 0: the kernel has none (before 5.15). Source: ioctl BLKGETDISKSEQ.
  uint64_t disk_sequence = 0;
  // What the device says of itself, the same after a reboot: "wwid:...", "serial:...", "dm:...",
  // "loop:<file>:<inode>". Empty where it says nothing.
  std::string stable_id;
  // Of the filesystem on it; empty where there is none.
  std::string uuid;
  friend bool operator==(const DeviceIdentity&, const DeviceIdentity&) = default;
};

// How `now` differs from what was `expected`, for an error; empty when it is the same device with
// the same filesystem. A UUID is compared only where one is expected. Pure.
std::string IdentityDifference(const DeviceIdentity& expected, const DeviceIdentity& now);

// Whether both are certainly one device, although it may have been detached and attached in
// between: same size, and the same stable identity or, in one boot and where there is none, the
// same disk sequence. Pure.
bool IsSameDisk(const DeviceIdentity& a, const DeviceIdentity& b, bool in_one_boot);

struct DeviceProbe {
  DeviceIdentity identity;
  // What libblkid calls the signature: "ext4", "xfs", "LVM2_member", "crypto_LUKS"; "ambivalent"
  // where several contradict each other. Empty: none.
  std::string fs_type;
  std::string usage;  // "filesystem", "raid", "crypto" or "other"
  std::string label;
  std::string partition_table;  // "gpt", "dos"; empty: none
  bool read_only = false;
  bool bad_checksum = false;  // the superblock's checksum is wrong
  // Some evidence in the superblock that it was mounted. Only ext2, ext3 and ext4 keep any.
  bool was_mounted = false;
  // Readable, without a signature, and zero in every region of os/blank_regions.h.
  bool blank = false;
  // Every byte of the device was read.
  bool read_whole = false;
  std::string why_not_blank;  // empty exactly when blank
  // By the proof of blankness; what libblkid reads to find signatures is not counted.
  int64_t bytes_read = 0;
  // Another device with the same filesystem UUID, mounted now; see ProbeDevice. Empty: none found.
  std::string duplicate;
};

// Looks at a device through a read-only descriptor. Blankness is looked into only where there is no
// signature. An I/O error is an error, never blank. Progress: bytes read.
// Errors: NotFound; FailedPrecondition for what is no block device or has no medium.
struct ProbeDevice {
  using Answer = DeviceProbe;
  static constexpr const char* kName = "ProbeDevice";
  std::string device;
  bool full_scan = false;  // proves blankness by reading everything
  // Reads the superblock of each mounted XFS for its UUID. For btrfs the kernel keeps a list, which
  // is always asked.
  bool find_duplicates = false;
};

// Makes a filesystem on a device that is proven blank once more, under exclusive claim, right
// before. The tool takes the claim over. Must finish: see CallOptions. Progress: bytes that the
// tool has read and written.
// Errors, all not applied before the tool starts, maybe applied from then on: NotFound naming the
// package of a missing tool; FailedPrecondition for another identity, for what is not blank, a
// mounted or claimed device (EBUSY) or a read-only one; Internal with the tool's last words.
struct FormatDevice {
  using Answer = Done;
  static constexpr const char* kName = "FormatDevice";
  std::string device;
  DeviceIdentity expected;
  std::string fs_type;               // "ext2", "ext3", "ext4", "xfs", "btrfs"
  std::string fs_uuid;               // chosen by the caller
  std::vector<std::string> options;  // for the tool, before its own
  // The caller has seen every byte to be zero: what reads as zero need not be written.
  bool reads_zero = false;
  // An earlier run with this fs_uuid was interrupted. Then what is there may also be without any
  // signature, or a filesystem with this UUID that was never mounted.
  bool repeat = false;
};

enum class CheckMode {
  kPreen,   // mends what is safe to mend
  kReport,  // writes nothing
};

enum class CheckResult {
  kClean,
  kFixed,
  kUncorrected,       // errors are left
  kOperationalError,  // the tool could not do its work
  kSkipped,           // nothing to do by preening: the filesystem recovers at mount
};
std::string_view CheckResultName(CheckResult result);

struct FilesystemCheck {
  CheckResult result = CheckResult::kSkipped;
  int exit_code = 0;
  std::string tool;    // with its arguments, without the device; empty when skipped
  std::string output;  // its end
};

// Runs the filesystem's own checker: e2fsck; xfs_repair -n; btrfs check. Must finish.
// Errors as FormatDevice's.
struct CheckFilesystem {
  using Answer = FilesystemCheck;
  static constexpr const char* kName = "CheckFilesystem";
  std::string device;
  DeviceIdentity expected;
  std::string fs_type;
  CheckMode mode = CheckMode::kPreen;
};

// Writes what the kernel keeps of the device back to it and waits until the device says that it has
// it; then nothing of it is cached any more. What lies in a filesystem that is mounted is not
// written by this: unmount first. Source: blockdev(8) --flushbufs; fsync(2).
// Errors, not applied: NotFound; FailedPrecondition for what is no block device; EIO where
// something could not be written.
struct FlushDevice {
  using Answer = Done;
  static constexpr const char* kName = "FlushDevice";
  std::string device;
};

// What a checker's exit code means. Pure. Source: fsck(8), e2fsck(8), xfs_repair(8),
// btrfs-check(8).
CheckResult ClassifyCheck(std::string_view fs_type, int exit_code);

}  // namespace volumed
