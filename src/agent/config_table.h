// The table of the configuration: one row per key, with its name, its help, its check, and how it
// is printed. Everything that has to know the keys (file, flags, reload, check-config and
// docs/CONFIGURATION.md) is made from this table or held to it, so that a new key is one row here
// and one member of Config.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/config.h"
#include "agent/config_values.h"
#include "base/result.h"

namespace volumed {

// One key. A key that may be reloaded has also to be given to its users, by Agent::ApplyReload.
struct ConfigRow {
  ConfigKey key;
  // Errors: InvalidArgument, not applied; the configuration is unchanged then.
  std::function<Status(Config&, const ConfigValue&)> set;
  // The value as text. If the key is reloadable, `set` reads this text back as a single value, also
  // that of a list: a reload copies settings so.
  std::function<std::string(const Config&)> print;
};

// The rows by sections, in the order in which people read them. The table is made once and never
// changes. Threads: any. Blocks: never.
const std::vector<ConfigRow>& ConfigTable();

}  // namespace volumed
