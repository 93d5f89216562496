#include "os/device_probe.h"

#include <blkid/blkid.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "os/blank_regions.h"
#include "os/block_device.h"
#include "os/device_duplicates.h"
#include "os/filesystem_parts.h"
#include "os/loop_holes.h"
#include "os/safe_open.h"
#include "os/work_meter.h"

namespace volumed {
namespace {

// ---- signatures ---------------------------------------------------------------------------------

struct ProbeDeleter {
  void operator()(blkid_probe probe) const { ::blkid_free_probe(probe); }
};
using BlkidProbe = std::unique_ptr<blkid_struct_probe, ProbeDeleter>;

std::string Value(const BlkidProbe& probe, const char* name) {
  const char* value = nullptr;
  if (::blkid_probe_lookup_value(probe.get(), name, &value, nullptr) != 0) return "";
  return value;
}

// Errors in the chain of functions are "no memory" only.
bool SetUp(const BlkidProbe& probe, int device) {
  return probe != nullptr && ::blkid_probe_set_device(probe.get(), device, 0, 0) == 0 &&
         ::blkid_probe_enable_superblocks(probe.get(), 1) == 0 &&
         // A superblock with a wrong checksum is data too.
         ::blkid_probe_set_superblocks_flags(
             probe.get(), BLKID_SUBLKS_LABEL | BLKID_SUBLKS_UUID | BLKID_SUBLKS_TYPE |
                              BLKID_SUBLKS_USAGE | BLKID_SUBLKS_BADCSUM) == 0 &&
         ::blkid_probe_enable_partitions(probe.get(), 1) == 0 &&
         ::blkid_probe_set_partitions_flags(probe.get(), BLKID_PARTS_FORCE_GPT) == 0;
}

// "ext4, xfs" of a device with several.
std::string AllSignatures(const BlkidProbe& probe) {
  ::blkid_reset_probe(probe.get());
  std::string found;
  while (::blkid_do_probe(probe.get()) == 0) {
    for (const char* name : {"TYPE", "PTTYPE"}) {
      const std::string value = Value(probe, name);
      if (!value.empty()) found += (found.empty() ? "" : ", ") + value;
    }
  }
  return found;
}

Status FindSignatures(int device, const std::string& path, DeviceProbe* answer) {
  const BlkidProbe probe(::blkid_new_probe());
  const std::string what = "look for signatures on " + path;
  errno = 0;
  if (!SetUp(probe, device)) {
    return Error::FromErrno(errno != 0 ? errno : ENOMEM, what, Outcome::kNotApplied);
  }
  // Source: libblkid (blkid_do_safeprobe): 0 found, 1 nothing, -2 ambivalent, -1 error.
  const int rc = ::blkid_do_safeprobe(probe.get());
  if (rc == -1) return Error::FromErrno(errno != 0 ? errno : EIO, what, Outcome::kNotApplied);
  if (rc == -2) {
    answer->fs_type = "ambivalent";
    answer->usage = "other";
    answer->why_not_blank = "several signatures: " + AllSignatures(probe);
    return OkStatus();
  }
  if (rc == 1) return OkStatus();
  answer->fs_type = Value(probe, "TYPE");
  answer->usage = Value(probe, "USAGE");
  answer->label = Value(probe, "LABEL");
  answer->identity.uuid = Value(probe, "UUID");
  answer->partition_table = Value(probe, "PTTYPE");
  answer->bad_checksum = !Value(probe, "SBBADCSUM").empty();
  if (!answer->fs_type.empty()) answer->why_not_blank = answer->fs_type + " signature";
  if (!answer->partition_table.empty()) {
    answer->why_not_blank += (answer->why_not_blank.empty() ? "" : " and ") +
                             answer->partition_table + " partition table";
  }
  return OkStatus();
}

// The UUID of a filesystem of that type; empty if there is none. The whole look reads more than a
// megabyte, of a device whose pages went when it was last closed; this reads a superblock.
std::string UuidOfType(int device, const std::string& fs_type) {
  std::vector<char*> types;
  std::array<std::string, 3> names = {fs_type, "", ""};
  if (fs_type.starts_with("ext")) names = {"ext2", "ext3", "ext4"};
  for (std::string& name : names) {
    if (!name.empty()) types.push_back(name.data());
  }
  types.push_back(nullptr);
  const BlkidProbe probe(::blkid_new_probe());
  const bool is_set_up =
      SetUp(probe, device) && ::blkid_probe_enable_partitions(probe.get(), 0) == 0 &&
      ::blkid_probe_filter_superblocks_type(probe.get(), BLKID_FLTR_ONLYIN, types.data()) == 0;
  if (fs_type.empty() || !is_set_up || ::blkid_do_safeprobe(probe.get()) != 0) return "";
  return Value(probe, "UUID");
}

// The time of the last mount and the number of mounts since the last check. Source: ext4(5), the
// superblock at 1024, s_mtime and s_mnt_count.
Result<bool> ExtWasMounted(int device, const std::string& path) {
  std::array<unsigned char, 1024> block;
  if (::pread(device, block.data(), block.size(), 1024) != static_cast<ssize_t>(block.size())) {
    return Error::FromErrno(errno != 0 ? errno : EIO, "read superblock of " + path,
                            Outcome::kNotApplied);
  }
  const bool has_time = std::any_of(block.begin() + 0x2C, block.begin() + 0x30,
                                    [](unsigned char byte) { return byte != 0; });
  return has_time || block[0x34] != 0 || block[0x35] != 0;
}

// ---- the mark of a mkfs that did not end
// ---------------------------------------------------------

// libblkid takes an unfinished xfs for an xfs, and does not know the temporary magic of btrfs.
// Source: Linux fs/xfs/libxfs/xfs_format.h (xfs_dsb.sb_inprogress); btrfs-progs
// kernel-shared/ctree.h (BTRFS_MAGIC_TEMPORARY, btrfs_super_block).
constexpr off_t kXfsInProgress = 126;
constexpr off_t kBtrfsSuperblock = 64 * 1024;
constexpr size_t kBtrfsUuid = 0x20;
constexpr size_t kBtrfsMagic = 0x40;
constexpr std::string_view kBtrfsUnfinished = "!BHRfS_M";

std::string UuidText(const unsigned char* bytes) {
  std::string text;
  char hex[3];
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    std::snprintf(hex, sizeof(hex), "%02x", bytes[i]);
    text += hex;
  }
  return text;
}

Status FindUnfinished(int device, const std::string& path, DeviceProbe* answer) {
  std::array<unsigned char, kBtrfsMagic + kBtrfsUnfinished.size()> head = {};
  const bool is_xfs = answer->fs_type == "xfs";
  if (!is_xfs && !(answer->fs_type.empty() && answer->partition_table.empty())) return OkStatus();
  const size_t wanted = is_xfs ? 1 : head.size();
  const ssize_t got =
      ::pread(device, head.data(), wanted, is_xfs ? kXfsInProgress : kBtrfsSuperblock);
  if (got < 0) return Error::FromErrno(errno, "read superblock of " + path, Outcome::kNotApplied);
  if (static_cast<size_t>(got) < wanted) return OkStatus();  // it ends before
  if (is_xfs) {
    answer->unfinished = head[0] != 0;
  } else if (std::memcmp(head.data() + kBtrfsMagic, kBtrfsUnfinished.data(),
                         kBtrfsUnfinished.size()) == 0) {
    answer->unfinished = true;
    answer->fs_type = "btrfs";
    answer->usage = "filesystem";
    answer->identity.uuid = UuidText(head.data() + kBtrfsUuid);
  }
  if (answer->unfinished) {
    answer->why_not_blank = answer->fs_type + " signature of a mkfs that did not end";
  }
  return OkStatus();
}

Status FindParts(int device, const std::string& path, DeviceProbe* answer) {
  if (answer->unfinished) return OkStatus();
  ASSIGN_OR_RETURN(answer->spans_devices, SpansDevices(device, answer->fs_type, path));
  return OkStatus();
}

// ---- blankness ----------------------------------------------------------------------------------

constexpr size_t kChunk = 1024 * 1024;
constexpr size_t kAlignment = 4096;

struct FreeDeleter {
  void operator()(unsigned char* memory) const { std::free(memory); }
};

// Reads past the page cache where it can: what counts is on the device.
class DeviceReader {
 public:
  DeviceReader(int device, const std::string& path)
      : device_(device),
        path_(path),
        direct_(::open(ProcFdPath(device).c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC)),
        buffer_(static_cast<unsigned char*>(std::aligned_alloc(kAlignment, kChunk))) {}

