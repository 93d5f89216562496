#include "os/xfs_uuid.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/crc32c.h"
#include "os/uuid_bytes.h"

namespace volumed {
namespace {

// Where a superblock has what, and how many bytes. Numbers have their highest byte first.
constexpr std::string_view kXfsSuperMagic = "XFSB";
constexpr size_t kXfsBlockSize = 4;
constexpr size_t kXfsUuid = 32;
constexpr size_t kXfsLogStart = 48;
constexpr size_t kXfsGroupBlocks = 84;
constexpr size_t kXfsGroups = 88;
constexpr size_t kXfsLogBlocks = 96;
constexpr size_t kXfsVersion = 100;
constexpr size_t kXfsSectorSize = 102;
constexpr size_t kXfsGroupBlocksLog = 124;
constexpr size_t kXfsIncompatible = 216;
constexpr size_t kXfsChecksum = 224;
constexpr size_t kXfsMetaUuid = 248;
// XFS_SB_FEAT_INCOMPAT_META_UUID: blocks bear the UUID with which the filesystem was made.
constexpr uint64_t kXfsHasMetaUuid = 1 << 2;

// The log is made of these, whatever the size of a sector.
constexpr size_t kLogBlock = 512;
constexpr std::string_view kRecordMagic = "\xFE\xED\xBA\xBE";
constexpr size_t kRecordCycle = 4;
constexpr size_t kRecordLength = 12;
constexpr size_t kRecordPlace = 16;  // its cycle and its block
constexpr size_t kRecordTail = 24;
constexpr size_t kRecordChecksum = 32;
constexpr size_t kRecordBefore = 36;
constexpr size_t kRecordOperations = 40;
constexpr size_t kRecordWords = 44;
constexpr size_t kRecordFormat = 300;
constexpr size_t kRecordUuid = 304;
constexpr size_t kRecordSize = 320;  // the most that such a record may have
constexpr uint32_t kBytesOfAHeader = 32 << 10;
// In the first block of its body, the only operation's flags, and that it is an unmount.
constexpr size_t kOperationFlags = 9;
constexpr char kUnmountFlag = 0x20;

// The most that is read or written at a time.
constexpr size_t kLogChunk = 1 << 20;

uint64_t BigAt(std::string_view bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (const char byte : bytes.substr(at, size)) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

std::string BigBytes(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

bool IsHeader(std::string_view block) {
  return block.substr(0, kRecordMagic.size()) == kRecordMagic;
}

// The cycle in which a block of the log was written.
uint64_t CycleOf(std::string_view block) {
  return BigAt(block, IsHeader(block) ? kRecordCycle : 0, 4);
}

// The blocks of the header of a record that begins with this one, and of all of the record.
size_t HeadersOf(std::string_view header) {
  const uint64_t size = BigAt(header, kRecordSize, 4);
  return std::max<size_t>(1, (size + kBytesOfAHeader - 1) / kBytesOfAHeader);
}
size_t BlocksOf(std::string_view header) {
  return HeadersOf(header) + (BigAt(header, kRecordLength, 4) + kLogBlock - 1) / kLogBlock;
}

std::string WithChecksum(std::string superblock) {
  superblock.replace(kXfsChecksum, 4, 4, '\0');
  const uint32_t sum = ExtendCrc32c(0, superblock);
  for (size_t i = 0; i < 4; ++i) superblock[kXfsChecksum + i] = static_cast<char>(sum >> (8 * i));
  return superblock;
}

}  // namespace

Result<XfsUuid> XfsUuid::Open(int file, const std::string& new_uuid, const std::string& what) {
  std::optional<std::string> uuid = UuidBytes(new_uuid);
  if (!uuid) return Error::NotApplied(Code::kInvalidArgument, what + ": no such UUID");
  XfsUuid xfs(file, *std::move(uuid), what);
  RETURN_IF_ERROR(xfs.ReadGeometry());
  return xfs;
}

Status XfsUuid::ReadGeometry() {
  constexpr size_t kSmallest = 512;
  ASSIGN_OR_RETURN(const std::string begin, Read(0, kSmallest));
  const uint64_t block = BigAt(begin, kXfsBlockSize, 4);
  const uint64_t sector = BigAt(begin, kXfsSectorSize, 2);
  const uint64_t log_start = BigAt(begin, kXfsLogStart, 8);
  const uint64_t group_blocks = BigAt(begin, kXfsGroupBlocks, 4);
  const uint64_t group_shift = BigAt(begin, kXfsGroupBlocksLog, 1);
  const uint64_t version = BigAt(begin, kXfsVersion, 2) & 0xF;
  if (begin.substr(0, kXfsSuperMagic.size()) != kXfsSuperMagic || version != 5 ||
      block < kSmallest || block > 65536 || sector < kSmallest || sector > 32768 ||
      group_shift > 31 || log_start == 0) {
    return Error::NotApplied(Code::kDataLoss, what_ + ": its first superblock is damaged");
  }
  ASSIGN_OR_RETURN(first_, Read(0, sector));
  if (WithChecksum(first_) != first_) {
    return Error::NotApplied(Code::kDataLoss, what_ + ": its first superblock is damaged");
  }
  const uint64_t in_group = log_start & ((uint64_t{1} << group_shift) - 1);
  group_bytes_ = static_cast<off_t>(group_blocks * block);
  groups_ = BigAt(begin, kXfsGroups, 4);
  log_begin_ = static_cast<off_t>(((log_start >> group_shift) * group_blocks + in_group) * block);
  log_bytes_ = static_cast<off_t>(BigAt(begin, kXfsLogBlocks, 4) * block);
  return OkStatus();
}

Result<std::string> XfsUuid::Read(off_t begin, size_t size) const {
  std::string bytes(size, '\0');
  const ssize_t done = ::pread(file_, bytes.data(), size, begin);
  if (done < 0) return Error::FromErrno(errno, what_ + ", read", Outcome::kNotApplied);
  if (static_cast<size_t>(done) == size) return bytes;
  return Error::NotApplied(Code::kDataLoss, what_ + ": the file ends too early");
}

Status XfsUuid::Write(const std::string& bytes, off_t begin) const {
  const ssize_t done = ::pwrite(file_, bytes.data(), bytes.size(), begin);
  if (done < 0) return Error::FromErrno(errno, what_ + ", write", Outcome::kMaybeApplied);
  if (static_cast<size_t>(done) == bytes.size()) return OkStatus();
  return Error::MaybeApplied(Code::kInternal, what_ + ": a write was cut short");
}

Result<std::optional<XfsUuid::Unmount>> XfsUuid::FindUnmount() const {
  uint64_t cycle = 0;
  uint64_t last = 0;  // block of that cycle, and the last one with the header of a record
  std::optional<uint64_t> newest;
  for (off_t at = 0; at < log_bytes_; at += kLogChunk) {
    const size_t size = std::min<size_t>(kLogChunk, static_cast<size_t>(log_bytes_ - at));
    ASSIGN_OR_RETURN(const std::string chunk, Read(log_begin_ + at, size));
    for (size_t i = 0; i < size; i += kLogBlock) {
      const std::string_view block = std::string_view(chunk).substr(i, kLogBlock);
      if (CycleOf(block) < cycle) continue;
      if (CycleOf(block) > cycle) newest.reset();
      cycle = CycleOf(block);
      last = (static_cast<uint64_t>(at) + i) / kLogBlock;
      if (IsHeader(block)) newest = last;
    }
  }
  if (!newest) return std::optional<Unmount>();
  const off_t place = log_begin_ + static_cast<off_t>(*newest * kLogBlock);
  ASSIGN_OR_RETURN(std::string header, Read(place, kLogBlock));
  ASSIGN_OR_RETURN(std::string operation,
                   Read(place + static_cast<off_t>(HeadersOf(header) * kLogBlock), kLogBlock));
  // Before its body is written, a record may end behind what is there of its cycle.
  if (*newest + BlocksOf(header) <= last || BigAt(header, kRecordOperations, 4) != 1 ||
      BigAt(header, kRecordPlace, 8) != (cycle << 32 | *newest) ||
      operation[kOperationFlags] != kUnmountFlag) {
    return std::optional<Unmount>();
  }
  return std::optional<Unmount>(
      Unmount{static_cast<uint32_t>(*newest), std::move(header), std::move(operation)});
}

Result<bool> XfsUuid::IsLogBegun() const {
  ASSIGN_OR_RETURN(const std::string first, Read(log_begin_, kLogBlock));
  if (!IsHeader(first) || first.substr(kRecordUuid, kUuidSize) != uuid_) return false;
  ASSIGN_OR_RETURN(const std::optional<Unmount> unmount, FindUnmount());
  return unmount && unmount->block == 0;
}

// An unmount record as that which is there, as if the kernel had come to the log's end just before.
Status XfsUuid::BeginLog() const {
  ASSIGN_OR_RETURN(const std::optional<Unmount> unmount, FindUnmount());
  if (!unmount) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             what_ + ": its log has something to replay after a mount");
  }
  const std::string cycle =
      BigBytes(static_cast<uint32_t>(BigAt(unmount->header, kRecordCycle, 4)) + 1);
  const std::string place = cycle + BigBytes(0);
  std::string header = unmount->header;
  header.replace(kRecordCycle, 4, cycle);
  header.replace(kRecordLength, 4,
                 BigBytes(static_cast<uint32_t>((BlocksOf(header) - 1) * kLogBlock)));
  header.replace(kRecordPlace, 8, place);
  header.replace(kRecordTail, 8, place);
  header.replace(kRecordChecksum, 4, 4, '\0');
  header.replace(kRecordBefore, 4, BigBytes(UINT32_MAX));
  // The first word of each block of the body, which has the cycle in its place.
  header.replace(kRecordWords + 4, kRecordFormat - kRecordWords - 4,
                 kRecordFormat - kRecordWords - 4, '\0');
  header.replace(kRecordUuid, kUuidSize, uuid_);
  header.replace(kRecordSize, 4, BigBytes(kBytesOfAHeader));
  std::string operation = unmount->operation;
  operation.replace(0, 4, cycle);
  return Write(header + operation, log_begin_);
}

// The body of the record, and behind it what is of the cycle before.
Status XfsUuid::WriteRestOfLog() const {
  ASSIGN_OR_RETURN(const std::string header, Read(log_begin_, kLogBlock));
  const auto cycle = static_cast<uint32_t>(BigAt(header, kRecordCycle, 4));
  const auto block_of = [](uint32_t of) {
    return BigBytes(of) + std::string(kLogBlock - sizeof(of), '\0');
  };
  std::string record;  // but its header, and its only operation
  for (size_t i = 2; i < BlocksOf(header); ++i) record += block_of(cycle);
  RETURN_IF_ERROR(Write(record, log_begin_ + static_cast<off_t>(2 * kLogBlock)));
  std::string rest;
  while (rest.size() < kLogChunk) rest += block_of(cycle - 1);
  auto at = static_cast<off_t>(2 * kLogBlock + record.size());
  while (at < log_bytes_) {
    rest.resize(std::min<size_t>(kLogChunk, static_cast<size_t>(log_bytes_ - at)));
    RETURN_IF_ERROR(Write(rest, log_begin_ + at));
    at += static_cast<off_t>(rest.size());
  }
  return OkStatus();
}

std::string XfsUuid::WithNewUuid(std::string first) const {
  const std::string old_uuid = first.substr(kXfsUuid, kUuidSize);
  if (old_uuid == uuid_) return first;
  uint64_t features = BigAt(first, kXfsIncompatible, 4);
  if ((features & kXfsHasMetaUuid) == 0) first.replace(kXfsMetaUuid, kUuidSize, old_uuid);
  features |= kXfsHasMetaUuid;
  if (first.substr(kXfsMetaUuid, kUuidSize) == uuid_) {
    features &= ~kXfsHasMetaUuid;
    first.replace(kXfsMetaUuid, kUuidSize, kUuidSize, '\0');
  }
  first.replace(kXfsIncompatible, 4, BigBytes(static_cast<uint32_t>(features)));
  first.replace(kXfsUuid, kUuidSize, uuid_);
  return WithChecksum(first);
}

Status XfsUuid::WriteSuperblocks() const {
  const std::string first = WithNewUuid(first_);
  for (uint64_t group = 1; group < groups_; ++group) {
    const off_t place = group_bytes_ * static_cast<off_t>(group);
    ASSIGN_OR_RETURN(std::string other, Read(place, first.size()));
    if (other.substr(0, kXfsSuperMagic.size()) != kXfsSuperMagic) {
      return Error::NotApplied(Code::kDataLoss, what_ + ": a superblock is damaged");
    }
    if (other.substr(kXfsUuid, kUuidSize) == uuid_) continue;
    other.replace(kXfsUuid, kUuidSize, uuid_);
    other.replace(kXfsMetaUuid, kUuidSize, first, kXfsMetaUuid, kUuidSize);
    other.replace(kXfsIncompatible, 4, first, kXfsIncompatible, 4);
    RETURN_IF_ERROR(Write(WithChecksum(other), place));
  }
  return first == first_ ? OkStatus() : Write(first, 0);
}

}  // namespace volumed
