// Reading sysfs: small attributes, and the names in a directory. Nothing of it touches a device.
// Threads: any. Blocks: never.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace volumed {

// A small attribute without the blanks around it; nothing when there is none, or none but blanks.
std::optional<std::string> ReadAttribute(const std::string& path);

// Of what is in a directory, but for hidden ones; nothing where it cannot be read.
std::vector<std::string> NamesIn(const std::string& path);

// The number of the block device in this directory, or behind this link; nothing for what is none.
std::optional<dev_t> BlockNumberIn(const std::string& directory);
// Those of all block devices that the directory names: "slaves", a btrfs's "devices". Their names
// are no paths below /dev.
std::vector<dev_t> BlockNumbersBelow(const std::string& directory);

// A device's name as its node in /dev has it, and as sysfs does: "cciss/c0d0", "cciss!c0d0". Pure.
inline std::string NodeNameOf(std::string sysfs_name) {
  std::replace(sysfs_name.begin(), sysfs_name.end(), '!', '/');
  return sysfs_name;
}
inline std::string SysfsNameOf(std::string node_name) {
  std::replace(node_name.begin(), node_name.end(), '/', '!');
  return node_name;
}

}  // namespace volumed