  // `length` is at most kChunk. All of it is read, or it is an error.
  Status Read(uint64_t offset, size_t length) {
    const std::string what = "read " + path_ + " at offset " + std::to_string(offset);
    if (buffer_ == nullptr) return Error::FromErrno(ENOMEM, what, Outcome::kNotApplied);
    size_t have = 0;
    while (have < length) {
      const ssize_t got = ReadSome(offset + have, length - have, have);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Error::FromErrno(errno, what, Outcome::kNotApplied);
      if (got == 0) {
        return Error::NotApplied(Code::kUnavailable, what + ": the device ends before its size");
      }
      have += static_cast<size_t>(got);
    }
    return OkStatus();
  }

  // The first byte of the last read that is not zero.
  std::optional<size_t> FindByte(size_t length) const {
    const unsigned char* bytes = buffer_.get();
    if (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, length - 1) == 0) return std::nullopt;
    return static_cast<size_t>(
        std::find_if(bytes, bytes + length, [](unsigned char byte) { return byte != 0; }) - bytes);
  }
  unsigned byte(size_t at) const { return buffer_.get()[at]; }

 private:
  ssize_t ReadSome(uint64_t offset, size_t length, size_t have) {
    unsigned char* to = buffer_.get() + have;
    if (direct_.valid()) {
      const ssize_t got = ::pread(direct_.get(), to, length, static_cast<off_t>(offset));
      // A device with odd sectors, or one read in part, is read through the cache.
      if (got >= 0 || errno != EINVAL) return got;
    }
    return ::pread(device_, to, length, static_cast<off_t>(offset));
  }

