// FakeDevice: a block device of the FakeKernel's world, as a value. What is on it stays over
// unmounts, new agents and reboots.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fakes/fake_vfs.h"
#include "os/image_requests.h"

namespace volumed {

// The file of a loop device.
struct FakeLoopFile {
  uint64_t inode = 0;
  FakeLocation at{};  // the name by which it was attached
  std::string path;   // of that, then
  uint32_t block_size = 0;
  bool direct_io = false;
  bool goes = false;  // it was detached in use, and goes when it is free
  int64_t read_ahead_kib = 128;
};

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
  bool torn = false;        // it was copied while somebody could write to it
  bool dirty_log = false;   // of an xfs: it was copied while it was mounted
  bool unfinished = false;  // the filesystem bears the mark of a mkfs that did not end
  bool spans_devices = false;
  // ---- how it fails, and who has it
  bool unreadable = false;  // every read is EIO
  bool offline = false;     // every open is ENXIO, as of an offline SCSI disk
  // What a check finds. kFixed: an error that preening mends; then clean.
  CheckResult damage = CheckResult::kClean;
  bool unmountable = false;  // EUCLEAN
  // Somebody has it whom the mount table does not know: a mount in another namespace, a program.
  bool claimed = false;
  std::vector<std::string> holders;  // what is made of it: "dm-0"
  // The next format is cut off half way: an xfs or btrfs is marked as unfinished, of an ext there
  // is data without a signature. Its caller hears that the worker died.
  bool cut_next_format = false;
  // The next format comes to its end, as far as can be seen, but a check finds this. Its caller
  // hears that the worker died.
  std::optional<CheckResult> unheard_next_format = std::nullopt;
  // The next growth of its filesystem is cut off: it is made, and its caller hears that the worker
  // died.
  bool cut_next_growth = false;
  int grow_error = 0;  // every growth of the mounted filesystem fails with it, and changes nothing
  // Keys (os/storage_requests.h) that it has besides its number: its WWID, the file of a loop
  // device; and those of what it is a part of.
  std::vector<std::string> storage_own;
  std::vector<std::string> storage_within;
  std::string storage_file{};  // of a loop device
  int writes = 0;
  bool does_not_count = false;  // the kernel, what is written to it
  int64_t read_ahead_kib = 128;
  // ---- what was done to it
  int formats = 0;  // begun ones, cut ones included
  int growths = 0;  // likewise
  int flushes = 0;
  // Of the filesystem; 0: as large as the device.
  int64_t fs_bytes = 0;
  uint64_t filesystem = 0;  // in the FakeVfs; 0: never mounted since it was made
  uint64_t inode = 0;       // of its node, wherever that is bound
  std::vector<std::weak_ptr<const Descriptor>> pins;  // that were answered; see OpenPins
  // ---- of a loop device that AttachLoop has made: it stays, without a file, when that is detached
  bool is_loop = false;
  std::optional<FakeLoopFile> loop = std::nullopt;

  // Descriptors of it that somebody keeps open.
  int64_t OpenPins() const {
    return std::count_if(pins.begin(), pins.end(), [](const auto& pin) { return !pin.expired(); });
  }
};

// A lock that somebody has as long as the descriptor lives that he was given.
struct FakeFileLock {
  std::weak_ptr<const Descriptor> holder;
  uint64_t mount = 0;  // by which the file was opened
};

// IdentifiedDevice::writes.
inline std::string CountedWrites(const FakeDevice& device) {
  return device.does_not_count ? "" : "boot 1 " + std::to_string(device.writes);
}

struct FakeDevices {
  std::map<std::string, FakeDevice> by_path;
  // What is on a file, by its inode, while it has no loop device: then that has it.
  std::map<uint64_t, FakeDevice> images;
  size_t most_loops = 64;
  std::map<uint64_t, FakeFileLock> locks;  // by the file's inode
  uint64_t last_sequence = 0;
  int thawer_wins = 0;  // so many cuts that come are thawed by their watch
  // The files of loop devices that somebody else attached. The mount of such a file is busy.
  std::set<std::string> loop_files;
  // What NFS servers export ("nas:/srv"), by the filesystem that it is.
  std::map<std::string, uint64_t> exports;
};

}  // namespace volumed
