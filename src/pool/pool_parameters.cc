#include "pool/pool_parameters.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "base/byte_text.h"
#include "base/printable_text.h"
#include "base/strings.h"
#include "os/image_requests.h"
#include "pluginmgr/provisionable_volume_plugin.h"

namespace volumed {
namespace {

constexpr char kPool[] = "pool";
constexpr char kBackend[] = "backend";
constexpr char kAllocation[] = "allocation";
constexpr char kOvercommit[] = "overcommit";
constexpr char kSnapshots[] = "snapshots";
constexpr char kQuota[] = "quota";
constexpr char kConsistency[] = "consistency";
constexpr char kQuotaBytes[] = "quotaBytes";
constexpr char kDirectIo[] = "directIO";
constexpr const char* kFsType = kPoolFsTypeParameter;
constexpr char kSidecarPrefix[] = "csi.storage.k8s.io/";

// What a class can say, in the order in which it is told.
constexpr std::string_view kKnownParameters[] = {kPool,       kBackend,   kFsType, kAllocation,
                                                 kOvercommit, kSnapshots, kQuota,  kConsistency};

constexpr char kThin[] = "thin";
constexpr char kThick[] = "thick";
constexpr char kTrue[] = "true";
constexpr char kFalse[] = "false";
constexpr char kRequired[] = "required";
constexpr char kBestEffort[] = "best-effort";
constexpr char kAtomic[] = "atomic";

constexpr size_t kShownBytes = 128;  // of a text of a caller, in a message
constexpr int64_t kMiB = 1024 * 1024;
constexpr int64_t kLeastTreeBytes = kMiB;  // a btrfs keeps some of it for itself
constexpr int64_t kDefaultBytes = 1024 * kMiB;

struct Filesystem {
  std::string_view type;
  int64_t least_bytes;  // of which its mkfs makes a usable one
};
// Source: xfsprogs mkfs.xfs(8) refuses less than 300 MiB (6.0 and later); mkfs.btrfs(8) needs
// 109 MiB with the default profiles. A smaller ext4 has hardly room for its journal.
constexpr Filesystem kFilesystems[] = {
    {"ext4", 16 * kMiB}, {"xfs", 300 * kMiB}, {"btrfs", 120 * kMiB}};

struct CutWayName {
  PoolCutWay way;
  std::string_view name;
};
constexpr CutWayName kCutWays[] = {
    {PoolCutWay::kAuto, "auto"}, {PoolCutWay::kReflink, "reflink"}, {PoolCutWay::kCopy, "copy"}};

std::string_view NameOfCutWay(PoolCutWay way) {
  for (const CutWayName& known : kCutWays) {
    if (known.way == way) return known.name;
  }
  __builtin_unreachable();
}

std::optional<PoolCutWay> CutWayOf(std::string_view name) {
  for (const CutWayName& known : kCutWays) {
    if (known.name == name) return known.way;
  }
  return std::nullopt;
}

std::optional<int64_t> LeastBytesOf(std::string_view fs_type) {
  for (const Filesystem& filesystem : kFilesystems) {
    if (filesystem.type == fs_type) return filesystem.least_bytes;
  }
  return std::nullopt;
}

// Says that the key cannot have its value, and why.
using RefusedParameter = std::function<Error(const std::string& key, const std::string& why)>;

Error ParameterError(const std::string& message) {
  return Error::NotApplied(Code::kInvalidArgument, message).About(kAboutClassParameters);
}

Error BadParameter(const std::string& key, const std::string& value, const std::string& wanted) {
  return ParameterError("parameter " + Quoted(key, kShownBytes) + " is " +
                        Quoted(value, kShownBytes) + ", which is not " + wanted);
}

Error UnknownParameter(const std::string& key) {
  const std::vector<std::string_view> known(std::begin(kKnownParameters),
                                            std::end(kKnownParameters));
  return ParameterError("parameter " + Quoted(key, kShownBytes) + " is not known: it is none of " +
                        Join(known, ", "));
}

Error OutOfRange(const std::string& message) {
  return Error::NotApplied(Code::kOutOfRange, message).About(kAboutClaim);
}

Status Take(const std::string& key, const std::string& value, PoolParameters& parameters) {
  if (key == kPool) {
    if (value.empty() || !IsText(value)) return BadParameter(key, value, "the name of a pool");
    parameters.pool = value;
  } else if (key == kBackend) {
    const std::optional<PoolBackendKind> backend = PoolBackendOf(value);
    if (!backend) return BadParameter(key, value, "image, directory, subvolume or lvm");
    parameters.backend = *backend;
  } else if (key == kFsType) {
    if (!IsPoolFilesystem(value)) return BadParameter(key, value, "ext4, xfs or btrfs");
    parameters.fs_type = value;
  } else if (key == kAllocation) {
    if (value != kThin && value != kThick) return BadParameter(key, value, "thin or thick");
    parameters.allocation = value == kThick ? PoolAllocation::kThick : PoolAllocation::kThin;
  } else if (key == kOvercommit) {
    if (value != kTrue && value != kFalse) return BadParameter(key, value, "true or false");
    parameters.overcommit = value == kTrue;
  } else if (key == kSnapshots) {
    const std::optional<PoolCutWay> way = CutWayOf(value);
    if (!way) return BadParameter(key, value, "auto, reflink or copy");
    parameters.snapshots = *way;
  } else if (key == kQuota) {
    if (value != kRequired && value != kBestEffort) {
      return BadParameter(key, value, "required or best-effort");
    }
    parameters.quota = value == kBestEffort ? PoolQuota::kBestEffort : PoolQuota::kRequired;
  } else if (key == kConsistency) {
    if (value != kAtomic && value != kBestEffort) {
      return BadParameter(key, value, "atomic or best-effort");
    }
    parameters.consistency =
        value == kBestEffort ? PoolConsistency::kBestEffort : PoolConsistency::kAtomic;
  } else if (!IsSidecarParameter(key)) {
    return UnknownParameter(key);
  }
  return OkStatus();
}

// A btrfs that the kernel has seen is known to it by its UUID, and a logical volume cannot be
// looked at by nobody before its copy has got another one: so such a volume could not be copied.
Status CheckFitsThinPool(const PoolParameters& parameters, const RefusedParameter& refused) {
  if (parameters.allocation == PoolAllocation::kThick) {
    return refused(kAllocation, "a thin pool allocates nothing ahead");
  }
  if (parameters.snapshots != PoolCutWay::kAuto) {
    return refused(kSnapshots, "a thin snapshot shares its blocks");
  }
  if (parameters.fs_type == "btrfs") {
    return refused(kFsType, "the kernel sees a copy before it has a UUID of its own");
  }
  return OkStatus();
}

// What one of the two ways has not: its files are of the pool's filesystem, or of its own.
Status CheckFitsBackend(const StringMap& said, const PoolParameters& parameters) {
  const auto refused = [&parameters](const std::string& key, const std::string& why) {
    return ParameterError("parameter " + Quoted(key, kShownBytes) +
                          " cannot be that with backend " +
                          std::string(PoolBackendName(parameters.backend)) + ": " + why);
  };
  if (parameters.consistency == PoolConsistency::kBestEffort &&
      parameters.backend != PoolBackendKind::kDirectory) {
    return refused(kConsistency, "its snapshots are always of one moment");
  }
  if (!IsTree(parameters.backend) && said.contains(kQuota)) {
    return refused(kQuota, "its size is its limit");
  }
  if (parameters.backend == PoolBackendKind::kLvm) return CheckFitsThinPool(parameters, refused);
  if (!IsTree(parameters.backend)) return OkStatus();
  const auto fs_type = said.find(kFsType);
  if (fs_type != said.end() && !fs_type->second.empty()) {
    return refused(kFsType, "its files lie on the filesystem of the pool");
  }
  if (parameters.allocation == PoolAllocation::kThick) {
    return refused(kAllocation, "no filesystem allocates for a directory ahead");
  }
  if (parameters.snapshots != PoolCutWay::kAuto) {
    return refused(kSnapshots, "a directory is copied, and a subvolume shares its blocks");
  }
  return OkStatus();
}

// A mutable parameter that is a number.
struct TunedNumber {
  std::string_view key;
  std::optional<int64_t> PoolTuning::*member;
  bool (*is_value)(int64_t);
  const char* wanted;
};
bool IsQuota(int64_t bytes) { return bytes > 0; }
// The smallest page of all machines is 4 KiB; what has larger ones says so when it is set.
bool IsReadAhead(int64_t kib) { return kib >= 0 && kib <= kMostReadAheadKib && kib % 4 == 0; }
bool IsBps(int64_t bytes) { return bytes == 0 || bytes >= kLeastIoLimit; }
bool IsIops(int64_t requests) { return IsBps(requests) && requests <= kMostLimitedIops; }
constexpr char kIopsWanted[] = "a number of requests from 2 to 4294967294, or 0 for no limit";
constexpr char kBpsWanted[] = "a number of bytes above 1, or 0 for no limit";
constexpr TunedNumber kTunedNumbers[] = {
    {kQuotaBytes, &PoolTuning::quota_bytes, IsQuota, "a number of bytes above zero"},
    {"readAheadKiB", &PoolTuning::read_ahead_kib, IsReadAhead,
     "a number of KiB from 0 to 1048576, and a multiple of 4"},
    {"readIOPS", &PoolTuning::read_iops, IsIops, kIopsWanted},
    {"writeIOPS", &PoolTuning::write_iops, IsIops, kIopsWanted},
    {"readBps", &PoolTuning::read_bps, IsBps, kBpsWanted},
    {"writeBps", &PoolTuning::write_bps, IsBps, kBpsWanted}};

Status TakeTuning(const std::string& key, const std::string& value, PoolTuning& tuning) {
  if (key == kDirectIo) {
    if (value != kTrue && value != kFalse) return BadParameter(key, value, "true or false");
    tuning.direct_io = value == kTrue;
    return OkStatus();
  }
  for (const TunedNumber& known : kTunedNumbers) {
    if (known.key != key) continue;
    const std::optional<int64_t> number = ParseInt64(value);
    if (!number || !known.is_value(*number)) return BadParameter(key, value, known.wanted);
    tuning.*known.member = *number;
    return OkStatus();
  }
  std::vector<std::string_view> names = {kDirectIo};
  for (const TunedNumber& known : kTunedNumbers) names.push_back(known.key);
  return Error::NotApplied(Code::kInvalidArgument, "mutable parameter " + Quoted(key, kShownBytes) +
                                                       " is not known: it is none of " +
                                                       Join(names, ", "));
}

}  // namespace

bool IsSidecarParameter(std::string_view key) {
  return StripPrefix(key, kSidecarPrefix).has_value();
}

bool IsPoolFilesystem(std::string_view fs_type) { return LeastBytesOf(fs_type).has_value(); }

StringMap PoolParameters::ToMap() const {
  StringMap map = {{kBackend, std::string(PoolBackendName(backend))},
                   {kAllocation, allocation == PoolAllocation::kThick ? kThick : kThin},
                   {kOvercommit, overcommit ? kTrue : kFalse},
                   {kSnapshots, std::string(NameOfCutWay(snapshots))}};
  if (!pool.empty()) map[kPool] = pool;
  if (backend == PoolBackendKind::kDirectory) {
    map[kConsistency] = consistency == PoolConsistency::kBestEffort ? kBestEffort : kAtomic;
  }
  if (IsTree(backend)) {
    map[kQuota] = quota == PoolQuota::kBestEffort ? kBestEffort : kRequired;
  } else {
    map[kFsType] = fs_type;
  }
  return map;
}

Result<PoolParameters> ParsePoolParameters(const StringMap& parameters) {
  PoolParameters parsed;
  const auto backend = parameters.find(kBackend);
  if (backend != parameters.end()) RETURN_IF_ERROR(Take(kBackend, backend->second, parsed));
  for (const auto& [key, value] : parameters) {
    const bool is_nothing = key == kFsType && value.empty() && IsTree(parsed.backend);
    if (!is_nothing) RETURN_IF_ERROR(Take(key, value, parsed));
  }
  RETURN_IF_ERROR(CheckFitsBackend(parameters, parsed));
  if (IsTree(parsed.backend)) parsed.fs_type.clear();
  if (parsed.overcommit && parsed.allocation == PoolAllocation::kThick) {
    return ParameterError(
        "a volume that is allocated \"thick\" has all of its blocks, so that \"overcommit\" cannot "
        "be \"true\" with it");
  }
  return parsed;
}

Status CheckPoolMode(const PoolParameters& parameters, bool is_block) {
  if (!is_block || !IsTree(parameters.backend)) return OkStatus();
  return Error::NotApplied(Code::kInvalidArgument,
                           "a volume of backend " +
                               std::string(PoolBackendName(parameters.backend)) +
                               " is a directory, and cannot be a block volume");
}

bool HasThrottle(const PoolTuning& tuning) {
  return tuning.read_iops || tuning.write_iops || tuning.read_bps || tuning.write_bps;
}

bool NamesThrottle(const StringMap& parameters) {
  const Result<PoolTuning> tuning = ParsePoolTuning(parameters);
  return tuning.ok() && HasThrottle(*tuning);
}

IoLimits LimitsOf(const PoolTuning& tuning) {
  return {.read_iops = tuning.read_iops.value_or(0),
          .write_iops = tuning.write_iops.value_or(0),
          .read_bps = tuning.read_bps.value_or(0),
          .write_bps = tuning.write_bps.value_or(0)};
}

Status CheckTuning(const PoolTuning& tuning, PoolBackendKind backend) {
  const bool reads_ahead = tuning.read_ahead_kib && backend != PoolBackendKind::kStatic;
  const bool is_of_loop = tuning.direct_io || reads_ahead;
  const bool needs_loop = is_of_loop || (HasThrottle(tuning) && backend != PoolBackendKind::kLvm);
  const bool has_device = !IsTree(backend) && backend != PoolBackendKind::kExport;
  if (needs_loop && backend != PoolBackendKind::kImage) {
    std::string key = "directIO";
    if (!tuning.direct_io) key = reads_ahead ? "readAheadKiB" : "throttle";
    return Error::NotApplied(Code::kInvalidArgument,
                             "mutable parameter " + Quoted(key, kShownBytes) +
                                 " cannot be set: a volume of backend " +
                                 std::string(PoolBackendName(backend)) +
                                 (has_device ? " has no loop device" : " has no device"));
  }
  if (!tuning.quota_bytes || IsTree(backend)) return OkStatus();
  return Error::NotApplied(
      Code::kInvalidArgument,
      IsListed(backend)
          ? "mutable parameter \"quotaBytes\" cannot be set: what a listed volume "
            "may have is not this pool's to say"
          : "mutable parameter \"quotaBytes\" cannot be set: the size of a volume of "
            "backend " +
                std::string(PoolBackendName(backend)) + " is its quota: make the volume larger");
}

Status CheckQuotaFits(const PoolTuning& tuning, int64_t capacity_bytes) {
  if (!tuning.quota_bytes || *tuning.quota_bytes <= capacity_bytes) return OkStatus();
  return Error::NotApplied(
      Code::kInvalidArgument,
      "mutable parameter \"quotaBytes\" is more than the size of the volume, " +
          BytesForPeople(capacity_bytes));
}

Result<PoolTuning> ParsePoolTuning(const StringMap& parameters) {
  PoolTuning tuning;
  for (const auto& [key, value] : parameters) RETURN_IF_ERROR(TakeTuning(key, value, tuning));
  return tuning;
}

std::string TuningDifference(const PoolVolumeRecord& there, const StringMap& parameters) {
  for (const auto& [key, value] : parameters) {
    const auto recorded = there.mutable_parameters.find(key);
    if (recorded != there.mutable_parameters.end() && recorded->second == value) continue;
    return "its mutable parameter " + Quoted(key, kShownBytes) + " is " +
           (recorded == there.mutable_parameters.end() ? "not set"
                                                       : Quoted(recorded->second, kShownBytes));
  }
  return "";
}

std::string PoolFilesystemOf(const PoolVolumeRecord& record) {
  const bool has_own = !IsTree(record.backend) && record.backend != PoolBackendKind::kExport;
  if (record.is_block || !has_own) return "";
  if (!record.filesystem.type.empty()) return record.filesystem.type;
  const Result<PoolParameters> parameters = ParsePoolParameters(record.parameters);
  return parameters.ok() ? parameters->fs_type : "";
}

Result<int64_t> RoundPoolSize(int64_t bytes) {
  if (bytes <= 0 || bytes > std::numeric_limits<int64_t>::max() - (kPoolBlockBytes - 1)) {
    return OutOfRange("a volume cannot have " + BytesForPeople(bytes));
  }
  return (bytes + kPoolBlockBytes - 1) / kPoolBlockBytes * kPoolBlockBytes;
}

Status CheckHoldsCut(const PoolCutRecord& cut, int64_t bytes) {
  if (bytes >= cut.size_bytes) return OkStatus();
  return OutOfRange("snapshot " + cut.id + " is of a volume of " + BytesForPeople(cut.size_bytes) +
                    ", and the new one is to have " + BytesForPeople(bytes));
}

Result<int64_t> DecidePoolSize(const PoolSize& wanted, const PoolParameters& parameters,
                               bool is_block, int64_t content_bytes) {
  const int64_t required = wanted.required_bytes;
  const int64_t limit = wanted.limit_bytes;
  if (required < 0 || limit < 0 || (limit != 0 && limit < required)) {
    return Error::NotApplied(Code::kInvalidArgument, "the volume is to have at least " +
                                                         BytesForPeople(required) +
                                                         " and at most " + BytesForPeople(limit));
  }
  const int64_t most = limit == 0 ? std::numeric_limits<int64_t>::max() : limit;
  int64_t format = IsTree(parameters.backend) ? kLeastTreeBytes : kPoolBlockBytes;
  if (!is_block) format = LeastBytesOf(parameters.fs_type).value_or(format);
  const int64_t least = std::max(format, content_bytes);
  int64_t size = std::min(kDefaultBytes, most / kPoolBlockBytes * kPoolBlockBytes);
  if (required != 0) {
    ASSIGN_OR_RETURN(size, RoundPoolSize(required));
  }
  size = std::max(size, least);
  if (size <= most) return size;
  std::string why;
  if (content_bytes > format) {
    why = " for its content";
  } else if (!is_block && !parameters.fs_type.empty()) {
    why = " for a filesystem of type " + parameters.fs_type;
  }
  return OutOfRange("the volume has to have " + BytesForPeople(size) + why +
                    ", and is to have at most " + BytesForPeople(limit));
}

std::string DifferenceToWish(const PoolVolumeRecord& there, const PoolParameters& parameters,
                             const PoolSize& size, bool is_block) {
  if (there.is_block != is_block) {
    return there.is_block ? "it is a block volume" : "it is a filesystem volume";
  }
  if (there.capacity_bytes < size.required_bytes ||
      (size.limit_bytes != 0 && there.capacity_bytes > size.limit_bytes)) {
    return "it has " + BytesForPeople(there.capacity_bytes);
  }
  // A key that an earlier program did not know has the default, as it is used.
  const Result<PoolParameters> parsed = ParsePoolParameters(there.parameters);
  const StringMap had = parsed.ok() ? parsed->ToMap() : there.parameters;
  for (const auto& [key, value] : parameters.ToMap()) {
    const auto recorded = had.find(key);
    const std::string now = recorded == had.end() ? "" : recorded->second;
    if (now != value) return "its parameter \"" + key + "\" is " + Quoted(now, kShownBytes);
  }
  return "";
}

}  // namespace volumed
