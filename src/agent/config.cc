#include "agent/config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "agent/config_checks.h"
#include "base/regular_file.h"
#include "base/strings.h"
#include "kube/field_rules.h"
#include "kube/static_pod.h"
#include "plugins/fc_names.h"
#include "plugins/iscsi_names.h"

namespace volumed {
namespace {

using Values = std::vector<std::string>;

Error Invalid(std::string message) {
  return Error::NotApplied(Code::kInvalidArgument, std::move(message));
}

Result<std::string> One(const Values& values) {
  if (values.size() != 1) return Invalid("must be a single value");
  return values.front();
}

Result<bool> ParseBool(const Values& values) {
  ASSIGN_OR_RETURN(const std::string text, One(values));
  if (text == "true") return true;
  if (text == "false") return false;
  return Invalid("must be true or false, not '" + text + "'");
}

Result<int> ParseInt(const Values& values, int low, int high) {
  ASSIGN_OR_RETURN(const std::string text, One(values));
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < low || number > high) {
    return Invalid("must be an integer from " + std::to_string(low) + " to " +
                   std::to_string(high) + ", not '" + text + "'");
  }
  return number;
}

Result<std::string> ParsePath(const Values& values, bool may_be_empty) {
  ASSIGN_OR_RETURN(std::string text, One(values));
  if (text.empty() && may_be_empty) return text;
  const bool is_text =
      std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; });
  if (!is_text) return Invalid("must not have control characters");
  const std::filesystem::path path(text);
  if (!path.is_absolute() || path.lexically_normal().string() != text || text.back() == '/') {
    return Invalid("must be an absolute path without '.', '..', '//' or a trailing '/', not '" +
                   text + "'");
  }
  return text;
}

Result<Values> ParsePaths(const Values& values) {
  for (const std::string& value : values) RETURN_IF_ERROR(ParsePath({value}, false));
  return values;
}

Result<Duration> ParseDurationIn(const Values& values, Duration low, Duration high) {
  ASSIGN_OR_RETURN(const std::string text, One(values));
  ASSIGN_OR_RETURN(const Duration duration, ParseDuration(text));
  if (duration < low || duration > high) {
    return Invalid("must lie between " + FormatDuration(low) + " and " + FormatDuration(high) +
                   ", not " + text);
  }
  return duration;
}

Result<std::string> ParseAddress(const Values& values) {
  ASSIGN_OR_RETURN(std::string text, One(values));
  if (!text.empty()) RETURN_IF_ERROR(CheckAddress(text));
  return text;
}

Result<std::map<std::string, std::string>> ParseLabels(const Values& values) {
  std::map<std::string, std::string> labels;
  for (const std::string& value : values) {
    const size_t equals = value.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Invalid("must be key=value, not '" + value + "'");
    }
    labels[value.substr(0, equals)] = value.substr(equals + 1);
  }
  return labels;
}

// Takes the name in the way of kubelet, and checks it in the way of an API server.
// Source: kubernetes pkg/apis/core/validation/validation.go@v1.36.2 (ValidateNodeName).
Result<std::string> ParseNodeName(const Values& values) {
  ASSIGN_OR_RETURN(std::string name, One(values));
  name = NormalNodeName(std::move(name));
  if (name.empty()) return name;
  if (const auto reason = rules::kDnsSubdomain.broken(name)) {
    return Invalid("'" + name + "' " + *reason);
  }
  return name;
}

// Far more than any node can take.
constexpr int kMostAttached = 100000;

// Only for built-in plugins it is known whether they attach volumes.
Status CheckAttaches(const std::string& plugin) {
  const bool is_in_tree = plugin.starts_with("kubernetes.io/");
  const bool attaches = is_in_tree ? plugin == kIscsiPluginName || plugin == kFcPluginName
                                   : plugin.find('/') != std::string::npos;
  if (attaches) return OkStatus();
  return Invalid("\"" + plugin + "\" attaches no volumes: " + kIscsiPluginName + ", " +
                 kFcPluginName + ", or <vendor>/<driver> of a flexVolume driver");
}

