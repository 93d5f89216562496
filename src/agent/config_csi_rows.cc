// The rows of the configuration's table that are about the agent as a CSI driver.
#include <cstdint>

#include "agent/config_rows.h"
#include "agent/csi_serve_settings.h"
#include "base/quantity.h"
#include "base/strings.h"

namespace volumed {
namespace {

// A request is a few kilobytes; beyond the second bound one peer could use up the agent's memory.
constexpr int64_t kLeastServedMessage = int64_t{64} * 1024;
constexpr int64_t kMostServedMessage = int64_t{64} * 1024 * 1024;

constexpr int kMostVolumesOfNode = 100000;

// Where the driver is reached, and by whom.
void AddCsiServeSocketRows(std::vector<ConfigRow>& table) {
  table.push_back(PathRow("csi-serve",
                          "unix socket at which the agent is a CSI driver; empty: it is none",
                          &Config::csi_serve, true));
  table.push_back(TextRow("csi-serve-group", "group whose members may call the driver, too",
                          &Config::csi_serve_group));
  table.push_back(PathRow("csi-registry",
                          "directory of a kubelet in which the driver registers; empty: none",
                          &Config::csi_registry, true));
  table.push_back(PathRow("csi-registered-endpoint",
                          "the driver's socket as the kubelet sees it; default: csi-serve",
                          &Config::csi_registered_endpoint, true));
  table.push_back(BoolRow("csi-only",
                          "nothing but the CSI driver: no manifests, no pods, no drivers of "
                          "others; its socket may be named by CSI_ENDPOINT in the environment",
                          &Config::csi_only));
}

// What the driver is, and how much of it there is.
void AddCsiServeRows(std::vector<ConfigRow>& table) {
  table.push_back(
      {{"csi-profile", "node|central",
        "what the driver is for: the volumes of its node, or the volumes of all nodes", false},
       Setter(&Config::csi_profile,
              [](const ConfigValue& values) -> Result<CsiProfile> {
                ASSIGN_OR_RETURN(const std::string text, One(values));
                return ParseCsiProfile(text);
              }),
       [](const Config& config) { return std::string(CsiProfileName(config.csi_profile)); }});
  table.push_back({{"csi-serve-level", "1.12|1.13",
                    "of the CSI specification, whose capabilities the driver announces", false},
                   Setter(&Config::csi_serve_level,
                          [](const ConfigValue& values) -> Result<CsiServeLevel> {
                            ASSIGN_OR_RETURN(const std::string text, One(values));
                            return ParseCsiServeLevel(text);
                          }),
                   [](const Config& config) {
                     return std::string(CsiServeLevelName(config.csi_serve_level));
                   }});
  table.push_back(IntRow("csi-serve-calls", "most calls of the driver that go on at a time",
                         &Config::csi_serve_calls, 1, 16384));
  table.push_back(IntRow("csi-serve-rate", "most calls that a peer begins within a second",
                         &Config::csi_serve_rate, 1, 100000));
  table.push_back(
      {{"csi-serve-message", "bytes", "the largest request that the driver takes", false},
       Setter(&Config::csi_serve_message,
              [](const ConfigValue& v) {
                return ParseBytes(v, kLeastServedMessage, kMostServedMessage);
              }),
       [](const Config& config) {
         return Quantity::FromBytes(config.csi_serve_message).String();
       }});
}

// Where volumes may be, and how many of them.
void AddCsiNodeRows(std::vector<ConfigRow>& table) {
  table.push_back(PathsRow(kCsiTargetRoots,
                           "directories in which callers of the driver may have volumes put",
                           &Config::csi_target_roots));
  table.push_back(IntRow("csi-max-volumes",
                         "most volumes that are published to a node at a time; 0: no limit",
                         &Config::csi_max_volumes, 0, kMostVolumesOfNode));
  table.push_back({{"csi-nodes", "list of node ids",
                    "nodes to which volumes may be published, besides this one (csi-profile "
                    "central)",
                    false},
                   Setter(&Config::csi_nodes, ParseNodeNames),
                   [](const Config& config) { return Join(config.csi_nodes, ","); }});
}

}  // namespace

void AddCsiDriverRows(std::vector<ConfigRow>& table) {
  AddCsiServeSocketRows(table);
  AddCsiServeRows(table);
  AddCsiNodeRows(table);
}

}  // namespace volumed
