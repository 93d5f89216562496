#include "kube/field_rules.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstdio>

#include "base/printable_text.h"
#include "base/quantity.h"

namespace volumed {
namespace {

using Reason = std::optional<std::string>;

// Source: RFC 1123 as Kubernetes applies it.
constexpr size_t kMaxLabel = 63;
constexpr size_t kMaxSubdomain = 253;
// Source: Linux NAME_MAX and PATH_MAX, which bound what a payload can hold.
constexpr size_t kMaxNameBytes = 255;
constexpr size_t kMaxPathBytes = 4096;

// The C locale's classes, whatever the process has set.
bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsAlnum(char c) { return IsLower(c) || IsUpper(c) || IsDigit(c); }
bool IsLowerAlnum(char c) { return IsLower(c) || IsDigit(c); }

bool LooksLikeLabel(std::string_view text) {
  return !text.empty() && text.size() <= kMaxLabel && IsLowerAlnum(text.front()) &&
         IsLowerAlnum(text.back()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return IsLowerAlnum(c) || c == '-'; });
}

template <typename Visit>
bool AllElements(std::string_view text, char separator, Visit visit) {
  while (true) {
    const size_t end = text.find(separator);
    if (!visit(text.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    text.remove_prefix(end + 1);
  }
}

bool LooksLikeSubdomain(std::string_view text) {
  // Only the whole is bounded by length here: Kubernetes allows long elements in a subdomain.
  return !text.empty() && text.size() <= kMaxSubdomain &&
         AllElements(text, '.', [](std::string_view part) {
           return !part.empty() && IsLowerAlnum(part.front()) && IsLowerAlnum(part.back()) &&
                  std::all_of(part.begin(), part.end(),
                              [](char c) { return IsLowerAlnum(c) || c == '-'; });
         });
}

bool HasDotDot(std::string_view path) {
  return !AllElements(path, '/', [](std::string_view part) { return part != ".."; });
}

bool HasNul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

Reason Any(std::string_view) { return std::nullopt; }

Reason NotEmpty(std::string_view value) {
  if (value.empty()) return "must not be empty";
  return std::nullopt;
}

Reason DnsLabel(std::string_view value) {
  if (LooksLikeLabel(value)) return std::nullopt;
  return Quoted(value) +
         " is not a DNS-1123 label (a-z, 0-9 and '-', a letter or digit at both ends, at most 63)";
}

Reason DnsSubdomain(std::string_view value) {
  if (LooksLikeSubdomain(value)) return std::nullopt;
  return Quoted(value) +
         " is not a DNS-1123 subdomain (a-z, 0-9, '-' and '.', a letter or digit at both ends of "
         "each part, at most 253)";
}

Reason Uid(std::string_view value) {
  // Kubernetes takes any text; here it names directories and keys, so it must be one safe element.
  const bool safe = !value.empty() && value.size() <= kMaxLabel && IsAlnum(value.front()) &&
                    std::all_of(value.begin(), value.end(),
                                [](char c) { return IsAlnum(c) || c == '-' || c == '_'; });
  if (safe) return std::nullopt;
  return Quoted(value) + " is not a usable uid (letters, digits, '-' and '_', at most 63)";
}

bool LooksLikeNamePart(std::string_view text) {
  return !text.empty() && text.size() <= kMaxLabel && IsAlnum(text.front()) &&
         IsAlnum(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return IsAlnum(c) || c == '-' || c == '_' || c == '.';
         });
}

Reason QualifiedName(std::string_view value) {
  const size_t slash = value.find('/');
  const bool right = slash == std::string_view::npos
                         ? LooksLikeNamePart(value)
                         : LooksLikeSubdomain(value.substr(0, slash)) &&
                               LooksLikeNamePart(value.substr(slash + 1));
  if (right) return std::nullopt;
  return Quoted(value) + " is not a qualified name ([DNS subdomain/]name, name at most 63)";
}

Reason LabelValue(std::string_view value) {
  if (value.empty() || LooksLikeNamePart(value)) return std::nullopt;
  return Quoted(value) + " is not a label value (letters, digits, '-', '_' and '.', at most 63)";
}

Reason ConfigKey(std::string_view value) {
  const bool right = !value.empty() && value.size() <= kMaxSubdomain && value != "." &&
                     value.substr(0, 2) != ".." &&
                     std::all_of(value.begin(), value.end(), [](char c) {
                       return IsAlnum(c) || c == '-' || c == '_' || c == '.';
                     });
  if (right) return std::nullopt;
  return Quoted(value) +
         " is not a valid key (letters, digits, '-', '_' and '.', not beginning with \"..\")";
}

Reason EnvName(std::string_view value) {
  const bool right = !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
    return c >= ' ' && c <= '~' && c != '=';
  });
  if (right) return std::nullopt;
  return Quoted(value) + " is not a variable's name (printable ASCII without '=')";
}

Reason HostPath(std::string_view value) {
  if (value.empty()) return "must not be empty";
  if (value.front() != '/') return Quoted(value) + " is not an absolute path";
  if (HasDotDot(value)) return Quoted(value) + " contains a \"..\" element";
  if (HasNul(value)) return Quoted(value) + " contains a NUL byte";
  return std::nullopt;
}

