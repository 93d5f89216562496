// Keys of block devices: what tells that two of them, or a device and a file, are one storage. Part
// of IdentifyStorage (os/storage_requests.h), from sysfs and by ioctl(2).
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

namespace volumed {

struct StorageKeys {
  std::set<std::string> own;
  std::set<std::string> within;
};

// "ino:<device>:<inode>", of a file.
std::string InodeKey(dev_t device, ino_t inode);

// What the device is, and what it is made of: its disk, the devices below it, and the file of a
// loop device with its place. Threads: any. Blocks: as the filesystem of a loop device's file does.
// What sysfs does not say is left out.
StorageKeys KeysOfDevice(dev_t device);

// The files of the loop devices among the keys, as sysfs names them. Another file may have such a
// name by now.
std::set<std::string> LoopFilePaths(const StorageKeys& keys);

// The device itself, and all others that are the same storage, which no claim of the kernel's ties
// to it: of the same WWID, or loop devices on the same file; of a partition, those at its place.
std::vector<dev_t> TwinsOf(dev_t device);

// Whether somebody has the device, a part of it, or its whole for himself. A device that is gone,
// or that its driver refuses to open, is nobody's. Blocks: as the device does.
bool IsClaimed(dev_t device);

// "/dev/loop3"; "8:0" for one without a name.
std::string DeviceNodeName(dev_t device);

}  // namespace volumed