Result<std::map<std::string, int64_t>> ParseAttachLimits(const Values& values) {
  Values entries;  // also accepts one text, as PrintConfig prints it
  for (const std::string& value : values) {
    for (std::string& entry : SplitNonEmpty(value, ',')) entries.push_back(std::move(entry));
  }
  using Named = std::map<std::string, std::string>;
  ASSIGN_OR_RETURN(const Named named, ParseLabels(entries));
  std::map<std::string, int64_t> limits;
  for (const auto& [plugin, text] : named) {
    RETURN_IF_ERROR(CheckAttaches(plugin));
    ASSIGN_OR_RETURN(limits[plugin], ParseInt({text}, 0, kMostAttached).With(plugin));
  }
  return limits;
}

struct Row {
  ConfigKey key;
  std::function<Status(Config&, const Values&)> set;
  std::function<std::string(const Config&)> print;
};

// Agent::ApplyReload gives the new value to its users.
Row Reloadable(Row row) {
  row.key.reloadable = true;
  return row;
}

template <typename T, typename Parse>
std::function<Status(Config&, const Values&)> Setter(T Config::*field, Parse parse) {
  return [field, parse](Config& config, const Values& values) -> Status {
    ASSIGN_OR_RETURN(config.*field, parse(values));
    return OkStatus();
  };
}

Row PathRow(std::string_view name, std::string_view help, std::string Config::*field,
            bool may_be_empty) {
  return {{name, "path", help, false},
          Setter(field, [may_be_empty](const Values& v) { return ParsePath(v, may_be_empty); }),
          [field](const Config& config) { return config.*field; }};
}

Row BoolRow(std::string_view name, std::string_view help, bool Config::*field) {
  return {{name, "boolean", help, false}, Setter(field, ParseBool), [field](const Config& config) {
            return std::string(config.*field ? "true" : "false");
          }};
}

Row PathsRow(std::string_view name, std::string_view help, Values Config::*field) {
  return {{name, "list of paths", help, false},
          Setter(field, ParsePaths),
          [field](const Config& config) { return Join(config.*field, ","); }};
}

Row TextRow(std::string_view name, std::string_view help, std::string Config::*field) {
  return {{name, "string", help, false}, Setter(field, One), [field](const Config& config) {
            return config.*field;
          }};
}

Row IntRow(std::string_view name, std::string_view help, int Config::*field, int low, int high) {
  return {{name, "integer", help, false},
          Setter(field, [low, high](const Values& v) { return ParseInt(v, low, high); }),
          [field](const Config& config) { return std::to_string(config.*field); }};
}

Row DurationRow(std::string_view name, std::string_view help, Duration Config::*field, Duration low,
                Duration high) {
  return {{name, "duration", help, false},
          Setter(field, [low, high](const Values& v) { return ParseDurationIn(v, low, high); }),
          [field](const Config& config) { return FormatDuration(config.*field); }};
}

// The names and defaults of the recycler's settings are kube-controller-manager's.
void AddHostPathRows(std::vector<Row>& table) {
  table.push_back(PathsRow("host-path-root",
                           "where hostPath volumes may be made and deleted; default: nowhere",
                           &Config::host_path_roots));
  table.push_back(BoolRow("enable-hostpath-provisioner",
                          "make a directory below the first host-path-root for claims that ask",
                          &Config::host_path_provisioning));
  table.push_back(PathRow("pv-recycler-pod-template-filepath-hostpath",
                          "manifest of the Pod that recycles hostPath volumes; default: built in",
                          &Config::host_path_recycler_template, true));
  table.push_back(IntRow("pv-recycler-minimum-timeout-hostpath",
                         "seconds that recycling a hostPath volume may take, at least",
                         &Config::host_path_recycler_minimum_seconds, 1, 86400));
  table.push_back(IntRow("pv-recycler-timeout-increment-hostpath",
                         "seconds that it may take for each Gi, if that is more",
                         &Config::host_path_recycler_increment_seconds, 0, 86400));
}

