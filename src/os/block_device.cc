#include "os/block_device.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "os/device_keeper.h"
#include "os/safe_open.h"
#include "os/sysfs.h"

// Newer than Debian 12's headers of libc, not than its kernel. Source: linux/fs.h (5.15).
#ifndef BLKGETDISKSEQ
#define BLKGETDISKSEQ _IOR(0x12, 128, __u64)
#endif

namespace volumed {
namespace {

std::string SysfsDirectory(const DeviceIdentity& identity) {
  return "/sys/dev/block/" + std::to_string(identity.device_major) + ":" +
         std::to_string(identity.device_minor);
}

// A loop device is what its file is.
std::string LoopId(int device, const std::string& directory) {
  const std::optional<std::string> file = ReadAttribute(directory + "/loop/backing_file");
  loop_info64 info = {};
  if (!file || ::ioctl(device, LOOP_GET_STATUS64, &info) != 0) return "";
  return "loop:" + *file + ":" + std::to_string(info.lo_inode);
}

// Of a partition, that of its disk and what to add to the disk's names.
struct DiskDirectory {
  std::string path;
  std::string suffix;
};

DiskDirectory FindDisk(const DeviceIdentity& identity) {
  const std::string directory = SysfsDirectory(identity);
  if (const std::optional<std::string> number = ReadAttribute(directory + "/partition")) {
    return {directory + "/..", "-part" + *number};
  }
  return {directory, ""};
}

// Source: Linux Documentation/ABI/{stable,testing}/sysfs-block*.
constexpr std::array<const char*, 2> kWwidPlaces = {"/wwid", "/device/wwid"};        // NVMe; SCSI
constexpr std::array<const char*, 2> kSerialPlaces = {"/serial", "/device/serial"};  // virtio; NVMe

std::string FirstAttribute(const std::string& directory, const std::array<const char*, 2>& places) {
  for (const char* place : places) {
    if (std::optional<std::string> value = ReadAttribute(directory + place)) return *value;
  }
  return "";
}

std::string StableId(int device, const DiskDirectory& disk) {
  if (const std::string wwid = FirstAttribute(disk.path, kWwidPlaces); !wwid.empty()) {
    return "wwid:" + wwid + disk.suffix;
  }
  if (const std::string serial = FirstAttribute(disk.path, kSerialPlaces); !serial.empty()) {
    return "serial:" + serial + disk.suffix;
  }
  const std::array<std::pair<const char*, const char*>, 2> kMapped = {
      {{"/dm/uuid", "dm:"}, {"/md/uuid", "md:"}}};
  for (const auto& [place, kind] : kMapped) {
    if (const std::optional<std::string> value = ReadAttribute(disk.path + place)) {
      return kind + *value + disk.suffix;
    }
  }
  const std::string loop = LoopId(device, disk.path);
  return loop.empty() ? "" : loop + disk.suffix;
}

// The unit serial number of a SCSI device, which has no attribute of its own: page 0x80 of its
// vital product data, where a header of four bytes ends in the length. Source: SPC-4, 7.8.
std::string UnitSerial(const std::string& directory) {
  constexpr size_t kHeader = 4;
  const Descriptor file(::open((directory + "/device/vpd_pg80").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 256> page;
  const ssize_t size = file.valid() ? ::read(file.get(), page.data(), page.size()) : -1;
  if (size <= static_cast<ssize_t>(kHeader)) return "";
  const size_t length = std::min(static_cast<size_t>(static_cast<unsigned char>(page[3])),
                                 static_cast<size_t>(size) - kHeader);
  return std::string(TrimSpace(std::string_view(page.data() + kHeader, length)));
}

// What is made of the device and of each of its partitions. Source: Linux
// Documentation/ABI/testing/sysfs-block (holders).
std::vector<std::string> HoldersOf(const DeviceIdentity& identity) {
  const std::string directory = SysfsDirectory(identity);
  std::vector<std::string> holders = NamesIn(directory + "/holders");
  for (const std::string& name : NamesIn(directory)) {
    if (::access((directory + "/" + name + "/partition").c_str(), F_OK) != 0) continue;
    for (std::string& holder : NamesIn(directory + "/" + name + "/holders")) {
      holders.push_back(std::move(holder));
    }
  }
  std::sort(holders.begin(), holders.end());
  holders.erase(std::unique(holders.begin(), holders.end()), holders.end());
  return holders;
}

// "/dev/sdb", if that is the device; else `otherwise`.
std::string KernelNode(const DeviceIdentity& identity, const std::string& otherwise) {
  const Result<std::string> name = KernelDeviceName(identity);
  if (!name.ok()) return otherwise;
  std::string path = "/dev/" + *name;
  struct stat info = {};
  const bool is_same = ::lstat(path.c_str(), &info) == 0 && S_ISBLK(info.st_mode) &&
                       major(info.st_rdev) == identity.device_major &&
                       minor(info.st_rdev) == identity.device_minor;
  return is_same ? path : otherwise;
}

// An open file keeps the mount busy by which it was opened, and whoever has bound the node (a CSI
// driver) unmounts his bind while the device is held. So the device is opened by a copy of the
// mount that is attached nowhere, and goes with the file.
Result<Descriptor> OpenForLong(int node, const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_NONBLOCK;
  const std::string what = "hold device " + path;
  struct statx info = {};
  if (::statx(node, "", AT_EMPTY_PATH, STATX_TYPE, &info) != 0) {
    return Error::FromErrno(errno, what, Outcome::kNotApplied);
  }
  if ((info.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0) {
    return OpenBlockDeviceNode(node, path, kFlags);
  }
  constexpr unsigned kCopy = AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC;
  const Descriptor copy(::open_tree(node, "", kCopy));
  if (!copy.valid()) return Error::FromErrno(errno, what, Outcome::kNotApplied);
  return OpenBlockDeviceNode(copy.get(), path, kFlags);
}

}  // namespace

Result<Descriptor> OpenBlockDevice(const std::string& path, int flags) {
  const std::string what = "open device " + path;
  if (path.empty() || path[0] != '/') {
    return Error::NotApplied(Code::kInvalidArgument, what + ": not an absolute path");
  }
  // What it is is found out before it is opened for good: a FIFO would wait, a watchdog would
  // start.
  const Descriptor there(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!there.valid()) return Error::FromErrno(errno, what, Outcome::kNotApplied);
  return OpenBlockDeviceNode(there.get(), path, flags);
}

Result<Descriptor> OpenBlockDeviceNode(int node, const std::string& path, int flags) {
  const std::string what = "open device " + path;
  struct stat info = {};
  if (::fstat(node, &info) != 0) return Error::FromErrno(errno, what, Outcome::kNotApplied);
  if (!S_ISBLK(info.st_mode)) {
    return Error::NotApplied(Code::kFailedPrecondition, what + ": not a block device");
  }
  return DescriptorFrom(::open(ProcFdPath(node).c_str(), flags | O_CLOEXEC), what);
}

Result<DeviceIdentity> ReadDeviceIdentity(int device, const std::string& path) {
  const std::string what = "identify device " + path;
  struct stat info = {};
  uint64_t size = 0;
  if (::fstat(device, &info) != 0 || ::ioctl(device, BLKGETSIZE64, &size) != 0) {
    return Error::FromErrno(errno, what, Outcome::kNotApplied);
  }
  if (size == 0) {
    return Error::NotApplied(Code::kFailedPrecondition, what + ": it has no medium (size 0)");
  }
  DeviceIdentity identity;
  identity.size_bytes = static_cast<int64_t>(size);
  identity.device_major = major(info.st_rdev);
  identity.device_minor = minor(info.st_rdev);
  uint64_t sequence = 0;
  if (::ioctl(device, BLKGETDISKSEQ, &sequence) == 0) identity.disk_sequence = sequence;
  identity.stable_id = StableId(device, FindDisk(identity));
  return identity;
}

Result<DeviceFacts> ReadDeviceFacts(int device, const std::string& path) {
  DeviceFacts facts;
  ASSIGN_OR_RETURN(facts.identity, ReadDeviceIdentity(device, path));
  const DiskDirectory disk = FindDisk(facts.identity);
  facts.wwid = FirstAttribute(disk.path, kWwidPlaces);
  facts.serial = FirstAttribute(disk.path, kSerialPlaces);
  if (facts.serial.empty()) facts.serial = UnitSerial(disk.path);
  return facts;
}

Result<bool> IsReadOnlyDevice(int device, const std::string& path) {
  int read_only = 0;
  if (::ioctl(device, BLKROGET, &read_only) != 0) {
    return Error::FromErrno(errno, "look at device " + path, Outcome::kNotApplied);
  }
  return read_only != 0;
}

Result<std::string> KernelDeviceName(const DeviceIdentity& identity) {
  const std::string directory = SysfsDirectory(identity);
  std::array<char, PATH_MAX> target;
  const ssize_t size = ::readlink(directory.c_str(), target.data(), target.size());
  if (size < 0) return Error::FromErrno(errno, "read link " + directory, Outcome::kNotApplied);
  const std::string_view text(target.data(), static_cast<size_t>(size));
  return NodeNameOf(std::string(text.substr(text.rfind('/') + 1)));
}

Result<DeviceUsers> DoCheckDeviceUse(const CheckDeviceUse& request) {
  // Without a device, or with one that its driver has lost, there is nothing to be used.
  const auto is_gone = [](const Error& error) {
    const int why = error.sys_errno();
    return why == ENOENT || why == ENXIO || why == ENODEV || why == ENOMEDIUM;
  };
  const Result<Descriptor> there = OpenBlockDevice(request.device, O_PATH);
  if (!there.ok() && is_gone(there.error())) return DeviceUsers{};
  if (!there.ok()) return there.error();
  struct stat info = {};
  if (::fstat(there->get(), &info) != 0) {
    return Error::FromErrno(errno, "open device " + request.device, Outcome::kNotApplied);
  }
  DeviceIdentity identity;
  identity.device_major = major(info.st_rdev);
  identity.device_minor = minor(info.st_rdev);
  const bool any = request.device_major == 0 && request.device_minor == 0;
  if (!any && (identity.device_major != request.device_major ||
               identity.device_minor != request.device_minor)) {
    return DeviceUsers{};
  }
  DeviceUsers use;
  use.present = true;
  const Result<Descriptor> claim =
      OpenBlockDevice(ProcFdPath(there->get()), O_RDONLY | O_EXCL | O_NONBLOCK);
  // The driver is asked last: that it opens the device for nobody is said only to who has the
  // claim.
  if (claim.ok() || is_gone(claim.error())) return use;
  if (claim.error().sys_errno() != EBUSY) return claim.error();
  use.in_use = true;
  use.holders = HoldersOf(identity);
  return use;
}

Result<Descriptor> OpenExpectedDevice(int node, const std::string& path,
                                      const DeviceIdentity& expected) {
  ASSIGN_OR_RETURN(Descriptor device, OpenBlockDeviceNode(node, path, O_RDONLY | O_NONBLOCK));
  ASSIGN_OR_RETURN(const DeviceIdentity now, ReadDeviceIdentity(device.get(), path));
  const std::string difference = IdentityDifference(expected, now);
  if (difference.empty()) return device;
  return Error::NotApplied(Code::kFailedPrecondition,
                           "device " + path + " is not the one that was expected: " + difference);
}

Result<OpenedDevice> OpenDeviceOfAnySize(const std::string& path, DeviceIdentity expected,
                                         const std::string& what) {
  OpenedDevice opened;
  ASSIGN_OR_RETURN(opened.device, OpenBlockDevice(path, O_RDONLY | O_NONBLOCK).With(what));
  ASSIGN_OR_RETURN(opened.now, ReadDeviceIdentity(opened.device.get(), path));
  expected.uuid.clear();
  expected.size_bytes = opened.now.size_bytes;
  const std::string difference = IdentityDifference(expected, opened.now);
  if (difference.empty()) return opened;
  return Error::NotApplied(Code::kFailedPrecondition,
                           what + ": it is not the one that was expected: " + difference);
}

// Discards are no writes to the kernel, and change what is read. The count of a partition begins
// anew when its disk's table is read again, and so does its directory, which has another number.
// Source: Linux Documentation/block/stat.rst; sysfs-block (diskseq, queue/iostats).
Result<std::string> CountDeviceWrites(int device, const DeviceIdentity& identity,
                                      const std::string& path) {
  constexpr size_t kWrittenSectors = 6;
  constexpr size_t kDiscardedSectors = 13;
  if (::fsync(device) != 0) {
    return Error::FromErrno(errno, "write what is cached of " + path, Outcome::kNotApplied);
  }
  const std::string disk = FindDisk(identity).path;
  const auto counted = ReadAttribute(disk + "/queue/iostats");
  const auto figures = ReadAttribute(SysfsDirectory(identity) + "/stat");
  const auto boot = ReadAttribute("/proc/sys/kernel/random/boot_id");
  struct stat directory = {};
  const bool is_there = ::stat(SysfsDirectory(identity).c_str(), &directory) == 0;
  if (!boot || !figures || !is_there || counted != "1") return std::string();
  const std::vector<std::string> each = SplitNonEmpty(*figures, ' ');
  if (each.size() <= kWrittenSectors) return std::string();
  std::string text = *boot + " " + ReadAttribute(disk + "/diskseq").value_or("-") + " " +
                     std::to_string(directory.st_ino) + " " + each[kWrittenSectors];
  if (each.size() > kDiscardedSectors) text += " " + each[kDiscardedSectors];
  return text;
}

Result<IdentifiedDevice> DoIdentifyDevice(const IdentifyDevice& request) {
  const std::string shown = request.path.Display();
  ASSIGN_OR_RETURN(const Descriptor node,
                   OpenSafePath(request.path, O_PATH).With("open device " + shown));
  // Without O_NONBLOCK the opening of a drive may wait for its medium.
  ASSIGN_OR_RETURN(const Descriptor device,
                   OpenBlockDeviceNode(node.get(), shown, O_RDONLY | O_NONBLOCK));
  IdentifiedDevice answer;
  ASSIGN_OR_RETURN(answer.facts, ReadDeviceFacts(device.get(), shown));
  ASSIGN_OR_RETURN(answer.read_only, IsReadOnlyDevice(device.get(), shown));
  int block_bytes = 0;
  if (::ioctl(device.get(), BLKSSZGET, &block_bytes) != 0) {
    return Error::FromErrno(errno, "block size of " + shown, Outcome::kNotApplied);
  }
  answer.block_bytes = static_cast<uint32_t>(block_bytes);
  if (request.count_writes) {
    ASSIGN_OR_RETURN(answer.writes, CountDeviceWrites(device.get(), answer.facts.identity, shown));
  }
  std::array<char, PATH_MAX> path;
  const ssize_t size = ::readlink(ProcFdPath(node.get()).c_str(), path.data(), path.size());
  if (size < 0) return Error::FromErrno(errno, "resolve " + shown, Outcome::kNotApplied);
  answer.path.assign(path.data(), static_cast<size_t>(size));
  answer.node = KernelNode(answer.facts.identity, answer.path);
  if (request.pin) {
    // It is open already, so the number is the same device's still.
    ASSIGN_OR_RETURN(Descriptor held, OpenForLong(node.get(), shown));
    ASSIGN_OR_RETURN(Descriptor keeper, KeepDeviceOpen(std::move(held)));
    answer.pin = std::make_shared<const Descriptor>(std::move(keeper));
  }
  return answer;
}

}  // namespace volumed
