#include "os/filesystem_parts.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace volumed {
namespace {

struct Superblock {
  int device;
  const std::string& path;
  off_t begin;

  // The bytes of a number, in whichever order they are there: all of these are asked whether they
  // are 0, or 1.
  Result<std::array<unsigned char, 8>> Bytes(off_t at, size_t size) const {
    std::array<unsigned char, 8> bytes{};
    const ssize_t got = ::pread(device, bytes.data(), size, begin + at);
    const std::string what = "read superblock of " + path;
    if (got < 0) return Error::FromErrno(errno, what, Outcome::kNotApplied);
    if (got == static_cast<ssize_t>(size)) return bytes;
    return Error::NotApplied(Code::kDataLoss, what + ": it ends before that");
  }
  Result<bool> IsZero(off_t at, size_t size) const {
    ASSIGN_OR_RETURN(const auto bytes, Bytes(at, size));
    return std::all_of(bytes.begin(), bytes.end(), [](unsigned char byte) { return byte == 0; });
  }
};

// mkfs names no other device for a journal of its own, and what a superblock names e2fsck believes,
// whatever else it says.
Result<bool> HasJournalElsewhere(const Superblock& ext) {
  constexpr off_t kCompatible = 0x5C;
  constexpr unsigned char kHasJournal = 4;
  constexpr off_t kJournalUuid = 0xD0;
  constexpr off_t kJournalInode = 0xE0;
  constexpr off_t kJournalDevice = 0xE4;
  for (const off_t at : {kJournalUuid, kJournalUuid + 8}) {
    ASSIGN_OR_RETURN(const bool is_none, ext.IsZero(at, 8));
    if (!is_none) return true;
  }
  ASSIGN_OR_RETURN(const bool is_none, ext.IsZero(kJournalDevice, 4));
  if (!is_none) return true;
  ASSIGN_OR_RETURN(const auto features, ext.Bytes(kCompatible, 1));
  if ((features[0] & kHasJournal) == 0) return false;
  return ext.IsZero(kJournalInode, 4);
}

Result<bool> HasLogOrRealtimeElsewhere(const Superblock& xfs) {
  constexpr off_t kRealtimeBlocks = 16;
  constexpr off_t kLogStart = 48;
  ASSIGN_OR_RETURN(const bool has_no_realtime, xfs.IsZero(kRealtimeBlocks, 8));
  ASSIGN_OR_RETURN(const bool has_no_log, xfs.IsZero(kLogStart, 8));
  return !has_no_realtime || has_no_log;
}

Result<bool> HasSeveralDevices(const Superblock& btrfs) {
  constexpr off_t kDevices = 136;
  constexpr std::array<unsigned char, 8> kOne = {1};
  ASSIGN_OR_RETURN(const auto devices, btrfs.Bytes(kDevices, 8));
  return devices != kOne;
}

}  // namespace

Result<bool> SpansDevices(int device, const std::string& fs_type, const std::string& path) {
  if (fs_type == "ext2" || fs_type == "ext3" || fs_type == "ext4") {
    return HasJournalElsewhere({device, path, 1024});
  }
  if (fs_type == "xfs") return HasLogOrRealtimeElsewhere({device, path, 0});
  if (fs_type == "btrfs") return HasSeveralDevices({device, path, 64 << 10});
  return false;
}

}  // namespace volumed
