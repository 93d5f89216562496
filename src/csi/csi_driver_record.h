// What is known of a CSI driver, and the row in which it outlives the agent: so that a driver that
// is away changes no answer about its volumes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/wire_fields.h"
#include "records/record_store.h"

namespace volumed {

inline constexpr const char* kCsiDriverRecordKind = "csi-driver";
inline constexpr uint32_t kCsiDriverRecordVersion = 1;
// By it volumes are torn down.
inline constexpr Durability kCsiDriverRecordDurability = Durability::kPowerLoss;

// What a driver has said of itself. Capabilities are the numbers of csi.proto, sorted, each once;
// those that this program does not know are kept.
struct CsiDriverFacts {
  std::string name;
  std::string endpoint;             // the path of its socket, as it registered it
  std::string controller_endpoint;  // of its controller, if that is at another socket
  std::string version;              // the highest that it registered: "1.0.0"
  std::string vendor_version;
  std::string node_id;                       // what it calls this node
  std::vector<int32_t> plugin_capabilities;  // PluginCapability.Service.Type
  std::vector<int32_t> expansion;            // PluginCapability.VolumeExpansion.Type
  std::vector<int32_t> node_capabilities;    // NodeServiceCapability.RPC.Type
  // ControllerServiceCapability.RPC.Type; none: it has no controller that this node reaches.
  std::vector<int32_t> controller_capabilities;
  std::map<std::string, std::string> topology;
  int64_t max_volumes = 0;  // of this node; 0: the driver does not say

  bool HasPlugin(int32_t capability) const;
  bool HasNode(int32_t capability) const;
  bool HasController(int32_t capability) const;
  friend bool operator==(const CsiDriverFacts&, const CsiDriverFacts&) = default;
};

// Key: the driver's name.
struct CsiDriverRecord {
  CsiDriverFacts facts;
  std::string socket;              // by which it registered last
  int64_t last_ready_unix_ms = 0;  // when it last said what it can do; for people
  friend bool operator==(const CsiDriverRecord&, const CsiDriverRecord&) = default;
};

Record EncodeRecord(const CsiDriverRecord& record);
// Errors: those of ParseRow(); DataLoss, not applied, under a key that is not the driver's name.
Result<CsiDriverRecord> DecodeCsiDriverRecord(const Record& row);

}  // namespace volumed
