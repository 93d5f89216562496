// How rows of the configuration's table are made: one function for each kind of value. It is for
// the files that the table consists of.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/config_table.h"
#include "agent/config_values.h"
#include "base/clock.h"
#include "base/strings.h"

namespace volumed {

// Threads: any. Blocks: never.

// Agent::ApplyReload gives the new value to its users.
inline ConfigRow Reloadable(ConfigRow row) {
  row.key.reloadable = true;
  return row;
}

template <typename T, typename Parse>
std::function<Status(Config&, const ConfigValue&)> Setter(T Config::*field, Parse parse) {
  return [field, parse](Config& config, const ConfigValue& values) -> Status {
    ASSIGN_OR_RETURN(config.*field, parse(values));
    return OkStatus();
  };
}

inline ConfigRow PathRow(std::string_view name, std::string_view help, std::string Config::*field,
                         bool may_be_empty) {
  return {
      {name, "path", help, false},
      Setter(field, [may_be_empty](const ConfigValue& v) { return ParsePath(v, may_be_empty); }),
      [field](const Config& config) { return config.*field; }};
}

inline ConfigRow BoolRow(std::string_view name, std::string_view help, bool Config::*field) {
  return {{name, "boolean", help, false}, Setter(field, ParseBool), [field](const Config& config) {
            return std::string(config.*field ? "true" : "false");
          }};
}

inline ConfigRow PathsRow(std::string_view name, std::string_view help,
                          ConfigValue Config::*field) {
  return {{name, "list of paths", help, false},
          Setter(field, ParsePaths),
          [field](const Config& config) { return Join(config.*field, ","); }};
}

inline ConfigRow TextRow(std::string_view name, std::string_view help, std::string Config::*field) {
  return {{name, "string", help, false}, Setter(field, One), [field](const Config& config) {
            return config.*field;
          }};
}

inline ConfigRow IntRow(std::string_view name, std::string_view help, int Config::*field, int low,
                        int high) {
  return {{name, "integer", help, false},
          Setter(field, [low, high](const ConfigValue& v) { return ParseInt(v, low, high); }),
          [field](const Config& config) { return std::to_string(config.*field); }};
}

inline ConfigRow DurationRow(std::string_view name, std::string_view help, Duration Config::*field,
                             Duration low, Duration high) {
  ConfigRow row;
  row.key = {name, "duration", help, false};
  row.set = Setter(field, [low, high](const auto& v) { return ParseDurationIn(v, low, high); });
  row.print = [field](const Config& config) { return FormatDuration(config.*field); };
  return row;
}

// A period, or 0s for never. One below `low` would keep the node busy with nothing else.
inline ConfigRow PeriodOrNeverRow(std::string_view name, std::string_view help,
                                  Duration Config::*field, Duration low, Duration high) {
  ConfigRow row = DurationRow(name, help, field, low, high);
  row.set = Setter(field, [low, high](const ConfigValue& v) -> Result<Duration> {
    Result<Duration> never = ParseDurationIn(v, Duration::zero(), Duration::zero());
    if (never.ok()) return never;
    Result<Duration> period = ParseDurationIn(v, low, high);
    if (!period.ok()) return InvalidValue(period.error().message() + "; or 0s: never");
    return period;
  });
  return row;
}

// Groups of rows that stand in files of their own. They are added to the end of the table.
void AddCsiDriverRows(std::vector<ConfigRow>& table);  // the agent as a CSI driver

}  // namespace volumed
