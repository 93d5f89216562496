#include "agent/config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "agent/config_checks.h"
#include "agent/config_table.h"
#include "agent/config_values.h"
#include "base/regular_file.h"
#include "base/strings.h"
#include "kube/unknown_fields.h"

namespace volumed {
namespace {

// Accepts scalars and sequences of scalars; a map (node-labels) becomes key=value pairs.
Result<ConfigValue> NodeValues(const YAML::Node& node) {
  ConfigValue values;
  switch (node.Type()) {
    case YAML::NodeType::Null:
      return ConfigValue{""};
    case YAML::NodeType::Scalar:
      return ConfigValue{node.Scalar()};
    case YAML::NodeType::Sequence:
      for (const YAML::Node& element : node) {
        if (!element.IsScalar()) return InvalidValue("must be a list of plain values");
        values.push_back(element.Scalar());
      }
      return values;
    case YAML::NodeType::Map:
      for (const auto& pair : node) {
        if (!pair.second.IsScalar()) return InvalidValue("must be a map of plain values");
        values.push_back(pair.first.Scalar() + "=" + pair.second.Scalar());
      }
      return values;
    case YAML::NodeType::Undefined:
      break;
  }
  return InvalidValue("has no value");
}

constexpr size_t kMaxConfigBytes = size_t{1} << 20;

Result<FlagValues> ReadConfigFile(const std::string& path, bool must_exist) {
  std::error_code error;
  if (path.empty() || (!must_exist && !std::filesystem::exists(path, error))) return FlagValues();
  const Result<std::string> text = ReadRegularFile(path, kMaxConfigBytes);
  if (!text.ok()) return InvalidValue(path + ": cannot be read: " + text.error().message());
  YAML::Node document;
  try {
    document = YAML::Load(*text);
  } catch (const YAML::Exception& exception) {
    return InvalidValue(path + ": " + exception.what());
  }
  if (document.IsNull()) return FlagValues();
  if (!document.IsMap()) return InvalidValue(path + ": must be a map of settings");
  FlagValues values;
  std::vector<std::string> problems;
  for (const auto& pair : document) {
    if (!pair.first.IsScalar()) return InvalidValue(path + ": keys must be plain strings");
    const std::string& key = pair.first.Scalar();
    Result<ConfigValue> value = NodeValues(pair.second);
    if (!value.ok()) {
      problems.push_back(key + ": " + value.error().message());
    } else if (!values.emplace(key, std::move(value).value()).second) {
      problems.push_back(key + ": given twice");
    }
  }
  if (!problems.empty()) return InvalidValue(path + ": " + Join(problems, "; "));
  return values;
}

// "; did you mean csi-serve?"; empty if none is near.
std::string NearSetting(const std::string& name) {
  std::vector<std::string_view> known;
  for (const ConfigRow& row : ConfigTable()) known.push_back(row.key.name);
  const std::string near = Nearest(name, known);
  return near.empty() ? "" : "; did you mean " + near + "?";
}

void Overlay(Config& config, const FlagValues& values, const std::string& origin,
             std::vector<std::string>& problems) {
  const std::vector<ConfigRow>& table = ConfigTable();
  for (const auto& [key, value] : values) {
    const std::string& name = key;  // a structured binding cannot be captured
    const auto row = std::find_if(table.begin(), table.end(),
                                  [&](const ConfigRow& r) { return r.key.name == name; });
    if (row == table.end()) {
      problems.push_back(origin + name + ": no such setting" + NearSetting(name));
      continue;
    }
    if (Status status = row->set(config, value); !status.ok()) {
      problems.push_back(origin + name + ": " + status.error().message());
    }
  }
}

// Whoever runs the agent as a CSI driver alone may say where its socket is in the way of all
// drivers.
void UseCsiEndpoint(Config& config, std::vector<std::string>& problems) {
  const char* const endpoint = std::getenv("CSI_ENDPOINT");
  if (!config.csi_only || !config.csi_serve.empty() || endpoint == nullptr) return;
  Result<std::string> path = ParseCsiEndpoint(endpoint);
  if (path.ok()) {
    config.csi_serve = std::move(path).value();
  } else {
    problems.push_back("CSI_ENDPOINT: " + path.error().message());
  }
}

}  // namespace

std::vector<ConfigKey> ConfigKeys() {
  std::vector<ConfigKey> keys;
  for (const ConfigRow& row : ConfigTable()) keys.push_back(row.key);
  return keys;
}

std::vector<std::pair<std::string, std::string>> PrintConfig(const Config& config) {
  std::vector<std::pair<std::string, std::string>> printed;
  for (const ConfigRow& row : ConfigTable()) {
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
  UseCsiEndpoint(config, problems);
  // Settings that contradict each other are reported only if each value has the right form.
  if (problems.empty()) problems = ProblemsOfValues(config);
  if (!problems.empty()) return InvalidValue(Join(problems, "\n"));
  return config;
}

std::string_view ReloadWord(const ConfigKey& key) {
  return key.reloadable ? "reloads on SIGHUP" : "needs a restart";
}

ReloadedConfig MergeReloadable(const Config& running, const Config& loaded) {
  ReloadedConfig merged{running, {}};
  for (const ConfigRow& row : ConfigTable()) {
    const std::string before = row.print(running);
    const std::string after = row.print(loaded);
    if (before == after) continue;
    const bool taken = row.key.reloadable && row.set(merged.config, {after}).ok();
    merged.changes.push_back({std::string(row.key.name), before, after, taken});
  }
  return merged;
}

}  // namespace volumed
