// PersistentVolume, PersistentVolumeClaim, StorageClass, CSIDriver, CSINode and VolumeAttachment as
// plain values.
//
// Values; threads: any. Source: kubernetes core/v1 types.go@v1.36.2 (PersistentVolume,
// PersistentVolumeClaim), storage/v1 types.go (StorageClass, CSIDriver, CSINode, VolumeAttachment).
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

// Names that Kubernetes gives a meaning to. The first two are finalizers, which keep an object as
// long as it is in use.
inline constexpr std::string_view kPersistentVolumeProtection = "kubernetes.io/pv-protection";
inline constexpr std::string_view kPersistentVolumeClaimProtection = "kubernetes.io/pvc-protection";
// Set on a claim that was bound once, whatever became of its volume.
inline constexpr std::string_view kBindCompletedAnnotation = "pv.kubernetes.io/bind-completed";
// Names a supplemental group for the pods that use the volume.
inline constexpr std::string_view kVolumeGidAnnotation = "pv.beta.kubernetes.io/gid";
// The provisioner of a class whose volumes are made by hand.
inline constexpr std::string_view kNoProvisioner = "kubernetes.io/no-provisioner";

// What becomes of a volume whose claim is gone: it stays as it is, it is deleted with its data, or
// its data is deleted and it is free again.
enum class ReclaimPolicy { kRetain, kDelete, kRecycle };
// kAvailable is a volume that no claim has, kReleased one whose claim is gone.
enum class PersistentVolumePhase { kPending, kAvailable, kBound, kReleased, kFailed };
// kLost is a claim that was bound and whose volume is gone.
enum class PersistentVolumeClaimPhase { kPending, kBound, kLost };
// When a claim gets a volume: at once, or once a pod uses it.
enum class VolumeBindingMode { kImmediate, kWaitForFirstConsumer };

// The claim to which a volume is bound, or for which it is kept. Without a uid it is kept for any
// claim of that name; with a uid for that claim alone.
struct ClaimReference {
  std::string name_space;
  std::string name;
  std::string uid;
  friend bool operator==(const ClaimReference&, const ClaimReference&) = default;
};

// The volume can be used on the nodes that the selector matches; other nodes do not mount it.
struct VolumeNodeAffinity {
  NodeSelector required;
  friend bool operator==(const VolumeNodeAffinity&, const VolumeNodeAffinity&) = default;
};

// The spec says what a PersistentVolume is, and for which claims.
struct PersistentVolumeSpec {
  // capacity.storage, in bytes; more than zero.
  Quantity capacity;
  PersistentVolumeSource source;
  std::vector<AccessMode> access_modes;
  ReclaimPolicy reclaim_policy = ReclaimPolicy::kRetain;
  // "": the volume has no class, and fits claims without one.
  std::string storage_class_name;
  // As mount(8) takes them, one each; for plugins that support them.
  std::vector<std::string> mount_options;
  VolumeMode volume_mode = VolumeMode::kFilesystem;
  // Absent: any claim that fits may have the volume.
  std::optional<ClaimReference> claim_ref;
  // Absent: the volume can be used on every node.
  std::optional<VolumeNodeAffinity> node_affinity;
  std::string volume_attributes_class_name;
  friend bool operator==(const PersistentVolumeSpec&, const PersistentVolumeSpec&) = default;
};

// The volume's state. kube/prepare_for_create.h empties it in what a manifest gives.
struct PersistentVolumeStatus {
  std::optional<PersistentVolumePhase> phase;
  std::string reason;
  std::string message;
  friend bool operator==(const PersistentVolumeStatus&, const PersistentVolumeStatus&) = default;
};

// A PersistentVolume is a storage that outlives pods. Its uid tells it from another one of its
// name.
struct PersistentVolume {
  ObjectMeta metadata = ClusterScopedMeta();
  PersistentVolumeSpec spec;
  PersistentVolumeStatus status;
  friend bool operator==(const PersistentVolume&, const PersistentVolume&) = default;
};

// A condition of a claim says what goes on with it, such as a resize.
struct ClaimCondition {
  std::string type;    // "Resizing", "FileSystemResizePending", ...
  std::string status;  // "True", "False" or "Unknown"
  std::string reason;
  std::string message;
  std::optional<int64_t> last_transition_unix_millis;
  friend bool operator==(const ClaimCondition&, const ClaimCondition&) = default;
};

// A condition of a claim whose storage is larger already: the node's part is still to come.
inline constexpr std::string_view kFileSystemResizePending = "FileSystemResizePending";

// The claim's state. kube/prepare_for_create.h empties it in what a manifest gives, but for a
// growth that is not finished. Amounts have the key "storage", and are in bytes.
struct PersistentVolumeClaimStatus {
  std::optional<PersistentVolumeClaimPhase> phase;
  std::vector<AccessMode> access_modes;
  // The claim has got so much.
  ResourceList capacity;
  // A resize is to give the claim so much.
  ResourceList allocated_resources;
  StringMap allocated_resource_statuses;  // "storage" -> "NodeResizePending", ...
  std::vector<ClaimCondition> conditions;
  friend bool operator==(const PersistentVolumeClaimStatus&,
                         const PersistentVolumeClaimStatus&) = default;
};

