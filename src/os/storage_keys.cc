#include "os/storage_keys.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "base/descriptor.h"
#include "base/strings.h"
#include "os/block_device.h"
#include "os/loop_file.h"
#include "os/sysfs.h"

namespace volumed {
namespace {

constexpr char kBlockDevices[] = "/sys/block";
// Deeper than any stack of devices; ends a walk that goes round because sysfs changes meanwhile.
constexpr int kDeepestStack = 16;

std::string NumberText(dev_t device) {
  return std::to_string(major(device)) + ":" + std::to_string(minor(device));
}
std::string SysfsOf(dev_t device) { return "/sys/dev/block/" + NumberText(device); }

// What the disk in this directory calls itself; empty where it says nothing.
std::string WwidIn(const std::string& directory) {
  for (const char* place : {"/wwid", "/device/wwid"}) {
    if (std::optional<std::string> wwid = ReadAttribute(directory + place)) return *std::move(wwid);
  }
  return "";
}

// The file of a loop device. The node is made by udev or the kernel's devtmpfs, and a loop device
// does not hang to be opened.
std::optional<LoopFile> FileOfLoop(dev_t loop) {
  if (!ReadAttribute(SysfsOf(loop) + "/loop/backing_file")) return std::nullopt;
  const Descriptor node(::open(DeviceNodeName(loop).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat is = {};
  loop_info64 info = {};
  if (!node.valid() || ::fstat(node.get(), &is) != 0 || is.st_rdev != loop ||
      ::ioctl(node.get(), LOOP_GET_STATUS64, &info) != 0) {
    return std::nullopt;
  }
  return LoopFile{info.lo_device, info.lo_inode};
}

bool ShareOne(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&b](const std::string& name) {
    return std::find(b.begin(), b.end(), name) != b.end();
  });
}

// The disk of a partition; nothing for a whole disk.
std::optional<dev_t> DiskOf(dev_t device) {
  const std::string directory = SysfsOf(device);
  if (::access((directory + "/partition").c_str(), F_OK) != 0) return std::nullopt;
  return BlockNumberIn(directory + "/..");
}

void AddDevice(dev_t device, std::set<std::string>& keys, StorageKeys& all, int depth);

// What lies below, in the same way as the device itself.
void AddBelow(dev_t device, StorageKeys& all, int depth) {
  if (depth > kDeepestStack) return;
  if (const auto disk = DiskOf(device)) AddDevice(*disk, all.within, all, depth + 1);
  for (const dev_t below : BlockNumbersBelow(SysfsOf(device) + "/slaves")) {
    AddDevice(below, all.within, all, depth + 1);
  }
}

// By what the disk in this directory calls itself; none where it says nothing.
std::vector<std::string> WwidNamesIn(const std::string& directory) {
  const std::string wwid = WwidIn(directory);
  return wwid.empty() ? std::vector<std::string>() : std::vector<std::string>{"wwid:" + wwid};
}
std::vector<std::string> WwidNamesOf(dev_t disk) { return WwidNamesIn(SysfsOf(disk)); }

// Names of the disk, whichever of its paths it is: what it calls itself, and the file of a loop
// device. A device on the same file is the same storage. To ask a loop device for its file may wait
// for the filesystem of that (os/loop_asker.h).
std::vector<std::string> NamesOfDisk(dev_t disk) {
  std::vector<std::string> names = WwidNamesOf(disk);
  if (const std::optional<LoopFile> file = FileOfLoop(disk)) {
    names.push_back(InodeKey(file->device, file->inode));
  }
  return names;
}

// In doubt it has none.
LoopBacking BackingShown(const std::string& node) {
  Result<LoopBacking> backing = BackingOf(std::string(StripPrefix(node, "/dev/").value_or(node)));
  return backing.ok() ? *std::move(backing) : LoopBacking();
}

// Whether the loop device of this name has the file. In doubt it has not, as with FileOfLoop.
bool IsOn(FileOfLoops& file, const std::string& name) {
  const std::string what = "ask /dev/" + name;
  const Result<bool> may_be = file.MayBeOn(name, what);
  if (!may_be.ok() || !*may_be) return false;
  const Descriptor node(::open(("/dev/" + name).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!node.valid()) return false;
  const auto status = file.StatusIfOn(node.get(), what);
  return status.ok() && status->has_value();
}

// The kernel's names of the disks that call themselves as this one does, and of the loop devices
// that have its file; this one may be among them.
std::vector<std::string> NamesOfSameStorage(dev_t disk) {
  std::vector<std::string> same;
  const std::vector<std::string> wwids = WwidNamesOf(disk);
  const auto has_wwid = [&wwids](const std::string& name) {
    return ShareOne(WwidNamesIn(std::string(kBlockDevices) + "/" + name), wwids);
  };
  if (!wwids.empty())
    std::ranges::copy_if(NamesIn(kBlockDevices), std::back_inserter(same), has_wwid);
  const std::optional<LoopFile> of_disk = FileOfLoop(disk);
  if (!of_disk) return same;
  FileOfLoops file(of_disk->device, of_disk->inode, BackingShown(DeviceNodeName(disk)).file);
  const auto is_on = [&file](const std::string& name) { return IsOn(file, name); };
  const Result<std::vector<std::string>> loops = NamesOfAttachedLoops();
  if (loops.ok()) std::ranges::copy_if(*loops, std::back_inserter(same), is_on);
  return same;
}

void AddDevice(dev_t device, std::set<std::string>& keys, StorageKeys& all, int depth) {
  keys.insert("dev:" + NumberText(device));
  const std::optional<dev_t> disk = DiskOf(device);
  std::string suffix;
  if (disk) suffix = ":" + ReadAttribute(SysfsOf(device) + "/start").value_or("?");
  for (const std::string& name : NamesOfDisk(disk.value_or(device))) keys.insert(name + suffix);
  AddBelow(device, all, depth);
}

}  // namespace

std::string InodeKey(dev_t device, ino_t inode) {
  return "ino:" + std::to_string(device) + ":" + std::to_string(inode);
}

std::string DeviceNodeName(dev_t device) {
  DeviceIdentity identity;
  identity.device_major = major(device);
  identity.device_minor = minor(device);
  const Result<std::string> name = KernelDeviceName(identity);
  return name.ok() ? "/dev/" + *name : NumberText(device);
}

StorageKeys KeysOfDevice(dev_t device) {
  StorageKeys keys;
  AddDevice(device, keys.own, keys, 0);
  return keys;
}

std::set<std::string> LoopFilePaths(const StorageKeys& keys) {
  std::set<std::string> paths;
  for (const std::set<std::string>* some : {&keys.own, &keys.within}) {
    for (const std::string& key : *some) {
      const auto number = StripPrefix(key, "dev:");
      if (!number) continue;
      const std::string directory = "/sys/dev/block/" + std::string(*number);
      if (auto path = ReadAttribute(directory + "/loop/backing_file"))
        paths.insert(*std::move(path));
    }
  }
  return paths;
}

std::vector<dev_t> TwinsOf(dev_t device) {
  const std::optional<dev_t> part_of = DiskOf(device);
  const dev_t disk = part_of.value_or(device);
  std::vector<dev_t> twins = {device};
  const std::optional<std::string> start = ReadAttribute(SysfsOf(device) + "/start");
  for (const std::string& name : NamesOfSameStorage(disk)) {
    const std::string directory = std::string(kBlockDevices) + "/" + name;
    const std::optional<dev_t> other = BlockNumberIn(directory);
    if (!other || *other == disk) continue;
    if (!part_of) {
      twins.push_back(*other);
      continue;
    }
    // Of a partition, the one at the same place; the whole disk would be claimed by any other.
    for (const std::string& part : NamesIn(directory)) {
      const std::string place = directory + "/" + part;
      if (ReadAttribute(place + "/partition") && ReadAttribute(place + "/start") == start) {
        if (const auto number = BlockNumberIn(place)) twins.push_back(*number);
      }
    }
  }
  return twins;
}

bool IsClaimed(dev_t device) {
  const Result<DeviceUsers> use =
      DoCheckDeviceUse(CheckDeviceUse{DeviceNodeName(device), major(device), minor(device)});
  return use.ok() && use->present && use->in_use;
}

}  // namespace volumed
