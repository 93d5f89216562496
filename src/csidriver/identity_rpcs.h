// The RPCs of the CSI driver that are about the driver and its node, and not about storage: the
// service Identity, what each service can do, and who the node is. They answer from what is known
// anyway: nothing is read, and no record is needed by those that a registration asks for.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "csidriver/csi_service.h"

namespace volumed {

struct CsiIdentity {
  std::string driver;   // GetPluginInfo.name; of a driver it never changes
  std::string version;  // of the program
  std::string node;     // NodeGetInfo.node_id
  // From where the volumes of this node can be reached; empty: nothing is said of it.
  std::map<std::string, std::string> topology = {};
  int64_t most_volumes = 0;  // that are published to the node; 0: the caller decides
};

// Adds the handlers of GetPluginInfo, GetPluginCapabilities, Probe, ControllerGetCapabilities,
// GroupControllerGetCapabilities, NodeGetCapabilities and NodeGetInfo; with a topology the feature
// kTopology, too. `is_ready` is asked on the control thread by Probe, which says ready=false until
// it is so. The handlers outlive the calls; the capabilities are those of all rows, also of such as
// are added later.
// Source: CSI spec v1.13.0, "Identity Service RPC", NodeGetInfo.
void AddIdentityRpcs(CsiHandlers& handlers, const CsiIdentity& identity,
                     std::function<bool()> is_ready);

}  // namespace volumed
