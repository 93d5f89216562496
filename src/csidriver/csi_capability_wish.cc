#include "csidriver/csi_capability_wish.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/printable_text.h"
#include "base/strings.h"
#include "pool/pool_parameters.h"
#include "pool/static_export.h"

namespace volumed {
namespace {

using ::csi::v1::VolumeCapability;
using Modes = VolumeCapability::AccessMode;

constexpr size_t kShownBytes = 128;  // of a text of a caller, in a message

// Of options that say something about the option's name alone.
constexpr std::array<std::string_view, 41> kPlainFlags = {
    // Of every filesystem.
    "ro", "rw", "defaults", "suid", "nosuid", "dev", "nodev", "exec", "noexec", "sync", "async",
    "dirsync", "atime", "noatime", "diratime", "nodiratime", "relatime", "norelatime",
    "strictatime", "nostrictatime", "lazytime", "nolazytime", "discard", "nodiscard",
    // ext4.
    "auto_da_alloc", "noauto_da_alloc", "delalloc", "nodelalloc", "journal_checksum",
    // xfs.
    "inode64", "largeio", "swalloc", "wsync",
    // btrfs.
    "compress", "autodefrag", "noautodefrag", "ssd", "nossd", "flushoncommit", "acl", "noacl"};

constexpr std::array kFlagsWithValues{
    OptionValues{"commit", kAnyNumber},  // ext4, btrfs
    OptionValues{"data", "ordered journal writeback"},
    OptionValues{"errors", "remount-ro continue"},
    OptionValues{"stripe", kAnyNumber},
    OptionValues{"logbufs", kAnyNumber},  // xfs
    OptionValues{"logbsize", "16k 32k 64k 128k 256k"},
    OptionValues{"compress", "no zlib lzo zstd"},  // btrfs
    OptionValues{"compress-force", "zlib lzo zstd"},
    OptionValues{"discard", "sync async"},
    OptionValues{"space_cache", "v2"},
};

Error Refused(const std::string& why) {
  return Error::NotApplied(Code::kInvalidArgument, "volume_capability: " + why);
}

Result<int64_t> ParseMountGroup(const std::string& text) {
  // The last one stands for no group. Source: chown(2).
  constexpr uint64_t kMostGid = std::numeric_limits<uint32_t>::max() - 1;
  const std::optional<uint64_t> gid = ParseUint64(text);
  if (gid && *gid <= kMostGid) return static_cast<int64_t>(*gid);
  return Refused("volume_mount_group " + Quoted(text, kShownBytes) + " is no id of a group");
}

Status TakeMount(const VolumeCapability::MountVolume& mount, CsiCapabilityWish& wish) {
  if (!mount.fs_type().empty() && !IsPoolFilesystem(mount.fs_type())) {
    return Refused("fs_type " + Quoted(mount.fs_type(), kShownBytes) +
                   " is not ext4, xfs or btrfs");
  }
  wish.fs_type = mount.fs_type();
  for (int i = 0; i < mount.mount_flags_size(); ++i) {
    if (!IsAllowedMountFlag(mount.mount_flags(i))) {
      return Refused("mount_flags[" + std::to_string(i) +
                     "] is not an option that a volume of a pool is mounted with");
    }
    wish.mount_flags.push_back(mount.mount_flags(i));
  }
  if (mount.volume_mount_group().empty()) return OkStatus();
  ASSIGN_OR_RETURN(wish.fs_group, ParseMountGroup(mount.volume_mount_group()));
  return OkStatus();
}

std::string WhyNotOfExport(const PoolVolumeRecord& volume, const CsiCapabilityWish& wish) {
  const std::string is = "it is the export " + volume.source + ", ";
  if (wish.is_block) return is + "and no block volume";
  if (!wish.fs_type.empty()) return is + "and " + wish.fs_type + " is asked for";
  if (wish.fs_group) return is + "whose files belong to whom its server says: it gets no group";
  for (size_t i = 0; i < wish.mount_flags.size(); ++i) {
    if (IsOptionOfAnyMount(wish.mount_flags[i])) continue;
    return is + "for which mount_flags[" + std::to_string(i) + "] is no option";
  }
  if (!volume.source_read_only || IsReadOnlyMode(wish.access_mode)) return "";
  return is + "which is listed with ro: ask for it as a reader";
}

}  // namespace

bool IsAllowedMountFlag(std::string_view flag) {
  return IsListedOption(flag, kPlainFlags, kFlagsWithValues);
}

Result<CsiCapabilityWish> ParseCsiCapability(const VolumeCapability& capability) {
  CsiCapabilityWish wish;
  wish.access_mode = capability.access_mode().mode();
  if (wish.access_mode == Modes::UNKNOWN || !Modes::Mode_IsValid(wish.access_mode)) {
    return Refused("its access mode is not known");
  }
  switch (capability.access_type_case()) {
    case VolumeCapability::kBlock:
      wish.is_block = true;
      return wish;
    case VolumeCapability::kMount:
      RETURN_IF_ERROR(TakeMount(capability.mount(), wish));
      return wish;
    case VolumeCapability::ACCESS_TYPE_NOT_SET:
      break;
  }
  return Refused("it is neither block nor mount");
}

Result<std::vector<CsiCapabilityWish>> ParseCsiCapabilities(
    const google::protobuf::RepeatedPtrField<VolumeCapability>& capabilities) {
  std::vector<CsiCapabilityWish> wishes;
  std::string fs_type;
  for (const VolumeCapability& capability : capabilities) {
    ASSIGN_OR_RETURN(CsiCapabilityWish wish, ParseCsiCapability(capability));
    if (!wishes.empty() && wish.is_block != wishes.front().is_block) {
      return Refused("one volume cannot be both block and mount");
    }
    if (!wish.fs_type.empty() && !fs_type.empty() && wish.fs_type != fs_type) {
      return Refused("one volume cannot have both " + fs_type + " and " + wish.fs_type);
    }
    if (!wish.fs_type.empty()) fs_type = wish.fs_type;
    wishes.push_back(std::move(wish));
  }
  return wishes;
}

std::string WhyNotUsableSo(const PoolVolumeRecord& volume, const CsiCapabilityWish& wish) {
  if (volume.backend == PoolBackendKind::kExport) return WhyNotOfExport(volume, wish);
  if (volume.is_block != wish.is_block) {
    return volume.is_block ? "it is a block volume" : "it is a volume with a filesystem";
  }
  if (wish.is_block || wish.fs_type.empty()) return "";
  const std::string has = PoolFilesystemOf(volume);
  if (has.empty()) return "it has no filesystem of its own, and " + wish.fs_type + " is asked for";
  return has == wish.fs_type ? "" : "its filesystem is " + has + " and not " + wish.fs_type;
}

Status CheckCapabilityOf(const PoolVolumeRecord& volume,
                         const ::csi::v1::VolumeCapability& capability) {
  ASSIGN_OR_RETURN(const CsiCapabilityWish wish, ParseCsiCapability(capability));
  const std::string why_not = WhyNotUsableSo(volume, wish);
  if (why_not.empty()) return OkStatus();
  return Error::NotApplied(Code::kInvalidArgument,
                           "volume_capability: volume " + volume.id + ": " + why_not);
}

bool IsMultiNodeMode(CsiAccessMode mode) {
  return mode == Modes::MULTI_NODE_READER_ONLY || mode == Modes::MULTI_NODE_SINGLE_WRITER ||
         mode == Modes::MULTI_NODE_MULTI_WRITER;
}

bool IsReadOnlyMode(CsiAccessMode mode) {
  return mode == Modes::SINGLE_NODE_READER_ONLY || mode == Modes::MULTI_NODE_READER_ONLY;
}

}  // namespace volumed