// A claim is a pod's way to a PersistentVolume, to which it gets bound.
struct PersistentVolumeClaim {
  ObjectMeta metadata;
  PersistentVolumeClaimSpec spec;
  PersistentVolumeClaimStatus status;
  friend bool operator==(const PersistentVolumeClaim&, const PersistentVolumeClaim&) = default;
};

// A node meets the requirement if its label `key` has one of the values.
struct TopologyRequirement {
  std::string key;
  std::vector<std::string> values;
  friend bool operator==(const TopologyRequirement&, const TopologyRequirement&) = default;
};

// A node meets the term if it meets all requirements.
struct TopologyTerm {
  std::vector<TopologyRequirement> match_label_expressions;
  friend bool operator==(const TopologyTerm&, const TopologyTerm&) = default;
};

// A class says how volumes are made for the claims that name it. Parameters are the provisioner's
// own.
struct StorageClass {
  ObjectMeta metadata = ClusterScopedMeta();
  std::string provisioner;
  StringMap parameters;
  // The volumes that are made get this policy; it is never kRecycle.
  ReclaimPolicy reclaim_policy = ReclaimPolicy::kDelete;
  std::vector<std::string> mount_options;
  bool allow_volume_expansion = false;
  VolumeBindingMode volume_binding_mode = VolumeBindingMode::kImmediate;
  std::vector<TopologyTerm> allowed_topologies;
  friend bool operator==(const StorageClass&, const StorageClass&) = default;
};

// Whether the pod's group is given to a driver's volumes: to those with a filesystem type and only
// ReadWriteOnce, to all, to none.
enum class FsGroupPolicy { kReadWriteOnceWithFsType, kFile, kNone };
enum class VolumeLifecycleMode { kPersistent, kEphemeral };

// The driver wants such a token of the service account of each pod that uses its volumes.
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
  // Whether the driver gets the tokens of token_requests among the secrets, which no log shows, and
  // not in the volume's context. Absent: in the context.
  std::optional<bool> service_account_token_in_secrets;
  friend bool operator==(const CsiDriverObject&, const CsiDriverObject&) = default;
};

// A driver that has registered on a node.
struct CsiNodeDriver {
  std::string name;
  // What the driver calls the node.
  std::string node_id;
  // The labels of the node that say where the driver's volumes can be used. Their values are those
  // of the Node.
  std::vector<std::string> topology_keys;
  // How many volumes of the driver the node can have attached. Absent: as many as one likes.
  std::optional<int32_t> allocatable_count;
  friend bool operator==(const CsiNodeDriver&, const CsiNodeDriver&) = default;
};

// The CSI drivers of one node, which has the object's name.
struct CsiNodeObject {
  ObjectMeta metadata = ClusterScopedMeta();
  std::vector<CsiNodeDriver> drivers;  // no two have one name
  friend bool operator==(const CsiNodeObject&, const CsiNodeObject&) = default;
};

// What is attached for an inline volume of a pod whose source a CSI driver has replaced: the source
// that it was translated to. It is a PersistentVolumeSpec without what such a volume cannot have.
struct InlineVolumeSpec {
  CsiPersistentVolumeSource csi;
  std::vector<AccessMode> access_modes;
  ReclaimPolicy reclaim_policy = ReclaimPolicy::kRetain;  // never another one
  std::string storage_class_name;
  std::vector<std::string> mount_options;
  VolumeMode volume_mode = VolumeMode::kFilesystem;
  std::string volume_attributes_class_name;
  friend bool operator==(const InlineVolumeSpec&, const InlineVolumeSpec&) = default;
};

// How the last try to attach or detach a volume ended.
struct VolumeError {
  std::optional<int64_t> unix_millis;
  std::string message;
  std::optional<int32_t> error_code;  // a code of gRPC
  friend bool operator==(const VolumeError&, const VolumeError&) = default;
};

// Says that a volume is to be attached to a node, and, by whoever attaches, whether it is.
struct VolumeAttachment {
  ObjectMeta metadata = ClusterScopedMeta();
  std::string attacher;  // the CSI driver
  std::string node_name;
  // Exactly one of these two says which volume.
  std::string persistent_volume_name;
  std::optional<InlineVolumeSpec> inline_volume_spec;
  bool attached = false;
  // What the attach gave, and the node's driver has to be told (the publish context of CSI).
  StringMap attachment_metadata;
  std::optional<VolumeError> attach_error;
  std::optional<VolumeError> detach_error;
  friend bool operator==(const VolumeAttachment&, const VolumeAttachment&) = default;
};

}  // namespace volumed
