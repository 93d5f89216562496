// FakeDevice: a block device of the FakeKernel's world, as a value. What is on it stays over
// unmounts, new agents and reboots.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "os/device_requests.h"

namespace volumed {

struct FakeDevice {
  DeviceIdentity identity;  // with the UUID of what is on it
  bool read_only = false;
  // ---- what is on it; all empty: blank
  std::string fs_type;
  std::string usage;  // "filesystem" for what mkfs made
  std::string partition_table;
  std::string data;         // without signature: "byte 0x53 at offset 1080 (...)"
  std::string hidden_data;  // likewise, but only a full scan finds it
  bool was_mounted = false;
  // ---- how it fails
  bool unreadable = false;  // every read is EIO
  // What a check finds. kFixed: an error that preening mends; then clean.
  CheckResult damage = CheckResult::kClean;
  bool unmountable = false;  // EUCLEAN
  // The next format is cut off half way: there is data without a signature, and its caller hears
  // that the worker died.
  bool cut_next_format = false;
  // ---- what was done to it
  int formats = 0;  // begun ones, cut ones included
  int flushes = 0;
  uint64_t filesystem = 0;  // in the FakeVfs; 0: never mounted since it was made
};

struct FakeDevices {
  std::map<std::string, FakeDevice> by_path;
  uint64_t last_sequence = 0;
};

}  // namespace volumed
