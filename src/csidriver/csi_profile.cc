#include "csidriver/csi_profile.h"

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace volumed {
namespace {

using Plugin = ::csi::v1::PluginCapability::Service;
using Expansion = ::csi::v1::PluginCapability::VolumeExpansion;
using Controller = ::csi::v1::ControllerServiceCapability::RPC;
using Group = ::csi::v1::GroupControllerServiceCapability::RPC;
using Node = ::csi::v1::NodeServiceCapability::RPC;

enum class Profiles { kAll, kCentral };
// kNamedAt1_13: its RPCs are served at each level.
enum class Levels { kAll, k1_12, k1_13, kNamedAt1_13 };

// A capability is had if each of these RPCs and features is served.
template <typename Type>
struct Row {
  Type type;
  // With blanks between them. An RPC that rows name may be served only if one of these rows is of
  // the profile and the level.
  std::string_view rpcs;
  std::optional<CsiFeature> feature = std::nullopt;
  Profiles profiles = Profiles::kAll;
  Levels levels = Levels::kAll;
};

constexpr std::string_view kBothForWriters = "CreateVolume NodePublishVolume";

constexpr std::array kPluginRows{
    Row<Plugin::Type>{Plugin::CONTROLLER_SERVICE,
                      "ControllerGetCapabilities ValidateVolumeCapabilities"},
    Row<Plugin::Type>{Plugin::VOLUME_ACCESSIBILITY_CONSTRAINTS, "", CsiFeature::kTopology},
    Row<Plugin::Type>{Plugin::GROUP_CONTROLLER_SERVICE,
                      "GroupControllerGetCapabilities CreateVolumeGroupSnapshot"},
    Row<Plugin::Type>{Plugin::SNAPSHOT_METADATA_SERVICE, "GetMetadataAllocated GetMetadataDelta"},
    Row<Plugin::Type>{Plugin::SNAPSHOT_ACCESSIBILITY_CONSTRAINTS, "", CsiFeature::kSnapshotTopology,
                      Profiles::kAll, Levels::k1_13},
};

// Volumes grow also while they are published.
constexpr std::array kExpansionRows{
    Row<Expansion::Type>{Expansion::ONLINE, "NodeExpandVolume"},
};

constexpr std::array kControllerRows{
    Row<Controller::Type>{Controller::CREATE_DELETE_VOLUME, "CreateVolume DeleteVolume"},
    Row<Controller::Type>{Controller::PUBLISH_UNPUBLISH_VOLUME,
                          "ControllerPublishVolume ControllerUnpublishVolume", std::nullopt,
                          Profiles::kCentral},
    Row<Controller::Type>{Controller::LIST_VOLUMES, "ListVolumes"},
    Row<Controller::Type>{Controller::GET_CAPACITY, "GetCapacity"},
    Row<Controller::Type>{Controller::CREATE_DELETE_SNAPSHOT, "CreateSnapshot DeleteSnapshot",
                          CsiFeature::kRestore},
    Row<Controller::Type>{Controller::LIST_SNAPSHOTS, "ListSnapshots"},
    Row<Controller::Type>{Controller::CLONE_VOLUME, "CreateVolume", CsiFeature::kClone},
    Row<Controller::Type>{Controller::PUBLISH_READONLY, "ControllerPublishVolume",
                          CsiFeature::kReadOnlyPublish, Profiles::kCentral},
    Row<Controller::Type>{Controller::EXPAND_VOLUME, "ControllerExpandVolume", std::nullopt,
                          Profiles::kCentral},
    Row<Controller::Type>{Controller::LIST_VOLUMES_PUBLISHED_NODES, "ListVolumes",
                          CsiFeature::kPublishedNodes, Profiles::kCentral},
    Row<Controller::Type>{Controller::VOLUME_CONDITION, "ListVolumes ControllerGetVolume",
                          CsiFeature::kCondition, Profiles::kAll, Levels::k1_12},
    Row<Controller::Type>{Controller::GET_VOLUME, "ControllerGetVolume"},
    // The two services have it together, or neither.
    Row<Controller::Type>{Controller::SINGLE_NODE_MULTI_WRITER, kBothForWriters,
                          CsiFeature::kMultiWriter},
    Row<Controller::Type>{Controller::MODIFY_VOLUME, "ControllerModifyVolume", std::nullopt,
                          Profiles::kCentral},
    // It came with level 1.12, as alpha. But the suite of that level, csi-sanity 5.4.0, fails a
    // driver that names it, as it has it on no list.
    Row<Controller::Type>{Controller::GET_SNAPSHOT, "GetSnapshot", std::nullopt, Profiles::kAll,
                          Levels::kNamedAt1_13},
    Row<Controller::Type>{Controller::GET_VOLUME_HEALTH, "ControllerGetVolumeHealth", std::nullopt,
                          Profiles::kAll, Levels::k1_13},
    Row<Controller::Type>{Controller::LIST_VOLUME_HEALTH,
                          "ControllerListVolumeHealth ControllerGetVolumeHealth", std::nullopt,
                          Profiles::kAll, Levels::k1_13},
};

constexpr std::array kGroupRows{
    Row<Group::Type>{Group::CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT,
                     "CreateVolumeGroupSnapshot DeleteVolumeGroupSnapshot GetVolumeGroupSnapshot"},
};

constexpr std::array kNodeRows{
    Row<Node::Type>{Node::STAGE_UNSTAGE_VOLUME, "NodeStageVolume NodeUnstageVolume"},
    Row<Node::Type>{Node::GET_VOLUME_STATS, "NodeGetVolumeStats"},
    Row<Node::Type>{Node::EXPAND_VOLUME, "NodeExpandVolume"},
    Row<Node::Type>{Node::VOLUME_CONDITION, "NodeGetVolumeStats", CsiFeature::kCondition,
                    Profiles::kAll, Levels::k1_12},
    Row<Node::Type>{Node::SINGLE_NODE_MULTI_WRITER, kBothForWriters, CsiFeature::kMultiWriter},
    Row<Node::Type>{Node::VOLUME_MOUNT_GROUP, "NodePublishVolume", CsiFeature::kMountGroup},
    Row<Node::Type>{Node::GET_VOLUME_HEALTH, "NodeGetVolumeHealth", std::nullopt, Profiles::kAll,
                    Levels::k1_13},
    Row<Node::Type>{Node::GET_STORAGE_HEALTH, "NodeGetStorageHealth", std::nullopt, Profiles::kAll,
                    Levels::k1_13},
};

bool IsOf(Profiles profiles, CsiProfile profile) {
  return profiles == Profiles::kAll || profile == CsiProfile::kCentral;
}

bool IsNamed(Levels levels, CsiServeLevel level) {
  return levels == Levels::kAll || (levels == Levels::k1_12) == (level == CsiServeLevel::k1_12);
}

bool MayServe(Levels levels, CsiServeLevel level) {
  return levels == Levels::kNamedAt1_13 || IsNamed(levels, level);
}

// Whether rows name the RPC, and whether one of them is of this profile and level.
struct Named {
  bool at_all = false;
  bool here = false;
};

template <typename Rows>
void Find(const Rows& rows, CsiProfile profile, CsiServeLevel level, std::string_view rpc,
          Named& named) {
  for (const auto& row : rows) {
    const std::vector<std::string> rpcs = SplitNonEmpty(row.rpcs, ' ');
    if (std::find(rpcs.begin(), rpcs.end(), rpc) == rpcs.end()) continue;
    named.at_all = true;
    named.here = named.here || (IsOf(row.profiles, profile) && MayServe(row.levels, level));
  }
}

template <typename Type, size_t size>
std::vector<Type> Had(const std::array<Row<Type>, size>& rows, CsiProfile profile,
                      CsiServeLevel level, const CsiServed& served) {
  std::vector<Type> had;
  for (const Row<Type>& row : rows) {
    const std::vector<std::string> rpcs = SplitNonEmpty(row.rpcs, ' ');
    const bool are_served = std::all_of(rpcs.begin(), rpcs.end(), [&](const std::string& rpc) {
      return served.rpcs.contains(rpc);
    });
    const bool has_feature = !row.feature || served.features.contains(*row.feature);
    if (are_served && has_feature && IsOf(row.profiles, profile) && IsNamed(row.levels, level)) {
      had.push_back(row.type);
    }
  }
  return had;
}

// Those that a caller may ask for only if the plugin has the service.
template <typename Type>
void DropWithout(Plugin::Type service, const std::vector<Plugin::Type>& plugin,
                 std::vector<Type>& capabilities) {
  if (std::find(plugin.begin(), plugin.end(), service) == plugin.end()) capabilities.clear();
}

Error NoSuch(std::string_view what, std::string_view name) {
  return Error::NotApplied(Code::kInvalidArgument,
                           "must be " + std::string(what) + ", not '" + std::string(name) + "'");
}

}  // namespace

std::string_view CsiProfileName(CsiProfile profile) {
  switch (profile) {
    case CsiProfile::kNode:
      return "node";
    case CsiProfile::kCentral:
      return "central";
  }
  return "unknown";
}

Result<CsiProfile> ParseCsiProfile(std::string_view name) {
  for (const CsiProfile profile : {CsiProfile::kNode, CsiProfile::kCentral}) {
    if (name == CsiProfileName(profile)) return profile;
  }
  return NoSuch("node or central", name);
}

std::string_view CsiServeLevelName(CsiServeLevel level) {
  switch (level) {
    case CsiServeLevel::k1_12:
      return "1.12";
    case CsiServeLevel::k1_13:
      return "1.13";
  }
  return "unknown";
}

Result<CsiServeLevel> ParseCsiServeLevel(std::string_view name) {
  for (const CsiServeLevel level : {CsiServeLevel::k1_12, CsiServeLevel::k1_13}) {
    if (name == CsiServeLevelName(level)) return level;
  }
  return NoSuch("1.12 or 1.13", name);
}

bool CsiMayServe(CsiProfile profile, CsiServeLevel level, std::string_view rpc) {
  Named named;
  Find(kPluginRows, profile, level, rpc, named);
  Find(kExpansionRows, profile, level, rpc, named);
  Find(kControllerRows, profile, level, rpc, named);
  Find(kGroupRows, profile, level, rpc, named);
  Find(kNodeRows, profile, level, rpc, named);
  return !named.at_all || named.here;
}

CsiCapabilities CsiCapabilitiesOf(CsiProfile profile, CsiServeLevel level,
                                  const CsiServed& served) {
  CsiCapabilities had;
  had.plugin = Had(kPluginRows, profile, level, served);
  const auto expansions = Had(kExpansionRows, profile, level, served);
  if (!expansions.empty()) had.expansion = expansions.front();
  had.controller = Had(kControllerRows, profile, level, served);
  had.group = Had(kGroupRows, profile, level, served);
  had.node = Had(kNodeRows, profile, level, served);
  DropWithout(Plugin::CONTROLLER_SERVICE, had.plugin, had.controller);
  DropWithout(Plugin::GROUP_CONTROLLER_SERVICE, had.plugin, had.group);
  return had;
}

}  // namespace volumed