Reason MountPath(std::string_view value) {
  if (Reason reason = HostPath(value)) return reason;
  if (value.find(':') != std::string_view::npos) return Quoted(value) + " contains ':'";
  return std::nullopt;
}

Reason NfsPath(std::string_view value) {
  if (value.empty()) return "must not be empty";
  if (value.front() != '/') return Quoted(value) + " is not an absolute path";
  return std::nullopt;
}

Reason SubPath(std::string_view value) {
  if (!value.empty() && value.front() == '/') return Quoted(value) + " is not a relative path";
  if (HasDotDot(value)) return Quoted(value) + " contains a \"..\" element";
  if (HasNul(value)) return Quoted(value) + " contains a NUL byte";
  return std::nullopt;
}

Reason PayloadPath(std::string_view value) {
  if (value.empty()) return "must not be empty";
  if (Reason reason = SubPath(value)) return reason;
  const std::string clean = CleanPath(value);
  if (clean.starts_with("..")) return Quoted(value) + " begins with \"..\", which is reserved";
  if (clean.empty() || clean == ".") return Quoted(value) + " names no file";
  if (clean.size() > kMaxPathBytes) return "is longer than 4096 bytes";
  if (!AllElements(clean, '/', [](std::string_view p) { return p.size() <= kMaxNameBytes; })) {
    return "has an element longer than 255 bytes";
  }
  return std::nullopt;
}

bool IsPageSize(std::string_view text) {
  const Result<Quantity> size = Quantity::Parse(text);
  return size.ok() && size->Sign() > 0;
}

Reason Medium(std::string_view value) {
  constexpr std::string_view kHugePages = "HugePages";
  if (value.empty() || value == "Memory" || value == kHugePages) return std::nullopt;
  if (value.substr(0, kHugePages.size() + 1) == "HugePages-" &&
      IsPageSize(value.substr(kHugePages.size() + 1))) {
    return std::nullopt;
  }
  return Quoted(value) + " is an unknown medium (\"\", Memory, HugePages or HugePages-<size>)";
}

Reason DriverName(std::string_view value) {
  // Source: CSI spec v1.11, GetPluginInfo: domain name notation, at most 63 characters.
  const bool right = LooksLikeNamePart(value) &&
                     std::none_of(value.begin(), value.end(), [](char c) { return c == '_'; });
  if (right) return std::nullopt;
  return Quoted(value) + " is not a CSI driver's name (letters, digits, '-' and '.', at most 63)";
}

bool IsMapField(std::string_view value, std::string_view map) {
  // metadata.labels['key']
  if (value.substr(0, map.size()) != map) return false;
  value.remove_prefix(map.size());
  if (value.size() < 5 || value.substr(0, 2) != "['" || value.substr(value.size() - 2) != "']") {
    return false;
  }
  return !QualifiedName(value.substr(2, value.size() - 4)).has_value();
}

Reason FieldPath(std::string_view value) {
  constexpr std::string_view kKnown[] = {"metadata.name",
                                         "metadata.namespace",
                                         "metadata.uid",
                                         "metadata.labels",
                                         "metadata.annotations",
                                         "spec.nodeName",
                                         "spec.serviceAccountName",
                                         "status.hostIP",
                                         "status.hostIPs",
                                         "status.podIP",
                                         "status.podIPs"};
  const bool right = std::find(std::begin(kKnown), std::end(kKnown), value) != std::end(kKnown) ||
                     IsMapField(value, "metadata.labels") ||
                     IsMapField(value, "metadata.annotations");
  if (right) return std::nullopt;
  return Quoted(value) + " is not a field that the downward API knows";
}

Reason ResourceName(std::string_view value) {
  for (const std::string_view list : {"limits.", "requests."}) {
    if (value.substr(0, list.size()) != list) continue;
    const std::string_view resource = value.substr(list.size());
    if (resource == "cpu" || resource == "memory" || resource == "ephemeral-storage" ||
        (resource.substr(0, 10) == "hugepages-" && resource.size() > 10)) {
      return std::nullopt;
    }
  }
  return Quoted(value) +
         " is not a resource (limits. or requests. with cpu, memory, ephemeral-storage or "
         "hugepages-<size>)";
}

Reason Iqn(std::string_view value) {
  for (const std::string_view prefix : {"iqn.", "eui.", "naa."}) {
    if (value.substr(0, prefix.size()) == prefix && value.size() > prefix.size()) {
      return std::nullopt;
    }
  }
  return Quoted(value) + " is not an iSCSI name (iqn., eui. or naa.)";
}

Reason PullPolicy(std::string_view value) {
  if (value.empty() || value == "Always" || value == "Never" || value == "IfNotPresent") {
    return std::nullopt;
  }
  return Quoted(value) + " is not one of Always, IfNotPresent, Never";
}

Reason ApiVersionV1(std::string_view value) {
  if (value.empty() || value == "v1") return std::nullopt;
  return Quoted(value) + " is not supported, only \"v1\" is";
}

