#include "agent/config_rows.h"

#include "base/strings.h"

namespace volumed {

ConfigRow Reloadable(ConfigRow row) {
  row.key.reloadable = true;
  return row;
}

ConfigRow PathRow(std::string_view name, std::string_view help, std::string Config::*field,
                  bool may_be_empty) {
  return {
      {name, "path", help, false},
      Setter(field, [may_be_empty](const ConfigValue& v) { return ParsePath(v, may_be_empty); }),
      [field](const Config& config) { return config.*field; }};
}

ConfigRow BoolRow(std::string_view name, std::string_view help, bool Config::*field) {
  return {{name, "boolean", help, false}, Setter(field, ParseBool), [field](const Config& config) {
            return std::string(config.*field ? "true" : "false");
          }};
}

ConfigRow PathsRow(std::string_view name, std::string_view help, ConfigValue Config::*field) {
  return {{name, "list of paths", help, false},
          Setter(field, ParsePaths),
          [field](const Config& config) { return Join(config.*field, ","); }};
}

ConfigRow TextRow(std::string_view name, std::string_view help, std::string Config::*field) {
  return {{name, "string", help, false}, Setter(field, One), [field](const Config& config) {
            return config.*field;
          }};
}

ConfigRow IntRow(std::string_view name, std::string_view help, int Config::*field, int low,
                 int high) {
  return {{name, "integer", help, false},
          Setter(field, [low, high](const ConfigValue& v) { return ParseInt(v, low, high); }),
          [field](const Config& config) { return std::to_string(config.*field); }};
}

ConfigRow DurationRow(std::string_view name, std::string_view help, Duration Config::*field,
                      Duration low, Duration high) {
  ConfigRow row;
  row.key = {name, "duration", help, false};
  row.set = Setter(field, [low, high](const auto& v) { return ParseDurationIn(v, low, high); });
  row.print = [field](const Config& config) { return FormatDuration(config.*field); };
  return row;
}

ConfigRow PeriodOrNeverRow(std::string_view name, std::string_view help, Duration Config::*field,
                           Duration low, Duration high) {
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

}  // namespace volumed
