#include "os/btrfs_superblock.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/crc32c.h"
#include "os/uuid_bytes.h"

namespace volumed {
namespace {

constexpr off_t kFirstPlace = 64 << 10;
constexpr std::array<off_t, 2> kOtherPlaces = {64 << 20, off_t{256} << 30};

// Where it has what. Numbers have their lowest byte first.
constexpr size_t kChecksumSize = 4;  // of the kind that is known here
constexpr size_t kSummed = 32;       // from here on
constexpr size_t kFsid = 32;
constexpr size_t kPlace = 48;
constexpr size_t kFlags = 56;
constexpr size_t kMagic = 64;
constexpr std::string_view kMagicText = "_BHRfS_M";
constexpr size_t kLogRoot = 96;
constexpr size_t kDevices = 136;
constexpr size_t kIncompatible = 188;
constexpr size_t kChecksumKind = 196;
constexpr size_t kDeviceBytes = 209;
constexpr size_t kMetadataUuid = 571;
// BTRFS_SUPER_FLAG_SEEDING: others are made of it, which know it by its UUID.
constexpr uint64_t kIsSeed = uint64_t{1} << 32;
// BTRFS_SUPER_FLAG_CHANGING_FSID: every block is being written with another UUID; ..._V2: only the
// superblock is.
constexpr uint64_t kChangesBlocks = uint64_t{1} << 35;
constexpr uint64_t kChanges = uint64_t{1} << 36;
// BTRFS_FEATURE_INCOMPAT_METADATA_UUID: blocks bear the UUID with which the filesystem was made.
constexpr uint64_t kHasMetadataUuid = 1 << 10;

}  // namespace

Result<BtrfsSuperblock> BtrfsSuperblock::Read(int file, const std::string& what) {
  BtrfsSuperblock block(what);
  const ssize_t got = ::pread(file, block.bytes_.data(), block.bytes_.size(), kFirstPlace);
  if (got < 0) return Error::FromErrno(errno, what + ", read", Outcome::kNotApplied);
  const bool is_whole = static_cast<size_t>(got) == block.bytes_.size() &&
                        block.Part(kMagic, kMagicText.size()) == kMagicText;
  const bool is_right =
      is_whole && (!block.IsKnownKind() || block.Part(0, kChecksumSize) == block.Checksum());
  if (is_right) return block;
  return Error::NotApplied(Code::kDataLoss, what + ": its first superblock is damaged");
}

uint64_t BtrfsSuperblock::Number(size_t begin, size_t size) const {
  uint64_t value = 0;
  for (size_t i = size; i > 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes_.at(begin + i - 1));
  }
  return value;
}

void BtrfsSuperblock::Put(size_t begin, std::string_view part) {
  std::copy(part.begin(), part.end(), bytes_.begin() + static_cast<ptrdiff_t>(begin));
}

void BtrfsSuperblock::PutNumber(size_t begin, uint64_t value) {
  for (size_t i = 0; i < sizeof value; ++i)
    bytes_.at(begin + i) = static_cast<char>(value >> 8 * i);
}

std::string BtrfsSuperblock::Checksum() const {
  const uint32_t sum = ExtendCrc32c(0, Part(kSummed, bytes_.size() - kSummed));
  std::string text;
  for (size_t i = 0; i < kChecksumSize; ++i) text += static_cast<char>(sum >> (8 * i));
  return text;
}

bool BtrfsSuperblock::IsKnownKind() const { return Number(kChecksumKind, 2) == 0; }

bool BtrfsSuperblock::HasLog() const { return Number(kLogRoot, 8) != 0; }

Status BtrfsSuperblock::Rename(const std::string& new_uuid) {
  const std::optional<std::string> uuid = UuidBytes(new_uuid);
  if (!uuid) return Error::NotApplied(Code::kInvalidArgument, what_ + ": no such UUID");
  const uint64_t flags = Number(kFlags, 8);
  std::string why_not;
  if (Number(kDevices, 8) != 1) why_not = "it has several devices";
  if ((flags & kChangesBlocks) != 0) why_not = "all of its blocks are being changed by a program";
  if ((flags & kIsSeed) != 0) why_not = "it is a seed, of which other filesystems are made";
  if (!why_not.empty()) return Error::NotApplied(Code::kFailedPrecondition, what_ + ": " + why_not);
  const uint64_t features = Number(kIncompatible, 8);
  const bool has_metadata_uuid = (features & kHasMetadataUuid) != 0;
  const std::string made_with(Part(has_metadata_uuid ? kMetadataUuid : kFsid, kUuidSize));
  const bool is_first_one = *uuid == made_with;
  Put(kFsid, *uuid);
  Put(kMetadataUuid, is_first_one ? std::string(kUuidSize, '\0') : made_with);
  PutNumber(kIncompatible,
            is_first_one ? features & ~kHasMetadataUuid : features | kHasMetadataUuid);
  PutNumber(kFlags, flags & ~kChanges);
  return OkStatus();
}

Status BtrfsSuperblock::WriteAt(int file, off_t place) const {
  BtrfsSuperblock there = *this;
  there.PutNumber(kPlace, static_cast<uint64_t>(place));
  there.Put(0, there.Checksum());
  const ssize_t put = ::pwrite(file, there.bytes_.data(), there.bytes_.size(), place);
  if (put == static_cast<ssize_t>(there.bytes_.size()) && ::fsync(file) == 0) return OkStatus();
  return Error::FromErrno(put < 0 || put == static_cast<ssize_t>(there.bytes_.size()) ? errno : EIO,
                          what_ + ", write", Outcome::kMaybeApplied);
}

Status BtrfsSuperblock::Write(int file) const {
  const auto end = static_cast<off_t>(Number(kDeviceBytes, 8));
  const off_t size = ::lseek(file, 0, SEEK_END);
  if (size < 0) return Error::FromErrno(errno, what_, Outcome::kNotApplied);
  // Whoever made it may say so; what is written beyond the end would make the file that large.
  if (end < 0 || end > size) {
    return Error::NotApplied(Code::kDataLoss,
                             what_ + ": its superblock says that it is larger than what it is on");
  }
  for (const off_t place : kOtherPlaces) {
    if (place + static_cast<off_t>(bytes_.size()) > end) continue;
    RETURN_IF_ERROR(WriteAt(file, place));
  }
  return WriteAt(file, kFirstPlace);
}

}  // namespace volumed
