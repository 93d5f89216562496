#include "csi/csi_capabilities.h"

#include <algorithm>
#include <utility>

#include "csi/csi_names.h"
#include "volume/storage_name.h"

namespace volumed {
namespace {

using AccessModes = ::csi::v1::VolumeCapability_AccessMode;
using NodeCan = ::csi::v1::NodeServiceCapability_RPC;

// A word of one mode. Drivers that know more exact ones say so.
AccessModes::Mode ModeOf(AccessMode mode, bool single_node_multi_writer) {
  switch (mode) {
    case AccessMode::kReadWriteOnce:
      return single_node_multi_writer ? AccessModes::SINGLE_NODE_MULTI_WRITER
                                      : AccessModes::SINGLE_NODE_WRITER;
    case AccessMode::kReadOnlyMany:
      return AccessModes::MULTI_NODE_READER_ONLY;
    case AccessMode::kReadWriteMany:
      return AccessModes::MULTI_NODE_MULTI_WRITER;
    case AccessMode::kReadWriteOncePod:
      return single_node_multi_writer ? AccessModes::SINGLE_NODE_SINGLE_WRITER
                                      : AccessModes::SINGLE_NODE_WRITER;
  }
  return AccessModes::UNKNOWN;
}

bool Has(const std::vector<AccessMode>& modes, AccessMode mode) {
  return std::find(modes.begin(), modes.end(), mode) != modes.end();
}

bool HasOther(const std::vector<AccessMode>& modes, AccessMode mode) {
  return std::any_of(modes.begin(), modes.end(), [&](AccessMode other) { return other != mode; });
}

CsiVolume InlineVolume(const CsiVolumeSource& source, const VolumeSpec& spec, const PodUid& pod,
                       const std::string& pod_namespace) {
  CsiVolume volume;
  volume.driver = source.driver;
  volume.handle = CsiInlineHandle(pod, spec.name());
  volume.mode = VolumeLifecycleMode::kEphemeral;
  volume.read_only = source.read_only;
  volume.fs_type = source.fs_type;
  volume.attributes = source.volume_attributes;
  volume.access_modes = {AccessMode::kReadWriteOnce};
  if (source.node_publish_secret_ref) {
    volume.node_publish_secret =
        SecretReference{source.node_publish_secret_ref->name, pod_namespace};
  }
  return volume;
}

CsiVolume PersistentCsiVolume(const CsiPersistentVolumeSource& source, const VolumeSpec& spec) {
  const PersistentVolumeSpec& persistent = spec.persistent_volume()->spec;
  CsiVolume volume;
  volume.driver = source.driver;
  volume.handle = source.volume_handle;
  volume.is_block = IsBlockVolume(spec);
  volume.read_only = spec.read_only();
  volume.source_read_only = source.read_only;
  volume.migrated = spec.migrated();
  volume.fs_type = source.fs_type;
  volume.attributes = source.volume_attributes;
  volume.mount_options = persistent.mount_options;
  volume.access_modes = persistent.access_modes;
  if (volume.access_modes.empty()) volume.access_modes = {AccessMode::kReadWriteOnce};
  volume.controller_publish_secret = source.controller_publish_secret_ref;
  volume.node_stage_secret = source.node_stage_secret_ref;
  volume.node_publish_secret = source.node_publish_secret_ref;
  volume.controller_expand_secret = source.controller_expand_secret_ref;
  volume.node_expand_secret = source.node_expand_secret_ref;
  return volume;
}

::csi::v1::VolumeCapability CapabilityOf(const CsiVolume& volume, AccessModes::Mode mode) {
  ::csi::v1::VolumeCapability capability;
  capability.mutable_access_mode()->set_mode(mode);
  if (volume.is_block) {
    capability.mutable_block();
    return capability;
  }
  auto& mount = *capability.mutable_mount();
  mount.set_fs_type(volume.fs_type);
  mount.mutable_mount_flags()->Assign(volume.mount_options.begin(), volume.mount_options.end());
  return capability;
}

const char* NameOf(VolumeLifecycleMode mode) {
  return mode == VolumeLifecycleMode::kEphemeral ? kVolDataEphemeral : kVolDataPersistent;
}

}  // namespace

Result<CsiVolume> CsiVolumeOf(const VolumeSpec& spec, const PodUid& pod,
                              const std::string& pod_namespace) {
  if (const auto* source = spec.SourceAs<CsiPersistentVolumeSource>()) {
    return PersistentCsiVolume(*source, spec);
  }
  const auto* source = spec.SourceAs<CsiVolumeSource>();
  if (source == nullptr) {
    return Error::NotApplied(Code::kInvalidArgument,
                             spec.Display() + " is no volume of a CSI driver");
  }
  if (pod.empty()) {
    return Error::NotApplied(
        Code::kInvalidArgument,
        spec.Display() + " is an inline volume, which a CSI driver makes for a pod alone");
  }
  return InlineVolume(*source, spec, pod, pod_namespace);
}

AccessModes::Mode CsiNodeAccessMode(const CsiDriverFacts& driver, const CsiVolume& volume) {
  return ModeOf(volume.access_modes.front(), driver.HasNode(NodeCan::SINGLE_NODE_MULTI_WRITER));
}

Result<AccessModes::Mode> CsiControllerAccessMode(const CsiDriverFacts& driver,
                                                  const std::vector<AccessMode>& modes) {
  const bool exact =
      driver.HasController(::csi::v1::ControllerServiceCapability_RPC::SINGLE_NODE_MULTI_WRITER);
  const auto refused = [](const std::string& why) {
    return Error::NotApplied(Code::kInvalidArgument, why);
  };
  if (modes.empty()) return refused("CSI has no word for a volume without access modes");
  if (Has(modes, AccessMode::kReadWriteOncePod)) {
    if (HasOther(modes, AccessMode::kReadWriteOncePod)) {
      return refused("ReadWriteOncePod excludes all other access modes");
    }
    return ModeOf(AccessMode::kReadWriteOncePod, exact);
  }
  // Whoever may write from everywhere may do all else.
  if (Has(modes, AccessMode::kReadWriteMany)) return ModeOf(AccessMode::kReadWriteMany, exact);
  if (Has(modes, AccessMode::kReadOnlyMany) && Has(modes, AccessMode::kReadWriteOnce)) {
    return refused(
        "CSI does not support ReadOnlyMany and ReadWriteOnce on the same "
        "PersistentVolume");
  }
  return ModeOf(modes.front(), exact);
}

::csi::v1::VolumeCapability CsiNodeCapability(const CsiDriverFacts& driver, const CsiVolume& volume,
                                              const CsiMountWish& wish) {
  ::csi::v1::VolumeCapability capability = CapabilityOf(volume, CsiNodeAccessMode(driver, volume));
  if (volume.is_block) return capability;
  auto& mount = *capability.mutable_mount();
  // The quotes are for the comma in a label.
  if (!wish.selinux_label.empty()) mount.add_mount_flags("context=\"" + wish.selinux_label + "\"");
  if (wish.fs_group && DriverAppliesFsGroup(driver)) {
    mount.set_volume_mount_group(std::to_string(*wish.fs_group));
  }
  return capability;
}

Result<::csi::v1::VolumeCapability> CsiControllerCapability(const CsiDriverFacts& driver,
                                                            const CsiVolume& volume) {
  ASSIGN_OR_RETURN(const AccessModes::Mode mode,
                   CsiControllerAccessMode(driver, volume.access_modes));
  return CapabilityOf(volume, mode);
}

Status CheckLifecycleMode(const CsiVolume& volume, const CsiDriverObject* object) {
  const std::string refused = std::string("volume mode \"") + NameOf(volume.mode) +
                              "\" not supported by driver " + volume.driver;
  if (object == nullptr) {
    if (!volume.is_ephemeral()) return OkStatus();
    return Error::NotApplied(Code::kUnavailable, refused + " (no CSIDriver object)");
  }
  std::vector<VolumeLifecycleMode> modes = object->volume_lifecycle_modes;
  if (modes.empty()) modes = {VolumeLifecycleMode::kPersistent};
  if (std::find(modes.begin(), modes.end(), volume.mode) != modes.end()) return OkStatus();
  std::string only;
  for (const VolumeLifecycleMode mode : modes) {
    only += (only.empty() ? "\"" : " \"") + std::string(NameOf(mode)) + "\"";
  }
  return Error::NotApplied(Code::kUnavailable, refused + " (only supports [" + only + "])");
}

bool DriverAppliesFsGroup(const CsiDriverFacts& driver) {
  return driver.HasNode(NodeCan::VOLUME_MOUNT_GROUP);
}

bool AgentAppliesFsGroup(const CsiDriverFacts& driver, const CsiVolume& volume,
                         const CsiDriverObject* object, const std::optional<int64_t>& fs_group) {
  if (!fs_group || volume.is_block || volume.read_only || DriverAppliesFsGroup(driver)) {
    return false;
  }
  switch (object == nullptr ? FsGroupPolicy::kReadWriteOnceWithFsType : object->fs_group_policy) {
    case FsGroupPolicy::kNone:
      return false;
    case FsGroupPolicy::kFile:
      return true;
    case FsGroupPolicy::kReadWriteOnceWithFsType:
      return !volume.fs_type.empty() && (Has(volume.access_modes, AccessMode::kReadWriteOnce) ||
                                         Has(volume.access_modes, AccessMode::kReadWriteOncePod));
  }
  return false;
}

bool DriverStages(const CsiDriverFacts& driver) {
  return driver.HasNode(NodeCan::STAGE_UNSTAGE_VOLUME);
}

}  // namespace volumed
