// PersistentVolume, PersistentVolumeClaim, StorageClass and CSIDriver as plain values.
//
// Values; threads: any. Source: kubernetes core/v1 types.go@v1.36.2 (PersistentVolume,
// PersistentVolumeClaim), storage/v1 types.go (StorageClass, CSIDriver).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/quantity.h"
#include "kube/claim_spec.h"
#include "kube/object_meta.h"
#include "kube/volume_sources.h"

namespace volumed {

// Names that Kubernetes gives a meaning to.
inline constexpr std::string_view kPersistentVolumeProtection = "kubernetes.io/pv-protection";
inline constexpr std::string_view kPersistentVolumeClaimProtection = "kubernetes.io/pvc-protection";
// Set on a claim that was bound once, whatever became of its volume.
inline constexpr std::string_view kBindCompletedAnnotation = "pv.kubernetes.io/bind-completed";
// Names a supplemental group for the pods that use the volume.
inline constexpr std::string_view kVolumeGidAnnotation = "pv.beta.kubernetes.io/gid";
// The provisioner of a class whose volumes are made by hand.
inline constexpr std::string_view kNoProvisioner = "kubernetes.io/no-provisioner";

enum class ReclaimPolicy { kRetain, kDelete, kRecycle };
enum class PersistentVolumePhase { kPending, kAvailable, kBound, kReleased, kFailed };
enum class PersistentVolumeClaimPhase { kPending, kBound, kLost };
enum class VolumeBindingMode { kImmediate, kWaitForFirstConsumer };

// The claim to which a volume is bound, or for which it is kept. Without a uid it is kept for any
// claim of that name; with a uid for that claim alone.
struct ClaimReference {
  std::string name_space;
  std::string name;
  std::string uid;
  friend bool operator==(const ClaimReference&, const ClaimReference&) = default;
};

struct VolumeNodeAffinity {
  NodeSelector required;
  friend bool operator==(const VolumeNodeAffinity&, const VolumeNodeAffinity&) = default;
};

struct PersistentVolumeSpec {
  Quantity capacity;  // capacity.storage
  PersistentVolumeSource source;
  std::vector<AccessMode> access_modes;
  ReclaimPolicy reclaim_policy = ReclaimPolicy::kRetain;
  std::string storage_class_name;
  std::vector<std::string> mount_options;
  VolumeMode volume_mode = VolumeMode::kFilesystem;
  std::optional<ClaimReference> claim_ref;
  std::optional<VolumeNodeAffinity> node_affinity;
  std::string volume_attributes_class_name;
  friend bool operator==(const PersistentVolumeSpec&, const PersistentVolumeSpec&) = default;
};

struct PersistentVolumeStatus {
  std::optional<PersistentVolumePhase> phase;
  std::string reason;
  std::string message;
  friend bool operator==(const PersistentVolumeStatus&, const PersistentVolumeStatus&) = default;
};

struct PersistentVolume {
  ObjectMeta metadata = ClusterScopedMeta();
  PersistentVolumeSpec spec;
  PersistentVolumeStatus status;
  friend bool operator==(const PersistentVolume&, const PersistentVolume&) = default;
};

struct ClaimCondition {
  std::string type;    // "Resizing", "FileSystemResizePending", ...
  std::string status;  // "True", "False" or "Unknown"
  std::string reason;
  std::string message;
  std::optional<int64_t> last_transition_unix_millis;
  friend bool operator==(const ClaimCondition&, const ClaimCondition&) = default;
};

struct PersistentVolumeClaimStatus {
  std::optional<PersistentVolumeClaimPhase> phase;
  std::vector<AccessMode> access_modes;
  ResourceList capacity;
  ResourceList allocated_resources;
  StringMap allocated_resource_statuses;  // "storage" -> "NodeResizePending", ...
  std::vector<ClaimCondition> conditions;
  friend bool operator==(const PersistentVolumeClaimStatus&,
                         const PersistentVolumeClaimStatus&) = default;
};

struct PersistentVolumeClaim {
  ObjectMeta metadata;
  PersistentVolumeClaimSpec spec;
  PersistentVolumeClaimStatus status;
  friend bool operator==(const PersistentVolumeClaim&, const PersistentVolumeClaim&) = default;
};

struct TopologyRequirement {
  std::string key;
  std::vector<std::string> values;
  friend bool operator==(const TopologyRequirement&, const TopologyRequirement&) = default;
};

struct TopologyTerm {
  std::vector<TopologyRequirement> match_label_expressions;
  friend bool operator==(const TopologyTerm&, const TopologyTerm&) = default;
};

struct StorageClass {
  ObjectMeta metadata = ClusterScopedMeta();
  std::string provisioner;
  StringMap parameters;
  ReclaimPolicy reclaim_policy = ReclaimPolicy::kDelete;
  std::vector<std::string> mount_options;
  bool allow_volume_expansion = false;
  VolumeBindingMode volume_binding_mode = VolumeBindingMode::kImmediate;
  std::vector<TopologyTerm> allowed_topologies;
  friend bool operator==(const StorageClass&, const StorageClass&) = default;
};

enum class FsGroupPolicy { kReadWriteOnceWithFsType, kFile, kNone };
enum class VolumeLifecycleMode { kPersistent, kEphemeral };

struct CsiTokenRequest {
  std::string audience;  // "": the issuer's own
  std::optional<int64_t> expiration_seconds;
  friend bool operator==(const CsiTokenRequest&, const CsiTokenRequest&) = default;
};

// Named CsiDriverObject because a driver is also a process that the program talks to. The defaults
// are those of the API server.
struct CsiDriverObject {
  ObjectMeta metadata = ClusterScopedMeta();
  bool attach_required = true;
  bool pod_info_on_mount = false;
  FsGroupPolicy fs_group_policy = FsGroupPolicy::kReadWriteOnceWithFsType;
  bool storage_capacity = false;
  std::vector<VolumeLifecycleMode> volume_lifecycle_modes;  // empty: persistent only
  std::vector<CsiTokenRequest> token_requests;
  bool requires_republish = false;
  bool se_linux_mount = false;
  std::optional<int64_t> node_allocatable_update_period_seconds;
  friend bool operator==(const CsiDriverObject&, const CsiDriverObject&) = default;
};

}  // namespace volumed
