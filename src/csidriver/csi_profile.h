// What the CSI driver says that it can do: the capabilities of its four services, by profile and
// level, of what handlers serve.
//
// A profile is the place that the driver has in a cluster. As one of many, each for the volumes of
// its own node, it must not have what only one for all nodes can do. A level is a version of the
// specification: a driver must not name a capability that its caller's version does not know, nor
// one that csi-sanity of that version (5.4.0 for 1.12, 5.6.0 for 1.13) does not. And
// nothing is named that no handler serves, so the table of handlers alone decides what is promised.
// Source: CSI spec v1.12.0 and v1.13.0; which of their capabilities are alpha does not matter else.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "csi.pb.h"

namespace volumed {

enum class CsiProfile {
  kNode,     // one driver on each node, each with the volumes of its node
  kCentral,  // one controller for all nodes
};
// "node", "central".
std::string_view CsiProfileName(CsiProfile profile);
// Errors: InvalidArgument, not applied.
Result<CsiProfile> ParseCsiProfile(std::string_view name);

// Of the specification; what both have is of the first.
enum class CsiServeLevel { k1_12, k1_13 };
// "1.12", "1.13".
std::string_view CsiServeLevelName(CsiServeLevel level);
// Errors: InvalidArgument, not applied.
Result<CsiServeLevel> ParseCsiServeLevel(std::string_view name);

// What handlers do that is more than an RPC of its own.
enum class CsiFeature {
  kTopology,          // volumes and NodeGetInfo say from where they can be reached
  kClone,             // CreateVolume takes a volume as its source
  kRestore,           // CreateVolume takes a snapshot as its source
  kReadOnlyPublish,   // ControllerPublishVolume heeds `readonly`
  kPublishedNodes,    // ListVolumes says where volumes are published
  kMultiWriter,       // the access modes SINGLE_NODE_SINGLE_WRITER and SINGLE_NODE_MULTI_WRITER
  kMountGroup,        // NodeStageVolume and NodePublishVolume heed volume_mount_group
  kCondition,         // NodeGetVolumeStats and the controller's lists tell of a VolumeCondition
  kSnapshotTopology,  // snapshots say from where they can be reached
};

// What the table of handlers has. RPCs are named as in the proto: "NodeStageVolume".
struct CsiServed {
  std::set<std::string, std::less<>> rpcs;
  std::set<CsiFeature> features;
};

struct CsiCapabilities {
  std::vector<::csi::v1::PluginCapability::Service::Type> plugin;
  std::optional<::csi::v1::PluginCapability::VolumeExpansion::Type> expansion;
  std::vector<::csi::v1::ControllerServiceCapability::RPC::Type> controller;
  std::vector<::csi::v1::GroupControllerServiceCapability::RPC::Type> group;
  std::vector<::csi::v1::NodeServiceCapability::RPC::Type> node;
};

// All are pure; threads: any.
//
// Whether a driver of this profile and level may serve the RPC at all: one that belongs to
// capabilities which it may not have is answered as if it did not exist.
bool CsiMayServe(CsiProfile profile, CsiServeLevel level, std::string_view rpc);
// The capabilities, each in the order of its enum.
CsiCapabilities CsiCapabilitiesOf(CsiProfile profile, CsiServeLevel level, const CsiServed& served);

}  // namespace volumed