void AddNfsRows(std::vector<Row>& table) {
  table.push_back(PathRow("pv-recycler-pod-template-filepath-nfs",
                          "manifest of the Pod that recycles NFS volumes; default: built in",
                          &Config::nfs_recycler_template, true));
  table.push_back(IntRow("pv-recycler-minimum-timeout-nfs",
                         "seconds that recycling an NFS volume may take, at least",
                         &Config::nfs_recycler_minimum_seconds, 1, 86400));
  table.push_back(IntRow("pv-recycler-increment-timeout-nfs",
                         "seconds that it may take for each Gi, if that is more",
                         &Config::nfs_recycler_increment_seconds, 0, 86400));
  table.push_back(Reloadable(DurationRow(
      "nfs-unmount-timeout", "after which the unmount of NFS is forced",
      &Config::nfs_unmount_timeout, std::chrono::milliseconds(100), std::chrono::hours(1))));
}

void AddRecyclerRows(std::vector<Row>& table) {
  table.push_back(PathRow("runc", "the program that runs recycler pods", &Config::runc, false));
  table.push_back(PathRow("busybox", "a static busybox: what recycler pods consist of",
                          &Config::busybox, false));
}

std::vector<Row> MakeTable() {
  using std::chrono::hours;
  using std::chrono::milliseconds;
  using std::chrono::minutes;
  const Duration shortest = milliseconds(100);
  std::vector<Row> table;
  table.push_back(PathRow("root", "directory of pods, plugins and the agent's own state",
                          &Config::root, false));
  table.push_back(
      BoolRow("adopt-root", "take over a root that volumed did not create", &Config::adopt_root));
  table.push_back(PathRow("pod-logs-dir", "logs of the kubelet's pods, which name them",
                          &Config::pod_logs_dir, false));
  table.push_back({{"node-name", "string", "name of this node; default: the host's name", false},
                   Setter(&Config::node_name, ParseNodeName),
                   [](const Config& config) { return config.node_name; }});
  table.push_back({{"node-labels", "list of key=value", "labels of this node", false},
                   Setter(&Config::node_labels, ParseLabels),
                   [](const Config& config) {
                     std::vector<std::string> labels;
                     for (const auto& [key, value] : config.node_labels) {
                       labels.push_back(key + "=" + value);
                     }
                     return Join(labels, ",");
                   }});
  table.push_back(
      PathsRow("manifest-dir", "directories of manifests to run", &Config::manifest_dirs));
  table.push_back(Reloadable(
      DurationRow("removal-settle",
                  "how long an object must be absent from a manifest directory before it goes",
                  &Config::removal_settle, shortest, hours(24))));
  table.push_back(PathsRow("removal-deletes-claims",
                           "of manifest-dir: where to remove a claim or volume is to delete it",
                           &Config::removal_deletes_claims));
  table.push_back(PathRow("socket", "unix socket of the control API", &Config::socket, false));
  table.push_back(
      TextRow("socket-group", "group that owns the socket and may operate", &Config::socket_group));
  table.push_back(
      TextRow("read-group", "group whose members may read; default: none", &Config::read_group));
  table.push_back(
      {{"metrics-address", "host:port", "where /metrics is served; empty: nowhere", false},
       Setter(&Config::metrics_address, ParseAddress),
       [](const Config& config) { return config.metrics_address; }});
  table.push_back(PathRow("worker", "the volumed-worker program; default: beside volumed",
                          &Config::worker, true));
  table.push_back(
      {{"log-level", "debug|info|warning|error", "the least level that is logged", true},
       Setter(&Config::log_level,
              [](const Values& values) -> Result<LogLevel> {
                ASSIGN_OR_RETURN(const std::string text, One(values));
                return ParseLogLevel(text);
              }),
       [](const Config& config) { return std::string(LogLevelName(config.log_level)); }});
  table.push_back({{"mask-kernel-feature", "list of strings",
                    "kernel features to do without, for tests", false},
                   Setter(&Config::masked_kernel_features,
                          [](const Values& values) -> Result<Values> { return values; }),
                   [](const Config& config) { return Join(config.masked_kernel_features, ","); }});
  table.push_back(Reloadable(
      IntRow("max-workers", "most worker processes at once", &Config::max_workers, 2, 1024)));
  table.push_back(Reloadable(IntRow("max-workers-per-domain",
                                    "most workers that one filesystem or server may occupy",
                                    &Config::max_workers_per_domain, 1, 64)));
  table.push_back(Reloadable(DurationRow("deadline-mount", "for each effect of a set-up",
                                         &Config::deadline_mount, shortest, hours(1))));
  table.push_back(Reloadable(DurationRow("deadline-unmount", "for each effect of a teardown",
                                         &Config::deadline_unmount, shortest, hours(1))));
  table.push_back(Reloadable(DurationRow("deadline-attach",
                                         "for attaching a volume, and for each step of a detach",
                                         &Config::deadline_attach, shortest, hours(1))));
  table.push_back(Reloadable(DurationRow("deadline-wait-for-attach",
                                         "until the device of an attached volume is there",
                                         &Config::deadline_wait_for_attach, shortest, hours(24))));
  table.push_back(Reloadable(DurationRow("deadline-stats", "for measuring one volume",
                                         &Config::deadline_stats, shortest, hours(1))));
  table.push_back(Reloadable(DurationRow("volume-stats-period", "how often each volume is measured",
                                         &Config::volume_stats_period, shortest, hours(24))));
  table.push_back(Reloadable(DurationRow(
      "server-look-period",
      "how often a server that volumes hang with is looked at; 0s: never, and none shows as Stuck",
      &Config::server_look_period, Duration::zero(), hours(1))));
  table.push_back(Reloadable(DurationRow(
      "verify-attached-period", "how often plugins are asked which volumes are attached; 0s: never",
      &Config::verify_attached_period, Duration::zero(), hours(24))));
  table.push_back(
      {{"attach-limits", "list of plugin=number",
        "how many volumes of a plugin the node takes at once; default: any number", true},
       Setter(&Config::attach_limits, ParseAttachLimits),
       [](const Config& config) {
         std::vector<std::string> limits;
         for (const auto& [plugin, limit] : config.attach_limits) {
           limits.push_back(plugin + "=" + std::to_string(limit));
         }
         return Join(limits, ",");
       }});
  table.push_back({{"empty-dir-limit-action", "evict|report",
                    "what becomes of a pod whose emptyDir exceeds its sizeLimit", false},
                   Setter(&Config::empty_dir_limit_action,
                          [](const Values& values) -> Result<SizeLimitAction> {
                            ASSIGN_OR_RETURN(const std::string text, One(values));
                            return ParseSizeLimitAction(text);
                          }),
                   [](const Config& config) {
                     return std::string(SizeLimitActionName(config.empty_dir_limit_action));
                   }});
  AddHostPathRows(table);
  table.push_back(PathRow("volume-plugin-dir",
                          "directory of flexVolume drivers, each <vendor~driver>/<driver>; empty: "
                          "none are looked for",
                          &Config::volume_plugin_dir, true));
  AddNfsRows(table);
  AddRecyclerRows(table);
  table.push_back(PathRow("machine-id-file",
                          "the machine's id, by which records of another machine are noticed",
                          &Config::machine_id_file, false));
  table.push_back(TextRow("token-issuer", "iss of service account tokens", &Config::token_issuer));
  return table;
}