  const int device_;
  const std::string& path_;
  const Descriptor direct_;
  const std::unique_ptr<unsigned char, FreeDeleter> buffer_;
};

std::string FoundText(unsigned byte, uint64_t offset, std::string_view region) {
  char hex[8];
  std::snprintf(hex, sizeof(hex), "0x%02x", byte);
  return "byte " + std::string(hex) + " at offset " + std::to_string(offset) + " (" +
         std::string(region) + ")";
}

// Leaves why_not_blank empty where every region reads as zero.
Status ReadRegions(int device, const std::string& path, bool whole, const CallOptions& options,
                   DeviceProbe* answer) {
  DeviceReader reader(device, path);
  WorkMeter meter(options);
  const auto size = static_cast<uint64_t>(answer->identity.size_bytes);
  uint64_t read = 0;
  for (const BlankRegion& region : BlankRegions(size, whole)) {
    for (uint64_t at = 0; at < region.length; at += kChunk) {
      const size_t length = static_cast<size_t>(std::min<uint64_t>(kChunk, region.length - at));
      RETURN_IF_ERROR(reader.Read(region.offset + at, length));
      read += length;
      answer->bytes_read = static_cast<int64_t>(read);
      if (const std::optional<size_t> found = reader.FindByte(length)) {
        answer->why_not_blank =
            FoundText(reader.byte(*found), region.offset + at + *found, region.name);
        return OkStatus();
      }
      if (!meter.Step(static_cast<int64_t>(length))) {
        return WorkMeter::CancelledError(Outcome::kNotApplied);
      }
    }
  }
  answer->read_whole = read == size;
  return OkStatus();
}

// A device that is another by now proves nothing.
Status CheckStillSame(int device, const std::string& path, const DeviceIdentity& before) {
  ASSIGN_OR_RETURN(const DeviceIdentity after, ReadDeviceIdentity(device, path));
  const std::string difference = IdentityDifference(before, after);
  if (difference.empty()) return OkStatus();
  return Error::NotApplied(Code::kUnavailable,
                           "device " + path + " changed while it was read: " + difference);
}

}  // namespace

