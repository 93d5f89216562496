// The table of the configuration: one row per key, with its name, its help, its check, and how it
// is printed. Everything that has to know the keys (file, flags, reload, check-config, and the test
// of docs/CONFIGURATION.md) reads this table, so that a new key is one row here and one member of
// Config.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/config.h"
#include "agent/config_values.h"
#include "base/result.h"

namespace volumed {

struct ConfigRow {
  ConfigKey key;
  // Errors: InvalidArgument, not applied; the configuration is unchanged then.
  std::function<Status(Config&, const ConfigValue&)> set;
  std::function<std::string(const Config&)> print;
};

// The rows by sections, in the order in which people read them. The table is made once and never
// changes. Threads: any. Blocks: never.
const std::vector<ConfigRow>& ConfigTable();

}  // namespace volumed
