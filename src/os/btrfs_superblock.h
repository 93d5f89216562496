// The superblock of a btrfs of one device that nobody has, and another UUID in it.
//
// `btrfstune -M` commits a transaction for the same: the blocks of a log that is still to be
// replayed are then of another generation than the superblock expects, and no kernel mounts the
// filesystem. It also marks the superblock first, and what was cut off after that no kernel mounts
// either. Here nothing but the superblock is written, and in it nothing but the UUID.
// Source: Linux include/uapi/linux/btrfs_tree.h (struct btrfs_super_block, METADATA_UUID), which
// Linux has known since 5.0; btrfs-progs 6.2, tune/main.c (set_metadata_uuid).
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace volumed {

// Threads: one file's at a time. Blocks: as the file's filesystem does.
class BtrfsSuperblock {
 public:
  // The first one. `what` is put before each error. Errors, not applied: DataLoss, if there is
  // none, or a damaged one; reading.
  static Result<BtrfsSuperblock> Read(int file, const std::string& what);

  // Whether its checksum is one that can be made here; of another kind it can only be read.
  bool IsKnownKind() const;
  // Whether something was synced that only a mount puts into the filesystem.
  bool HasLog() const;

  // Gives it the UUID, as text, and takes the mark away that a begun change has left. Errors, not
  // applied: InvalidArgument for no such UUID; FailedPrecondition for a filesystem of several
  // devices, for a seed, and for one whose blocks are being changed. REQUIRES: IsKnownKind().
  Status Rename(const std::string& new_uuid);
  // Writes and syncs the others of it first, so that to repeat a call that was cut off goes on with
  // it. Errors: DataLoss, not applied, if the filesystem is larger than the file or device;
  // writing, maybe applied.
  Status Write(int file) const;

 private:
  explicit BtrfsSuperblock(std::string what) : what_(std::move(what)) {}
  std::string_view Part(size_t begin, size_t size) const {
    return std::string_view(bytes_.data(), bytes_.size()).substr(begin, size);
  }
  uint64_t Number(size_t begin, size_t size) const;
  void Put(size_t begin, std::string_view part);
  void PutNumber(size_t begin, uint64_t value);
  std::string Checksum() const;
  Status WriteAt(int file, off_t place) const;

  std::string what_;
  std::array<char, 4096> bytes_{};
};

}  // namespace volumed
