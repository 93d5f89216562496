// PoolParameters: what a StorageClass, or a CreateVolume call, may say of a volume, and what
// follows from it. PoolTuning: what can be changed later (a VolumeAttributesClass has it).
//
// Pure; threads: any. Blocks: never.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/object_meta.h"
#include "os/cgroup_requests.h"
#include "pool/pool_record.h"

namespace volumed {

// A thin volume gets its blocks when it is written to; a thick one when it is made.
enum class PoolAllocation { kThin, kThick };

// How a content gets from a volume to its cuts, and from a cut to a volume: by sharing its blocks
// (reflink), or by copying them. kAuto: it shares them if the pool's filesystem can.
enum class PoolCutWay { kAuto, kReflink, kCopy };

// Whether a volume that is a directory has to have a limit, or has one if that can be.
enum class PoolQuota { kRequired, kBestEffort };

// Whether a cut has to be of one moment. kBestEffort: a directory that a pod has is copied all the
// same, file by file, while the pod writes.
enum class PoolConsistency { kAtomic, kBestEffort };

// A value; the defaults are those of a class that says nothing.
struct PoolParameters {
  std::string pool;  // empty: the first that is configured
  PoolBackendKind backend = PoolBackendKind::kImage;
  std::string fs_type = "ext4";  // of the first format; empty of a directory (IsTree)
  PoolAllocation allocation = PoolAllocation::kThin;
  // The pool promises the volume no more than it has allocated already, so that more can be
  // promised than there is.
  bool overcommit = false;
  PoolCutWay snapshots = PoolCutWay::kAuto;
  PoolQuota quota = PoolQuota::kRequired;  // of a directory
  PoolConsistency consistency = PoolConsistency::kAtomic;
  // All of them with their keys, so that a later default changes no volume; the pool if it is
  // named.
  StringMap ToMap() const;
  friend bool operator==(const PoolParameters&, const PoolParameters&) = default;
};

// The parameter that says the filesystem of a volume.
inline constexpr const char* kPoolFsTypeParameter = "csi.storage.k8s.io/fstype";
// Whether a sidecar has added the parameter, for drivers that want to know for whom they work.
bool IsSidecarParameter(std::string_view key);
// Whether pools make filesystems of this type.
bool IsPoolFilesystem(std::string_view fs_type);

// Keys of sidecars ("csi.storage.k8s.io/pvc/name") are passed over, except for the one of the
// filesystem. Errors, not applied: InvalidArgument, naming the key, for one that is not known or
// whose value is none, and for values that contradict each other.
Result<PoolParameters> ParsePoolParameters(const StringMap& parameters);
// Whether such volumes can be had so. Errors, not applied: InvalidArgument for a block volume that
// is to be a directory.
Status CheckPoolMode(const PoolParameters& parameters, bool is_block);

// The type of the filesystem that is on the volume, or that it is to be formatted with; empty of a
// block volume and of a directory, and if a later program has made the volume.
std::string PoolFilesystemOf(const PoolVolumeRecord& record);

// What can be changed of a volume that is there, also while it is in use. Absent: it was never
// said, and is as the kernel has it.
struct PoolTuning {
  // Whether its loop device reads and writes past the cache of the pool's filesystem.
  std::optional<bool> direct_io = std::nullopt;
  // What a volume that is a directory may have at most, if that is less than its size.
  std::optional<int64_t> quota_bytes = std::nullopt;
  // How much the kernel reads ahead on its device. Without it the kernel chooses at each attach,
  // and nothing below what the loop device had before.
  std::optional<int64_t> read_ahead_kib = std::nullopt;
  // The throttle: what each of its pods may ask of its device in a second. 0: no limit.
  std::optional<int64_t> read_iops = std::nullopt;
  std::optional<int64_t> write_iops = std::nullopt;
  std::optional<int64_t> read_bps = std::nullopt;
  std::optional<int64_t> write_bps = std::nullopt;
  friend bool operator==(const PoolTuning&, const PoolTuning&) = default;
};
// Whether anything is said of the throttle.
bool HasThrottle(const PoolTuning& tuning);
// The same of mutable parameters; not of what is none.
bool NamesThrottle(const StringMap& parameters);
// What is not said of it is no limit, as is 0.
IoLimits LimitsOf(const PoolTuning& tuning);
// Errors, not applied: InvalidArgument, naming the key, for one that is not known, and for a value
// that is none.
Result<PoolTuning> ParsePoolTuning(const StringMap& parameters);
// Errors, not applied: InvalidArgument for what volumes of this backend do not have.
Status CheckTuning(const PoolTuning& tuning, PoolBackendKind backend);
// Errors, not applied: InvalidArgument for a quota of more than the size.
Status CheckQuotaFits(const PoolTuning& tuning, int64_t capacity_bytes);
// In what the volume of this record is tuned otherwise, for people; empty if it has all of these.
std::string TuningDifference(const PoolVolumeRecord& there, const StringMap& parameters);

// The sizes, in bytes, that a new volume may have.
struct PoolSize {
  int64_t required_bytes = 0;  // 0: not said
  int64_t limit_bytes = 0;     // 0: none
};

// All sizes are multiples of it, as it is the size of the sectors.
inline constexpr int64_t kPoolBlockBytes = 4096;

// Rounded up to kPoolBlockBytes. Errors, not applied: OutOfRange unless it is above zero, and for
// what cannot be rounded.
Result<int64_t> RoundPoolSize(int64_t bytes);
// Whether a volume that somebody wants to be so large can be made of the cut: made larger than
// asked for it would be what nobody notices. Errors: OutOfRange, not applied.
Status CheckHoldsCut(const PoolCutRecord& cut, int64_t bytes);

// The size that the volume gets: what is required, rounded up; 1 GiB if nothing is said, or less if
// the limit is; but at least what the filesystem needs, and what its content has. Errors, not
// applied: OutOfRange, if that is beyond the limit; InvalidArgument for a negative number, and for
// a limit below what is required.
Result<int64_t> DecidePoolSize(const PoolSize& wanted, const PoolParameters& parameters,
                               bool is_block, int64_t content_bytes = 0);

// In what the volume of this record differs from what is asked for (CreateVolume with a name that
// is taken), for people; empty if it is what is asked for.
std::string DifferenceToWish(const PoolVolumeRecord& there, const PoolParameters& parameters,
                             const PoolSize& size, bool is_block);

}  // namespace volumed
