#include "agent/config_values.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <utility>

#include "agent/config.h"
#include "agent/config_checks.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "csi/plugin_info.h"
#include "kube/field_rules.h"
#include "kube/static_pod.h"
#include "plugins/fc_names.h"
#include "plugins/iscsi_names.h"
#include "pool/static_export.h"

namespace volumed {
namespace {

// Far more than any node can take.
constexpr int kMostAttached = 100000;

// A smaller pool holds no volume; a larger one is a mistake.
constexpr int64_t kLeastPoolBytes = int64_t{1} << 20;
constexpr int64_t kMostPoolBytes = int64_t{1} << 60;

// Takes name=text, of which the name is a DNS label.
Result<std::pair<std::string, std::string>> ParseNamed(const std::string& value, const char* what) {
  const size_t equals = value.find('=');
  if (equals == std::string::npos) {
    return InvalidValue(std::string("must be name=") + what + ", or in a file {name: " + what +
                        "}, not '" + value + "'");
  }
  std::string name = value.substr(0, equals);
  if (const auto reason = rules::kDnsLabel.broken(name)) {
    return InvalidValue(*reason);
  }
  return std::pair(std::move(name), value.substr(equals + 1));
}

// Only for built-in plugins it is known whether they attach volumes.
Status CheckAttaches(const std::string& plugin) {
  const bool is_in_tree = plugin.starts_with("kubernetes.io/");
  const bool attaches = is_in_tree ? plugin == kIscsiPluginName || plugin == kFcPluginName
                                   : plugin.find('/') != std::string::npos;
  if (attaches) return OkStatus();
  return InvalidValue("\"" + plugin + "\" attaches no volumes: " + kIscsiPluginName + ", " +
                      kFcPluginName + ", or <vendor>/<driver> of a flexVolume driver");
}

// The items of a list, also of one that PrintConfig has printed.
ConfigValue ItemsOf(const ConfigValue& values) {
  ConfigValue items;
  for (const std::string& value : values) {
    for (std::string& item : SplitNonEmpty(value, ',')) items.push_back(std::move(item));
  }
  return items;
}

struct Unit64 {
  std::string_view suffix;
  int64_t nanoseconds;
};

// The longest suffixes come first, so that "ms" is not read as "m".
constexpr Unit64 kUnits[] = {
    {"ns", 1},
    {"us", 1'000},
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
    {"m", 60'000'000'000},
    {"h", 3'600'000'000'000},
};

}  // namespace

Error InvalidValue(std::string message) {
  return Error::NotApplied(Code::kInvalidArgument, std::move(message));
}

Result<std::string> One(const ConfigValue& values) {
  if (values.size() != 1) return InvalidValue("must be a single value");
  return values.front();
}

Result<bool> ParseBool(const ConfigValue& values) {
  ASSIGN_OR_RETURN(const std::string text, One(values));
  if (text == "true") return true;
  if (text == "false") return false;
  return InvalidValue("must be true or false, not '" + text + "'");
}

Result<int> ParseInt(const ConfigValue& values, int low, int high) {
  ASSIGN_OR_RETURN(const std::string text, One(values));
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < low || number > high) {
    return InvalidValue("must be an integer from " + std::to_string(low) + " to " +
                        std::to_string(high) + ", not '" + text + "'");
  }
  return number;
}

Result<std::string> ParsePath(const ConfigValue& values, bool may_be_empty) {
  ASSIGN_OR_RETURN(std::string text, One(values));
  if (text.empty() && may_be_empty) return text;
  const bool is_text =
      std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; });
  if (!is_text) return InvalidValue("must not have control characters");
  const std::filesystem::path path(text);
  if (!path.is_absolute() || path.lexically_normal().string() != text || text.back() == '/') {
    return InvalidValue(
        "must be an absolute path without '.', '..', '//' or a trailing '/', not '" + text + "'");
  }
  return text;
}

Result<ConfigValue> ParsePaths(const ConfigValue& values) {
  for (const std::string& value : values) RETURN_IF_ERROR(ParsePath({value}, false));
  return values;
}

Result<Duration> ParseDurationIn(const ConfigValue& values, Duration low, Duration high) {
  ASSIGN_OR_RETURN(const std::string text, One(values));
  ASSIGN_OR_RETURN(const Duration duration, ParseDuration(text));
  if (duration < low || duration > high) {
    return InvalidValue("must lie between " + FormatDuration(low) + " and " + FormatDuration(high) +
                        ", not " + text);
  }
  return duration;
}

Result<std::string> ParseAddress(const ConfigValue& values) {
  ASSIGN_OR_RETURN(std::string text, One(values));
  if (!text.empty()) RETURN_IF_ERROR(CheckAddress(text));
  return text;
}

