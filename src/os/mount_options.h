// Mount options as the kernel's two kinds: flags of one mount, and parameters of the superblock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace volumed {

struct SuperParameter {
  std::string key;
  std::string value;
  bool is_flag = true;  // a bare word
};

struct MountOptions {
  uint64_t attributes = 0;        // MOUNT_ATTR_* to set
  uint64_t clear_attributes = 0;  // MOUNT_ATTR_* to clear; a bit is never in both
  bool sets_atime = false;        // one of the atime words was given: its whole field is replaced
  std::vector<SuperParameter> parameters;
};

// Later words win. Words that are for programs only ("_netdev", "x-...", "defaults") are dropped.
// Errors: InvalidArgument, not applied, for words that are another request ("bind", "remount").
Result<MountOptions> ParseMountOptions(const std::vector<std::string>& options);

// What a mount helper gets behind -o: the words in their order, without those for other programs.
std::string OptionsForHelper(const std::vector<std::string>& options);

// The same flags for mount(2). Source: mount(2), mount_setattr(2).
unsigned long AttributesToMountFlags(uint64_t attributes);
// The MOUNT_ATTR_* that a statfs f_flags value shows.
uint64_t AttributesFromStatfsFlags(uint64_t flags);

}  // namespace volumed
