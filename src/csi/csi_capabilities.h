// What a spec says of a volume of a CSI driver, and the capability by which the driver is asked
// for it.
//
// All functions are pure; threads: any. Blocks: never.
// Source: kubernetes pkg/volume/csi/csi_client.go, csi_mounter.go@v1.36.2; csi-lib-utils
// accessmodes@v0.24 (ToCSIAccessMode) for controllers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/secret.h"
#include "csi.pb.h"
#include "csi/csi_driver_record.h"
#include "kube/objects.h"
#include "kube/storage_objects.h"
#include "volume/volume_spec.h"

namespace volumed {

// Values of a SecretObject, as requests take them.
using CsiSecretValues = std::map<std::string, Secret<std::string>>;

// A value. Empty texts and lists are things that the spec does not say.
struct CsiVolume {
  std::string driver;
  // Of an inline volume, it is made from its pod and its name.
  std::string handle;
  VolumeLifecycleMode mode = VolumeLifecycleMode::kPersistent;
  bool is_block = false;
  // Its pod only reads: says the claim in the pod, or the inline source.
  bool read_only = false;
  // The persistent volume's source says readOnly, which is for whoever attaches.
  bool source_read_only = false;
  bool migrated = false;  // VolumeSpec::migrated()
  std::string fs_type;
  StringMap attributes;
  std::vector<std::string> mount_options;
  std::vector<AccessMode> access_modes;  // never empty: ReadWriteOnce if the spec has none
  std::optional<SecretReference> controller_publish_secret;
  std::optional<SecretReference> node_stage_secret;
  std::optional<SecretReference> node_publish_secret;
  std::optional<SecretReference> controller_expand_secret;
  std::optional<SecretReference> node_expand_secret;

  bool is_ephemeral() const { return mode == VolumeLifecycleMode::kEphemeral; }
  friend bool operator==(const CsiVolume&, const CsiVolume&) = default;
};

// `pod` and its namespace are needed for an inline volume alone: its handle and its secret are the
// pod's. To tear one down, no namespace is needed. Errors, not applied: InvalidArgument if the
// source is not csi, or for an inline volume without a pod.
Result<CsiVolume> CsiVolumeOf(const VolumeSpec& spec, const PodUid& pod = {},
                              const std::string& pod_namespace = "");

// The mode that nodes are asked for: the first one of the volume counts.
::csi::v1::VolumeCapability_AccessMode_Mode CsiNodeAccessMode(const CsiDriverFacts& driver,
                                                              const CsiVolume& volume);
// The mode that controllers are asked for: what all of the modes mean together. Errors, not
// applied: InvalidArgument for a combination that CSI has no word for.
Result<::csi::v1::VolumeCapability_AccessMode_Mode> CsiControllerAccessMode(
    const CsiDriverFacts& driver, const std::vector<AccessMode>& modes);

// What a mount is asked for beyond what the volume itself says.
struct CsiMountWish {
  // It is the driver's to apply if it has VOLUME_MOUNT_GROUP; else it is left out.
  std::optional<int64_t> fs_group;
  // Of the mount as a whole; empty: none.
  std::string selinux_label;
};

// For NodeStageVolume and NodePublishVolume, and, without a wish, for NodeExpandVolume.
::csi::v1::VolumeCapability CsiNodeCapability(const CsiDriverFacts& driver, const CsiVolume& volume,
                                              const CsiMountWish& wish = {});
// For what a controller is asked about a volume that there is. Errors: that of
// CsiControllerAccessMode().
Result<::csi::v1::VolumeCapability> CsiControllerCapability(const CsiDriverFacts& driver,
                                                            const CsiVolume& volume);

// Whether the driver's CSIDriver (null: there is none) lets volumes live so. Errors, not applied:
// Unavailable, as it may come to be allowed, in kubelet's words.
Status CheckLifecycleMode(const CsiVolume& volume, const CsiDriverObject* object);

// Whether the driver itself gives a mount its group, as part of stage and publish.
bool DriverAppliesFsGroup(const CsiDriverFacts& driver);
// Whether the agent has to give the published volume its group, as it does for any other kind.
bool AgentAppliesFsGroup(const CsiDriverFacts& driver, const CsiVolume& volume,
                         const CsiDriverObject* object, const std::optional<int64_t>& fs_group);

// Whether the driver has to be asked to stage and to unstage.
bool DriverStages(const CsiDriverFacts& driver);

}  // namespace volumed