Result<std::map<std::string, std::string>> ParseLabels(const ConfigValue& values) {
  std::map<std::string, std::string> labels;
  for (const std::string& value : values) {
    const size_t equals = value.find('=');
    if (equals == std::string::npos || equals == 0) {
      return InvalidValue("must be key=value, not '" + value + "'");
    }
    labels[value.substr(0, equals)] = value.substr(equals + 1);
  }
  return labels;
}

// Takes the name in the way of kubelet, and checks it in the way of an API server.
// Source: kubernetes pkg/apis/core/validation/validation.go@v1.36.2 (ValidateNodeName).
Result<std::string> ParseNodeName(const ConfigValue& values) {
  ASSIGN_OR_RETURN(std::string name, One(values));
  name = NormalNodeName(std::move(name));
  if (name.empty()) return name;
  if (const auto reason = rules::kDnsSubdomain.broken(name)) {
    return InvalidValue(*reason);
  }
  return name;
}

Result<std::map<std::string, int64_t>> ParseAttachLimits(const ConfigValue& values) {
  const ConfigValue entries = ItemsOf(values);
  using Named = std::map<std::string, std::string>;
  ASSIGN_OR_RETURN(const Named named, ParseLabels(entries));
  std::map<std::string, int64_t> limits;
  for (const auto& [plugin, text] : named) {
    RETURN_IF_ERROR(CheckAttaches(plugin));
    ASSIGN_OR_RETURN(limits[plugin], ParseInt({text}, 0, kMostAttached).With(plugin));
  }
  return limits;
}

Result<SocketOwners> ParseSocketOwners(const ConfigValue& values) {
  SocketOwners owners;
  for (const std::string& item : ItemsOf(values)) {
    uint32_t uid = 0;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), uid);
    if (error != std::errc() || end != item.data() + item.size()) {
      return InvalidValue("must be numbers of users, not '" + item + "'");
    }
    owners.insert(uid);
  }
  if (owners.empty()) return InvalidValue("must name a user, such as 0");
  return owners;
}

Result<std::set<std::string>> ParseDriverNames(const ConfigValue& values) {
  std::set<std::string> names;
  for (std::string& item : ItemsOf(values)) {
    if (const Status is_name = CheckCsiDriverName(item); !is_name.ok()) {
      return InvalidValue("'" + item + "': " + is_name.error().message());
    }
    names.insert(std::move(item));
  }
  return names;
}

Result<std::set<std::string>> ParseNodeNames(const ConfigValue& values) {
  std::set<std::string> names;
  for (const std::string& item : ItemsOf(values)) {
    ASSIGN_OR_RETURN(std::string name, ParseNodeName({item}));
    if (name.empty()) return InvalidValue("the name of a node is empty");
    names.insert(std::move(name));
  }
  return names;
}

Result<std::string> ParseDriverName(const ConfigValue& values) {
  ASSIGN_OR_RETURN(std::string name, One(values));
  if (const Status is_name = CheckCsiDriverName(name); !is_name.ok()) {
    return InvalidValue("'" + name + "': " + is_name.error().message());
  }
  return name;
}

Result<std::vector<std::pair<std::string, std::string>>> ParsePools(const ConfigValue& values) {
  std::vector<std::pair<std::string, std::string>> pools;
  for (const std::string& value : values) {
    ASSIGN_OR_RETURN(auto named, ParseNamed(value, "path"));
    RETURN_IF_ERROR(ParsePath({named.second}, false).With(named.first));
    pools.push_back(std::move(named));
  }
  return pools;
}

Result<std::vector<std::pair<std::string, std::string>>> ParseStaticExports(
    const ConfigValue& values) {
  std::vector<std::pair<std::string, std::string>> exports;
  for (const std::string& value : values) {
    ASSIGN_OR_RETURN(auto named, ParseNamed(value, "server:/path"));
    RETURN_IF_ERROR(ParseStaticExport(named.second).With(named.first));
    exports.push_back(std::move(named));
  }
  return exports;
}

Result<std::map<std::string, int64_t>> ParsePoolCapacity(const ConfigValue& values) {
  using Named = std::map<std::string, std::string>;
  ASSIGN_OR_RETURN(const Named named, ParseLabels(ItemsOf(values)));
  std::map<std::string, int64_t> capacities;
  for (const auto& [name, text] : named) {
    ASSIGN_OR_RETURN(capacities[name],
                     ParseBytes({text}, kLeastPoolBytes, kMostPoolBytes).With(name));
  }
  return capacities;
}

