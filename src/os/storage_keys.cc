#include "os/storage_keys.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "base/descriptor.h"
#include "base/strings.h"
#include "os/block_device.h"
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

std::optional<dev_t> NumberIn(const std::string& directory) {
  const std::optional<std::string> text = ReadAttribute(directory + "/dev");
  if (!text) return std::nullopt;
  const size_t colon = text->find(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto high = ParseUint64(text->substr(0, colon));
  const auto low = ParseUint64(text->substr(colon + 1));
  if (!high || !low) return std::nullopt;
  return makedev(static_cast<unsigned>(*high), static_cast<unsigned>(*low));
}

// What the disk in this directory calls itself; empty where it says nothing.
std::string WwidIn(const std::string& directory) {
  for (const char* place : {"/wwid", "/device/wwid"}) {
    if (std::optional<std::string> wwid = ReadAttribute(directory + place)) return *std::move(wwid);
  }
  return "";
}

struct LoopFile {
  dev_t device = 0;
  ino_t inode = 0;
  std::string path;
};

// The file of a loop device. The node is made by udev or the kernel's devtmpfs, and a loop device
// does not hang to be opened.
std::optional<LoopFile> FileOfLoop(dev_t loop) {
  const std::optional<std::string> path = ReadAttribute(SysfsOf(loop) + "/loop/backing_file");
  if (!path) return std::nullopt;
  const Descriptor node(::open(DeviceNodeName(loop).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat is = {};
  loop_info64 info = {};
  if (!node.valid() || ::fstat(node.get(), &is) != 0 || is.st_rdev != loop ||
      ::ioctl(node.get(), LOOP_GET_STATUS64, &info) != 0) {
    return std::nullopt;
  }
  return LoopFile{info.lo_device, info.lo_inode, *path};
}

void AddDevice(dev_t device, std::set<std::string>& keys, StorageKeys& all, int depth);

// What lies below, in the same way as the device itself.
void AddBelow(dev_t device, StorageKeys& all, int depth) {
  if (depth > kDeepestStack) return;
  const std::string directory = SysfsOf(device);
  if (::access((directory + "/partition").c_str(), F_OK) == 0) {
    if (const auto disk = NumberIn(directory + "/..")) AddDevice(*disk, all.within, all, depth + 1);
  }
  for (const std::string& slave : NamesIn(directory + "/slaves")) {
    if (const auto below = NumberIn(directory + "/slaves/" + slave)) {
      AddDevice(*below, all.within, all, depth + 1);
    }
  }
}

void AddDevice(dev_t device, std::set<std::string>& keys, StorageKeys& all, int depth) {
  const std::string directory = SysfsOf(device);
  keys.insert("dev:" + NumberText(device));
  if (::access((directory + "/partition").c_str(), F_OK) == 0) {
    const std::string wwid = WwidIn(directory + "/..");
    const std::optional<std::string> start = ReadAttribute(directory + "/start");
    if (!wwid.empty() && start) keys.insert("wwid:" + wwid + ":" + *start);
  } else if (const std::string wwid = WwidIn(directory); !wwid.empty()) {
    keys.insert("wwid:" + wwid);
  }
  // A device on the same file is the same storage; the file's place is what it lies in.
  if (const std::optional<LoopFile> file = FileOfLoop(device)) {
    keys.insert(InodeKey(file->device, file->inode));
  }
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
  std::vector<dev_t> twins = {device};
  const std::string wwid = WwidIn(SysfsOf(device));
  const std::optional<LoopFile> file = FileOfLoop(device);
  if (wwid.empty() && !file) return twins;
  for (const std::string& name : NamesIn(kBlockDevices)) {
    const std::string directory = std::string(kBlockDevices) + "/" + name;
    const std::optional<dev_t> other = NumberIn(directory);
    if (!other || *other == device) continue;
    if (!wwid.empty() && WwidIn(directory) == wwid) {
      twins.push_back(*other);
    } else if (file && name.starts_with("loop")) {
      const std::optional<LoopFile> its = FileOfLoop(*other);
      if (its && its->device == file->device && its->inode == file->inode) twins.push_back(*other);
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
