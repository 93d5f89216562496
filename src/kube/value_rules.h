// Rules for single values of a manifest: what a name, a path, a key or a number may be. Each rule
// for texts carries a value that breaks it.
//
// The header is light, because what declares the fields of an object (kube/volume_sources.h) needs
// it. The rules live as long as the program.
// Threads: any. Blocks: no.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace volumed {

// A check of one string. `broken` returns the reason, or nullopt if the value is right. The reason
// is made for "<field>: <reason>", and may quote the value: a rule for keys of a Secret must not be
// told (FieldReader::SecretBytesMap).
struct TextRule {
  // What the value is, for messages that must not quote it: "key".
  std::string_view name;
  std::optional<std::string> (*broken)(std::string_view value);
  // A value that breaks the rule; "" if none does, or only "" itself.
  std::string_view bad_example;
};

// Both limits are inclusive.
struct IntRule {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
};

// Whether a manifest without the field is wrong.
enum class Presence { kOptional, kRequired };

namespace rules {

extern const TextRule kAnyText;
extern const TextRule kNotEmpty;
extern const TextRule kDnsLabel;      // container and volume names, namespaces
extern const TextRule kDnsSubdomain;  // names of most objects
extern const TextRule kUid;           // becomes a directory's name
// Label and annotation keys, flexVolume drivers: "[DNS subdomain/]name".
extern const TextRule kQualifiedName;
extern const TextRule kLabelValue;
extern const TextRule kConfigKey;  // keys of secrets and config maps
extern const TextRule kEnvName;
extern const TextRule kHostPath;      // absolute, no ".."
extern const TextRule kMountPath;     // kHostPath without ':'
extern const TextRule kSubPath;       // relative, no ".."
extern const TextRule kPayloadPath;   // kSubPath, does not begin with "..", bounded lengths
extern const TextRule kNfsPath;       // absolute
extern const TextRule kMedium;        // emptyDir
extern const TextRule kDriverName;    // CSI
extern const TextRule kFieldPath;     // downward API, in a volume or an environment variable
extern const TextRule kResourceName;  // resourceFieldRef
extern const TextRule kIqn;
extern const TextRule kPullPolicy;
extern const TextRule kApiVersionV1;

inline constexpr IntRule kFileMode{0, 0777};
// Users and groups.
inline constexpr IntRule kUnixId{0, std::numeric_limits<int32_t>::max()};
inline constexpr IntRule kNotNegative{0};
inline constexpr IntRule kPositive{1};
inline constexpr IntRule kLun{0, 255};
// Of a cloud's disk; 0 is the whole disk. Source: pkg/apis/core/validation (pdPartitionErrorMsg).
inline constexpr IntRule kPartition{0, 255};
// Source: pkg/apis/core/validation (validateProjectionSources), 10 minutes to 2^32 seconds.
inline constexpr IntRule kTokenExpiration{600, int64_t{1} << 32};
// Source: certificates/v1 PodCertificateRequest: one hour to 91 days.
inline constexpr IntRule kCertificateExpiration{3600, 91 * 86400};
// Source: storage/v1 CSIDriverSpec.nodeAllocatableUpdatePeriodSeconds.
inline constexpr IntRule kAllocatableUpdatePeriod{10};

}  // namespace rules
}  // namespace volumed