Result<std::map<std::string, LvmNames>> ParsePoolLvm(const ConfigValue& values) {
  using Named = std::map<std::string, std::string>;
  ASSIGN_OR_RETURN(const Named named, ParseLabels(ItemsOf(values)));
  std::map<std::string, LvmNames> names;
  for (const auto& [name, text] : named) {
    const size_t slash = text.find('/');
    const LvmNames lvm{text.substr(0, slash),
                       slash == std::string::npos ? "" : text.substr(slash + 1)};
    if (!IsLvmName(lvm.volume_group) || !IsLvmName(lvm.thin_pool)) {
      return InvalidValue(name + ": must be a volume group and its thin pool, such as vg0/thin, " +
                          "not '" + text + "'");
    }
    // What one of the two promises the other would not know.
    for (const auto& [other, taken] : names) {
      if (taken == lvm) return InvalidValue(other + " and " + name + " cannot both have " + text);
    }
    names[name] = lvm;
  }
  return names;
}

Result<std::string> ParseCsiEndpoint(const std::string& text) {
  std::string_view path = text;
  if (const auto rest = StripPrefix(path, "unix:")) path = *rest;
  if (path.starts_with("///")) path.remove_prefix(2);
  return ParsePath({std::string(path)}, false);
}

Result<std::map<std::string, std::string>> ParseDriverSockets(const ConfigValue& values) {
  ASSIGN_OR_RETURN(auto sockets, ParseLabels(ItemsOf(values)));
  for (const auto& [driver, path] : sockets) {
    RETURN_IF_ERROR(ParseDriverNames({driver}));
    RETURN_IF_ERROR(ParsePath({path}, false).With(driver));
  }
  return sockets;
}

Result<int64_t> ParseBytes(const ConfigValue& values, int64_t low, int64_t high) {
  ASSIGN_OR_RETURN(const std::string text, One(values));
  const Result<Quantity> quantity = Quantity::Parse(text);
  if (!quantity.ok() || quantity->Value() < low || quantity->Value() > high) {
    return InvalidValue("must be a number of bytes from " + Quantity::FromBytes(low).String() +
                        " to " + Quantity::FromBytes(high).String() + ", such as 16Mi, not '" +
                        text + "'");
  }
  return quantity->Value();
}

std::string CsiAttachText(CsiAttach attach) {
  switch (attach) {
    case CsiAttach::kAuto:
      return "auto";
    case CsiAttach::kObjects:
      return "objects";
    case CsiAttach::kController:
      return "controller";
  }
  return "";
}

Result<CsiAttach> ParseCsiAttach(const ConfigValue& values) {
  ASSIGN_OR_RETURN(const std::string text, One(values));
  for (const CsiAttach attach : {CsiAttach::kAuto, CsiAttach::kObjects, CsiAttach::kController}) {
    if (text == CsiAttachText(attach)) return attach;
  }
  return InvalidValue("must be auto, objects or controller, not '" + text + "'");
}

std::string CsiLevelText(CsiLevel level) { return level == CsiLevel::k1_12 ? "1.12" : "1.13"; }

Result<CsiLevel> ParseCsiLevel(const ConfigValue& values) {
  ASSIGN_OR_RETURN(const std::string text, One(values));
  for (const CsiLevel level : {CsiLevel::k1_12, CsiLevel::k1_13}) {
    if (text == CsiLevelText(level)) return level;
  }
  return InvalidValue("must be 1.12 or 1.13, not '" + text + "'");
}

Result<Duration> ParseDuration(std::string_view text) {
  const auto refuse = [&] {
    return InvalidValue("'" + std::string(text) + "' is not a duration such as 500ms, 30s or 2m3s");
  };
  std::string_view rest = text;
  int64_t total = 0;
  if (rest.empty()) return refuse();
  while (!rest.empty()) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc() || number < 0) return refuse();
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    size_t letters = 0;
    while (letters < rest.size() && std::isalpha(static_cast<unsigned char>(rest[letters]))) {
      ++letters;
    }
    const std::string_view suffix = rest.substr(0, letters);
    const auto unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                   [&](const Unit64& u) { return u.suffix == suffix; });
    int64_t part = 0;
    if (unit == std::end(kUnits) || __builtin_mul_overflow(number, unit->nanoseconds, &part) ||
        __builtin_add_overflow(total, part, &total)) {
      return refuse();
    }
    rest.remove_prefix(letters);
  }
  return Duration(total);
}

std::string FormatDuration(Duration duration) {
  int64_t rest = duration.count();
  if (rest == 0) return "0s";
  std::string text;
  for (auto unit = std::rbegin(kUnits); unit != std::rend(kUnits); ++unit) {
    if (const int64_t count = rest / unit->nanoseconds; count > 0) {
      text += std::to_string(count) + std::string(unit->suffix);
      rest %= unit->nanoseconds;
    }
  }
  return text;
}

}  // namespace volumed
