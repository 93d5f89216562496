// CsiCapabilityWish: what a VolumeCapability asks of a volume, in words of this program, and
// whether a volume of a pool can be used so.
//
// What is asked for becomes a mount, so nothing of it is taken that is not known: a filesystem that
// no pool makes, a mount option that is not on a list. A mount option may have a password, so no
// message has one; it says which of them is meant by its number.
//
// All are pure; threads: any. Blocks: never.
#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "csi.pb.h"
#include "pool/pool_record.h"

namespace volumed {

using CsiAccessMode = ::csi::v1::VolumeCapability::AccessMode::Mode;

// A value; equal ones ask for the same.
struct CsiCapabilityWish {
  bool is_block = false;
  std::string fs_type;                   // empty: the volume's own
  std::vector<std::string> mount_flags;  // as they were given; each is on the list
  CsiAccessMode access_mode = CsiAccessMode::VolumeCapability_AccessMode_Mode_UNKNOWN;
  std::optional<int64_t> fs_group;  // volume_mount_group
  friend bool operator==(const CsiCapabilityWish&, const CsiCapabilityWish&) = default;
};

// Whether a mount gets this option: those that say how a filesystem keeps time stamps, flushes,
// allocates or compresses, and those that take rights away. Not those that say what is mounted
// ("loop", "subvol=", "nouuid"), that end the machine ("errors=panic"), that a disk's last writes
// are lost with ("nobarrier"), or that switch a quota. A list in one word ("ro,noatime") is none.
// Source: mount(8), ext4(5), xfs(5), btrfs(5).
bool IsAllowedMountFlag(std::string_view flag);

// Errors, not applied: InvalidArgument for a filesystem, a mount option, a volume_mount_group or an
// access mode that is not known. REQUIRES: the request that it is of keeps the rules
// (CheckCsiRequest), by which it has an access type and a mode.
Result<CsiCapabilityWish> ParseCsiCapability(const ::csi::v1::VolumeCapability& capability);
// Of a volume that is to be usable in all of these ways. Errors: the same; InvalidArgument, not
// applied, also for a volume that would have to be both block and mount, or have two filesystems.
Result<std::vector<CsiCapabilityWish>> ParseCsiCapabilities(
    const google::protobuf::RepeatedPtrField<::csi::v1::VolumeCapability>& capabilities);

// Why the volume cannot be used so, for people; empty if it can: it is of the other access type, or
// has another filesystem. A caller answers with FailedPrecondition, as the specification has it for
// what goes beyond a volume.
std::string WhyNotUsableSo(const PoolVolumeRecord& volume, const CsiCapabilityWish& wish);

// The same for calls that name a capability of a volume which they do not use themselves: of what
// is beyond it the specification has InvalidArgument there, not applied. Errors: also those of
// ParseCsiCapability.
Status CheckCapabilityOf(const PoolVolumeRecord& volume,
                         const ::csi::v1::VolumeCapability& capability);

// Of access modes. A volume in such a mode may be published on several nodes at a time.
bool IsMultiNodeMode(CsiAccessMode mode);
// Nobody writes.
bool IsReadOnlyMode(CsiAccessMode mode);

}  // namespace volumed
