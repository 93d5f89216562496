// Reads the values of the configuration from text, each kind of value in one way, whether it comes
// from a file or from the command line.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace volumed {

// The value of one key as text; a list has several texts, everything else has one.
using ConfigValue = std::vector<std::string>;

// Threads: any. Blocks: never. Errors of all parsers: InvalidArgument, not applied, with the reason
// and without the key.

Error InvalidValue(std::string message);

Result<std::string> One(const ConfigValue& values);
Result<bool> ParseBool(const ConfigValue& values);
Result<int> ParseInt(const ConfigValue& values, int low, int high);
// Takes an absolute path in its shortest form.
Result<std::string> ParsePath(const ConfigValue& values, bool may_be_empty);
Result<ConfigValue> ParsePaths(const ConfigValue& values);
// Takes a duration as ParseDuration (agent/config.h) does, between the two bounds.
Result<Duration> ParseDurationIn(const ConfigValue& values, Duration low, Duration high);
// Takes "host:port", or an empty text.
Result<std::string> ParseAddress(const ConfigValue& values);
// Takes texts of the form key=value.
Result<std::map<std::string, std::string>> ParseLabels(const ConfigValue& values);
Result<std::string> ParseNodeName(const ConfigValue& values);
// Takes the most volumes that the node attaches, by the name of the plugin.
Result<std::map<std::string, int64_t>> ParseAttachLimits(const ConfigValue& values);

}  // namespace volumed