// Accepts scalars and sequences of scalars; a map (node-labels) becomes key=value pairs.
Result<Values> NodeValues(const YAML::Node& node) {
  Values values;
  switch (node.Type()) {
    case YAML::NodeType::Null:
      return Values{""};
    case YAML::NodeType::Scalar:
      return Values{node.Scalar()};
    case YAML::NodeType::Sequence:
      for (const YAML::Node& element : node) {
        if (!element.IsScalar()) return Invalid("must be a list of plain values");
        values.push_back(element.Scalar());
      }
      return values;
    case YAML::NodeType::Map:
      for (const auto& pair : node) {
        if (!pair.second.IsScalar()) return Invalid("must be a map of plain values");
        values.push_back(pair.first.Scalar() + "=" + pair.second.Scalar());
      }
      return values;
    case YAML::NodeType::Undefined:
      break;
  }
  return Invalid("has no value");
}

constexpr size_t kMaxConfigBytes = size_t{1} << 20;

Result<FlagValues> ReadConfigFile(const std::string& path, bool must_exist) {
  std::error_code error;
  if (path.empty() || (!must_exist && !std::filesystem::exists(path, error))) return FlagValues();
  const Result<std::string> text = ReadRegularFile(path, kMaxConfigBytes);
  if (!text.ok()) return Invalid(path + ": cannot be read: " + text.error().message());
  YAML::Node document;
  try {
    document = YAML::Load(*text);
  } catch (const YAML::Exception& exception) {
    return Invalid(path + ": " + exception.what());
  }
  if (document.IsNull()) return FlagValues();
  if (!document.IsMap()) return Invalid(path + ": must be a map of settings");
  FlagValues values;
  std::vector<std::string> problems;
  for (const auto& pair : document) {
    if (!pair.first.IsScalar()) return Invalid(path + ": keys must be plain strings");
    const std::string& key = pair.first.Scalar();
    Result<Values> value = NodeValues(pair.second);
    if (!value.ok()) {
      problems.push_back(key + ": " + value.error().message());
    } else if (!values.emplace(key, std::move(value).value()).second) {
      problems.push_back(key + ": given twice");
    }
  }
  if (!problems.empty()) return Invalid(path + ": " + Join(problems, "; "));
  return values;
}

