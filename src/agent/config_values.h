// Reads the values of the configuration from text, each kind of value in one way, whether it comes
// from a file or from the command line.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "csi/csi_settings.h"
#include "csi/socket_dialer.h"
#include "pool/lvm_names.h"

namespace volumed {

// The value of one key as text; a list has several texts, everything else has one.
using ConfigValue = std::vector<std::string>;

// Threads: any. Blocks: never. Errors of all parsers: InvalidArgument, not applied, with the reason
// and without the key.

// The error that every parser here gives.
Error InvalidValue(std::string message);

// The text of a key that is no list: exactly one, which may be empty.
Result<std::string> One(const ConfigValue& values);
// Takes "true" or "false" and no other word for them.
Result<bool> ParseBool(const ConfigValue& values);
// Takes a decimal number from `low` to `high`, both included.
Result<int> ParseInt(const ConfigValue& values, int low, int high);
// Takes an absolute path in its shortest form, without control characters; it need not exist. The
// text "" is taken if `may_be_empty`.
Result<std::string> ParsePath(const ConfigValue& values, bool may_be_empty);
// The same for each item of a list, none of which may be empty; the list itself may be.
Result<ConfigValue> ParsePaths(const ConfigValue& values);
// Takes a duration as ParseDuration (agent/config.h) does, between the two bounds, both included.
Result<Duration> ParseDurationIn(const ConfigValue& values, Duration low, Duration high);
// Takes "host:port" as CheckAddress (agent/config_checks.h) does, or an empty text.
Result<std::string> ParseAddress(const ConfigValue& values);
// Takes texts of the form key=value, of which the value may be empty. If a key comes twice, the
// later value counts. Whether the names are Kubernetes' is checked elsewhere (ProblemsOfValues).
Result<std::map<std::string, std::string>> ParseLabels(const ConfigValue& values);
// Takes a DNS subdomain in any case and returns it in lower case, or an empty text. Source:
// kubernetes pkg/apis/core/validation/validation.go@v1.36.2 (ValidateNodeName).
Result<std::string> ParseNodeName(const ConfigValue& values);
Result<std::set<std::string>> ParseNodeNames(const ConfigValue& values);
// Takes uids, decimal numbers, as items or as one text with commas; at least one.
Result<SocketOwners> ParseSocketOwners(const ConfigValue& values);
// Takes names of CSI drivers, as items or as one text with commas; there may be none.
Result<std::set<std::string>> ParseDriverNames(const ConfigValue& values);
// Takes the name of one CSI driver.
Result<std::string> ParseDriverName(const ConfigValue& values);
// Takes the directory of each pool by its name, in order: name=/path. A name is a DNS label.
Result<std::vector<std::pair<std::string, std::string>>> ParsePools(const ConfigValue& values);
// Takes an export by its name, in order: name=server:/path, and behind a blank its options, as
// ParseStaticExport (pool/static_export.h) does. The text of each is kept as it is.
Result<std::vector<std::pair<std::string, std::string>>> ParseStaticExports(
    const ConfigValue& values);
// Takes a volume group and its thin pool by the name of a pool: name=group/thinpool.
Result<std::map<std::string, LvmNames>> ParsePoolLvm(const ConfigValue& values);
// Takes a quantity of bytes by the name of a pool, 1Mi at least: name=10Gi, as items or as one text
// with commas.
Result<std::map<std::string, int64_t>> ParsePoolCapacity(const ConfigValue& values);
// Takes what CSI_ENDPOINT says, and returns the path of the socket: "unix:///csi/csi.sock",
// "unix:/csi/csi.sock" or the path itself. Source: CSI spec v1.13.0, "Environment Variables".
Result<std::string> ParseCsiEndpoint(const std::string& text);
// Takes the path of a socket by the name of its driver: driver=/path, as items or as one text with
// commas.
Result<std::map<std::string, std::string>> ParseDriverSockets(const ConfigValue& values);
// Takes a whole number of bytes, as a quantity of Kubernetes ("16Mi"), between the two bounds, both
// included.
Result<int64_t> ParseBytes(const ConfigValue& values, int64_t low, int64_t high);
// Takes "auto", "objects" or "controller"; and "1.12" or "1.13".
Result<CsiAttach> ParseCsiAttach(const ConfigValue& values);
std::string CsiAttachText(CsiAttach attach);
Result<CsiLevel> ParseCsiLevel(const ConfigValue& values);
std::string CsiLevelText(CsiLevel level);
// Takes the most volumes that the node attaches, by the name of the plugin: plugin=number, as items
// or as one text with commas. Plugins that attach no volumes are refused.
Result<std::map<std::string, int64_t>> ParseAttachLimits(const ConfigValue& values);

}  // namespace volumed