Result<DeviceProbe> ProbeOpenDevice(int device, const std::string& path, ProbeDepth depth,
                                    const CallOptions& options) {
  DeviceProbe answer;
  ASSIGN_OR_RETURN(answer.identity, ReadDeviceIdentity(device, path));
  ASSIGN_OR_RETURN(answer.read_only, IsReadOnlyDevice(device, path));
  if (depth.prove_blank && IsOneHole(device)) {
    answer.blank = answer.read_whole = true;
    RETURN_IF_ERROR(CheckStillSame(device, path, answer.identity));
    return answer;
  }
  RETURN_IF_ERROR(FindSignatures(device, path, &answer));
  RETURN_IF_ERROR(FindUnfinished(device, path, &answer));
  RETURN_IF_ERROR(FindParts(device, path, &answer));
  if (answer.fs_type == "ext2" || answer.fs_type == "ext3" || answer.fs_type == "ext4") {
    ASSIGN_OR_RETURN(answer.was_mounted, ExtWasMounted(device, path));
  }
  if (!depth.prove_blank || !answer.why_not_blank.empty()) {
    if (answer.why_not_blank.empty()) answer.why_not_blank = "not looked into";
    return answer;
  }
  RETURN_IF_ERROR(ReadRegions(device, path, depth.full_scan, options, &answer));
  RETURN_IF_ERROR(CheckStillSame(device, path, answer.identity));
  answer.blank = answer.why_not_blank.empty();
  return answer;
}

Result<DeviceProbe> ProbeImage(int file, const std::string& path) {
  DeviceProbe answer;
  RETURN_IF_ERROR(FindSignatures(file, path, &answer));
  RETURN_IF_ERROR(FindUnfinished(file, path, &answer));
  RETURN_IF_ERROR(FindParts(file, path, &answer));
  return answer;
}

Result<DeviceProbe> DoProbeDevice(const ProbeDevice& request, const CallOptions& options) {
  ASSIGN_OR_RETURN(const Descriptor device, OpenBlockDevice(request.device, O_RDONLY | O_NONBLOCK));
  ASSIGN_OR_RETURN(DeviceProbe answer, ProbeOpenDevice(device.get(), request.device,
                                                       {true, request.full_scan}, options));
  if (answer.fs_type == "btrfs") {
    ASSIGN_OR_RETURN(answer.duplicate, FindMountedBtrfs(answer.identity));
  } else if (answer.fs_type == "xfs" && request.find_duplicates) {
    ASSIGN_OR_RETURN(answer.duplicate, FindMountedXfs(answer.identity));
  }
  return answer;
}

Result<PinnedDevice> PinDevice(const std::string& path, const DeviceIdentity& expected,
                               const std::string& fs_type) {
  PinnedDevice pinned;
  ASSIGN_OR_RETURN(pinned.device, OpenBlockDevice(path, O_RDONLY | O_NONBLOCK));
  ASSIGN_OR_RETURN(DeviceIdentity now, ReadDeviceIdentity(pinned.device.get(), path));
  if (!expected.uuid.empty()) now.uuid = UuidOfType(pinned.device.get(), fs_type);
  if (now.uuid != expected.uuid) {
    ASSIGN_OR_RETURN(const DeviceProbe probe,
                     ProbeOpenDevice(pinned.device.get(), path, {false, false}, CallOptions{}));
    now = probe.identity;
  }
  if (const std::string difference = IdentityDifference(expected, now); !difference.empty()) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "device " + path + " is not the one that was probed: " + difference);
  }
  // The kernel's name is what people want to see in the mount table. Only root can put something
  // else there, and the descriptor keeps the number from being another device's.
  pinned.source = ProcFdPath(pinned.device.get());
  const Result<std::string> name = KernelDeviceName(now);
  struct stat info = {};
  if (name.ok() && ::lstat(("/dev/" + *name).c_str(), &info) == 0 && S_ISBLK(info.st_mode) &&
      info.st_rdev == makedev(now.device_major, now.device_minor)) {
    pinned.source = "/dev/" + *name;
  }
  return pinned;
}

}  // namespace volumed