void Overlay(Config& config, const FlagValues& values, const std::string& origin,
             std::vector<std::string>& problems) {
  const std::vector<Row> table = MakeTable();
  for (const auto& [key, value] : values) {
    const std::string& name = key;  // a structured binding cannot be captured
    const auto row =
        std::find_if(table.begin(), table.end(), [&](const Row& r) { return r.key.name == name; });
    if (row == table.end()) {
      problems.push_back(origin + name + ": no such setting");
      continue;
    }
    if (Status status = row->set(config, value); !status.ok()) {
      problems.push_back(origin + name + ": " + status.error().message());
    }
  }
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

std::vector<ConfigKey> ConfigKeys() {
  std::vector<ConfigKey> keys;
  for (const Row& row : MakeTable()) keys.push_back(row.key);
  return keys;
}

std::vector<std::pair<std::string, std::string>> PrintConfig(const Config& config) {
  std::vector<std::pair<std::string, std::string>> printed;
  for (const Row& row : MakeTable()) {
    printed.emplace_back(row.key.name, row.print(config));
  }
  return printed;
}

Result<Config> LoadConfig(const std::string& path, bool must_exist, const FlagValues& flags) {
  ASSIGN_OR_RETURN(const FlagValues file, ReadConfigFile(path, must_exist));
  Config config;
  std::vector<std::string> problems;
  Overlay(config, file, path + ": ", problems);
  Overlay(config, flags, "--", problems);
  // Settings that contradict each other are reported only if each value has the right form.
  if (problems.empty()) problems = ProblemsOfValues(config);
  if (!problems.empty()) return Invalid(Join(problems, "\n"));
  return config;
}

std::string_view ReloadWord(const ConfigKey& key) {
  return key.reloadable ? "reloads on SIGHUP" : "needs a restart";
}

ReloadedConfig MergeReloadable(const Config& running, const Config& loaded) {
  ReloadedConfig merged{running, {}};
  for (const Row& row : MakeTable()) {
    const std::string before = row.print(running);
    const std::string after = row.print(loaded);
    if (before == after) continue;
    const bool taken = row.key.reloadable && row.set(merged.config, {after}).ok();
    merged.changes.push_back({std::string(row.key.name), before, after, taken});
  }
  return merged;
}

Result<Duration> ParseDuration(std::string_view text) {
  const auto refuse = [&] {
    return Invalid("'" + std::string(text) + "' is not a duration such as 500ms, 30s or 2m3s");
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
