// The kinds of rows that the table of the configuration is made of. It is for the files that the
// table consists of.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/config.h"
#include "agent/config_table.h"
#include "agent/config_values.h"
#include "base/clock.h"
#include "base/result.h"

namespace volumed {

// All functions are pure. Threads: any.

// Sets the member to what `parse` makes of the value.
template <typename T, typename Parse>
std::function<Status(Config&, const ConfigValue&)> Setter(T Config::*field, Parse parse) {
  return [field, parse](Config& config, const ConfigValue& values) -> Status {
    ASSIGN_OR_RETURN(config.*field, parse(values));
    return OkStatus();
  };
}

// Agent::ApplyReload gives the new value to its users.
ConfigRow Reloadable(ConfigRow row);

ConfigRow PathRow(std::string_view name, std::string_view help, std::string Config::*field,
                  bool may_be_empty);
ConfigRow BoolRow(std::string_view name, std::string_view help, bool Config::*field);
ConfigRow PathsRow(std::string_view name, std::string_view help, ConfigValue Config::*field);
ConfigRow TextRow(std::string_view name, std::string_view help, std::string Config::*field);
// Both bounds are included, here and below.
ConfigRow IntRow(std::string_view name, std::string_view help, int Config::*field, int low,
                 int high);
ConfigRow DurationRow(std::string_view name, std::string_view help, Duration Config::*field,
                      Duration low, Duration high);
// A period, or 0s for never. One below `low` would keep the node busy with nothing else.
ConfigRow PeriodOrNeverRow(std::string_view name, std::string_view help, Duration Config::*field,
                           Duration low, Duration high);

// Groups of rows that stand in files of their own. They are added to the end of the table.
void AddCsiDriverRows(std::vector<ConfigRow>& table);  // the agent as a CSI driver

}  // namespace volumed