// Reads exactly `digits` digits.
bool TakeNumber(std::string_view& text, size_t digits, int& out) {
  if (text.size() < digits) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, out);
  if (error != std::errc() || end != text.data() + digits || !IsDigit(text.front())) return false;
  text.remove_prefix(digits);
  return true;
}

bool TakeChar(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// ".678" -> 678; digits beyond milliseconds are dropped.
bool TakeFraction(std::string_view& text, int& millis) {
  millis = 0;
  if (!TakeChar(text, ".")) return true;
  int unit = 100;
  if (text.empty() || !IsDigit(text.front())) return false;
  for (; !text.empty() && IsDigit(text.front()); text.remove_prefix(1), unit /= 10) {
    millis += (text.front() - '0') * unit;
  }
  return true;
}

bool TakeZone(std::string_view& text, int& offset_minutes) {
  offset_minutes = 0;
  if (TakeChar(text, "Zz")) return true;
  const bool west = !text.empty() && text.front() == '-';
  int hours = 0;
  int minutes = 0;
  if (!TakeChar(text, "+-") || !TakeNumber(text, 2, hours) || !TakeChar(text, ":") ||
      !TakeNumber(text, 2, minutes) || hours > 23 || minutes > 59) {
    return false;
  }
  offset_minutes = (hours * 60 + minutes) * (west ? -1 : 1);
  return true;
}

}  // namespace

namespace rules {

const TextRule kAnyText{"text", Any, ""};
const TextRule kNotEmpty{"not empty", NotEmpty, ""};
const TextRule kDnsLabel{"DNS label", DnsLabel, "Not_A-Label"};
const TextRule kDnsSubdomain{"DNS subdomain", DnsSubdomain, "..no.name"};
const TextRule kUid{"uid", Uid, "../../etc"};
const TextRule kQualifiedName{"qualified name", QualifiedName, "a/b/c"};
const TextRule kLabelValue{"label value", LabelValue, "-x"};
const TextRule kConfigKey{"key", ConfigKey, "a/b"};
const TextRule kEnvName{"environment variable", EnvName, "a=b"};
const TextRule kHostPath{"host path", HostPath, "/a/../b"};
const TextRule kMountPath{"mount path", MountPath, "a/b"};
const TextRule kSubPath{"sub-path", SubPath, "a/../../b"};
const TextRule kPayloadPath{"payload path", PayloadPath, "..data/x"};
const TextRule kNfsPath{"NFS path", NfsPath, "export"};
const TextRule kMedium{"medium", Medium, "Floppy"};
const TextRule kDriverName{"CSI driver", DriverName, "no/driver"};
const TextRule kFieldPath{"field path", FieldPath, "spec.hostname"};
const TextRule kResourceName{"resource", ResourceName, "limits.gpu"};
const TextRule kIqn{"iSCSI name", Iqn, "target-1"};
const TextRule kPullPolicy{"pull policy", PullPolicy, "Sometimes"};
const TextRule kApiVersionV1{"API version", ApiVersionV1, "v2"};

}  // namespace rules

std::string Quoted(std::string_view value) {
  constexpr size_t kShown = 80;
  return Quoted(value, kShown);
}

std::string CleanPath(std::string_view path) {
  std::string clean;
  if (!path.empty() && path.front() == '/') clean = "/";
  AllElements(path, '/', [&clean](std::string_view part) {
    if (part.empty() || part == ".") return true;
    if (!clean.empty() && clean.back() != '/') clean += '/';
    clean += part;
    return true;
  });
  return clean;
}

std::optional<int64_t> ParseTimestamp(std::string_view text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, millis = 0, offset = 0;
  const bool parsed =
      TakeNumber(text, 4, year) && TakeChar(text, "-") && TakeNumber(text, 2, month) &&
      TakeChar(text, "-") && TakeNumber(text, 2, day) && TakeChar(text, "Tt") &&
      TakeNumber(text, 2, hour) && TakeChar(text, ":") && TakeNumber(text, 2, minute) &&
      TakeChar(text, ":") && TakeNumber(text, 2, second) && TakeFraction(text, millis) &&
      TakeZone(text, offset) && text.empty();
  if (!parsed || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const int64_t seconds = ((days * 24 + hour) * 60 + minute - offset) * 60 + second;
  return seconds * 1000 + millis;
}

std::string FormatTimestamp(int64_t unix_millis) {
  using std::chrono::floor;
  const std::chrono::sys_time<std::chrono::milliseconds> when{
      std::chrono::milliseconds(unix_millis)};
  const auto day = floor<std::chrono::days>(when);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss<std::chrono::milliseconds> time(when - day);
  char text[48];
  std::snprintf(text, sizeof(text), "%04d-%02u-%02uT%02d:%02d:%02d", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                static_cast<int>(time.seconds().count()));
  std::string out = text;
  if (time.subseconds().count() != 0) {
    std::snprintf(text, sizeof(text), ".%03d", static_cast<int>(time.subseconds().count()));
    out += text;
  }
  return out + "Z";
}

}  // namespace volumed
