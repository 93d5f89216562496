// Mount options as the kernel's two kinds: flags of one mount, and parameters of the superblock.
//
// All functions are pure; threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace volumed {

// One option that only the filesystem knows, for fsconfig(2).
struct SuperParameter {
  std::string key;
  std::string value;
  bool is_flag = true;  // a bare word
};

// Options as they are asked for, taken apart. What is in neither set of bits is to stay as it is.
struct MountOptions {
  uint64_t attributes = 0;        // MOUNT_ATTR_* to set
  uint64_t clear_attributes = 0;  // MOUNT_ATTR_* to clear; a bit is never in both
  bool sets_atime = false;        // one of the atime words was given: its whole field is replaced
  std::vector<SuperParameter> parameters;
};

// Takes words apart, each of which may be several with commas between; quotes have no meaning. Of
// one flag that is given twice the later word wins. Words that are for programs only ("_netdev",
// "x-...", "defaults") are dropped. Errors: InvalidArgument, not applied, for words that are
// another request ("bind", "remount"), and for a word without a name.
Result<MountOptions> ParseMountOptions(const std::vector<std::string>& options);

// What a mount helper gets behind -o: the words in their order, without those for other programs.
std::string OptionsForHelper(const std::vector<std::string>& options);

// The same flags for mount(2). Source: mount(2), mount_setattr(2).
unsigned long AttributesToMountFlags(uint64_t attributes);
// The MOUNT_ATTR_* that a statfs f_flags value shows.
uint64_t AttributesFromStatfsFlags(uint64_t flags);

}  // namespace volumed
