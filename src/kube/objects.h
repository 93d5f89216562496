// Kubernetes objects as plain values: pods, Secrets, ConfigMaps, the agent's own node and
// (kube/storage_objects.h, kube/snapshot_objects.h) storage. They hold only the fields that volumes
// need; other fields of a manifest are ignored.
//
// Values; threads: any. No function here blocks or fails. kube/decode.h makes them from manifests.
// Source: kubernetes staging/src/k8s.io/api/core/v1/types.go@v1.36.2.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/secret.h"
#include "kube/object_meta.h"
#include "kube/snapshot_objects.h"
#include "kube/storage_objects.h"
#include "kube/volume_sources.h"

namespace volumed {

// When the files of a volume get the pod's group: at each mount, or only if the root of the volume
// does not have it already.
enum class FsGroupChangePolicy { kAlways, kOnRootMismatch };
// How the files of a pod's volumes get the label of its containers: by an option of the mount,
// where a volume's plugin can do that, or one by one, by the containers' runtime.
enum class SeLinuxChangePolicy { kMountOption, kRecursive };
// Whether mounts that are made later are seen on the other side: on neither, in the container, on
// both. kBidirectional needs a privileged container.
enum class MountPropagation { kNone, kHostToContainer, kBidirectional };
// Whether a mount that is read-only is so for what is mounted below it, too. kIfPossible does
// without if the kernel cannot do it; kEnabled is an error then.
enum class RecursiveReadOnly { kDisabled, kIfPossible, kEnabled };
// The policy is that of a pod or of an init container, which is a sidecar with kAlways.
enum class RestartPolicy { kAlways, kOnFailure, kNever };
// A pod that is kSucceeded or kFailed has ended, and its volumes are taken down. kUnknown is also
// the phase of a pod whose phase is not known.
enum class PodPhase { kUnknown, kPending, kRunning, kSucceeded, kFailed };

// The parts of an SELinux label of processes. What mounts get of it: MountLabels().
struct SeLinuxOptions {
  std::string user;
  std::string role;
  std::string type;
  std::string level;
  friend bool operator==(const SeLinuxOptions&, const SeLinuxOptions&) = default;
};

// What a container sets for itself; it wins over what the pod sets. Absent: the pod's value.
struct ContainerSecurityContext {
  std::optional<int64_t> run_as_user;
  std::optional<int64_t> run_as_group;
  std::optional<bool> privileged;
  std::optional<SeLinuxOptions> se_linux_options;
  friend bool operator==(const ContainerSecurityContext&,
                         const ContainerSecurityContext&) = default;
};

// What holds for all containers of the pod. Ids are 0..2^31-1.
struct PodSecurityContext {
  std::optional<int64_t> run_as_user;
  std::optional<int64_t> run_as_group;
  // The group that the pod's volumes get; absent: none.
  std::optional<int64_t> fs_group;
  std::optional<FsGroupChangePolicy> fs_group_change_policy;  // absent: Always, by each plugin
  std::vector<int64_t> supplemental_groups;
  std::optional<SeLinuxOptions> se_linux_options;
  std::optional<SeLinuxChangePolicy> se_linux_change_policy;  // absent: MountOption
  friend bool operator==(const PodSecurityContext&, const PodSecurityContext&) = default;
};

// A place in a container at which it has a volume, or a part of it.
struct VolumeMount {
  std::string name;           // of one of the pod's volumes
  std::string mount_path;     // absolute; "//", "/./" and a trailing "/" are removed when decoded
  std::string sub_path;       // relative, no ".." element
  std::string sub_path_expr;  // as sub_path, with $(NAME) references; never both
  bool read_only = false;
  std::optional<RecursiveReadOnly> recursive_read_only;
  std::optional<MountPropagation> mount_propagation;  // absent: None
  friend bool operator==(const VolumeMount&, const VolumeMount&) = default;
};

// A place in a container at which it has the block device of a volume.
struct VolumeDevice {
  std::string name;         // of one of the pod's volumes
  std::string device_path;  // absolute, cleaned as a mount_path
  friend bool operator==(const VolumeDevice&, const VolumeDevice&) = default;
};

// The selector names a key of a ConfigMap of the pod's namespace. `optional` says that the key may
// be missing.
struct ConfigMapKeySelector {
  std::string name;
  std::string key;
  bool optional = false;
  friend bool operator==(const ConfigMapKeySelector&, const ConfigMapKeySelector&) = default;
};

// The selector names a key of a Secret of the pod's namespace. `optional` says that the key may be
// missing.
struct SecretKeySelector {
  std::string name;
  std::string key;
  bool optional = false;
  friend bool operator==(const SecretKeySelector&, const SecretKeySelector&) = default;
};

// At most one is set. fileKeyRef is not kept: a variable with it has none, and counts as
// unresolved.
struct EnvVarSource {
  std::optional<ObjectFieldSelector> field_ref;
  std::optional<ResourceFieldSelector> resource_field_ref;
  std::optional<ConfigMapKeySelector> config_map_key_ref;
  std::optional<SecretKeySelector> secret_key_ref;
  friend bool operator==(const EnvVarSource&, const EnvVarSource&) = default;
};

// A variable of a container. `value` is "" if there is a `value_from`; in it, $(NAME) stands for a
// variable that was defined earlier.
struct EnvVar {
  std::string name;
  std::string value;
  std::optional<EnvVarSource> value_from;
  friend bool operator==(const EnvVar&, const EnvVar&) = default;
};

// The keys are the names of resources: "cpu" is in processors, "memory" and "hugepages-2Mi" are in
// bytes.
struct ResourceRequirements {
  ResourceList limits;
  ResourceList requests;
  friend bool operator==(const ResourceRequirements&, const ResourceRequirements&) = default;
};

// Init and ephemeral containers have the same shape. This program starts only those of recycler
// pods; of all others it needs to know which volumes they use, and as whom.
struct Container {
  std::string name;
  std::string image;
  std::vector<std::string> command;  // used only for pods that the node itself runs
  std::vector<std::string> args;
  std::vector<VolumeMount> volume_mounts;
  std::vector<VolumeDevice> volume_devices;
  ContainerSecurityContext security_context;
  ResourceRequirements resources;
  std::vector<EnvVar> env;
  // Init containers only: with kAlways the container is a sidecar, which runs beside the others.
  std::optional<RestartPolicy> restart_policy;
  friend bool operator==(const Container&, const Container&) = default;
};

// What a pod consists of. Container names are unique among all three lists.
struct PodSpec {
  std::vector<PodVolume> volumes;
  std::vector<Container> init_containers;
  std::vector<Container> containers;
  std::vector<Container> ephemeral_containers;
  PodSecurityContext security_context;
  // Those of the pod as a whole; a limit here wins over the sum of its containers'.
  ResourceRequirements resources;
  // The node that the manifest names, or for a static pod this one. It decides nothing: every pod
  // of a source is this node's.
  std::string node_name;
  std::string service_account_name = "default";
  // How long consumers have after the pod's deletion, unless its metadata says otherwise.
  int64_t termination_grace_period_seconds = 30;
  std::optional<int64_t> active_deadline_seconds;
  RestartPolicy restart_policy = RestartPolicy::kAlways;
  bool host_users = true;
  bool host_network = false;
  friend bool operator==(const PodSpec&, const PodSpec&) = default;
};

// What the manifest says of the pod's state. Addresses are for the downward API; "" if there is
// none.
struct PodStatus {
  PodPhase phase = PodPhase::kUnknown;
  std::string pod_ip;
  std::vector<std::string> pod_ips;
  std::string host_ip;
  std::vector<std::string> host_ips;
  friend bool operator==(const PodStatus&, const PodStatus&) = default;
};

// A pod. Its uid says which pod it is, and is the name of its directory on the node.
struct Pod {
  ObjectMeta metadata;
  PodSpec spec;
  PodStatus status;

  // Empty if the manifest names no uid and the catalog has not given one.
  PodUid uid() const { return PodUid(metadata.uid); }
  // Whether the manifest itself says that the pod is being deleted.
  bool deletion_requested() const { return metadata.deletion_unix_millis.has_value(); }
  friend bool operator==(const Pod&, const Pod&) = default;
};

// A pod as all code but its source uses it: shared and immutable.
using PodPtr = std::shared_ptr<const Pod>;

// Named SecretObject because Secret<T> is the type that guards its bytes.
struct SecretObject {
  ObjectMeta metadata;
  std::string type = "Opaque";
  bool immutable = false;
  // Decoded bytes. As in the API server, stringData is merged into data and wins.
  std::map<std::string, Secret<std::string>> data;
  // Compares the contents. That is deliberate: a changed secret must be noticed.
  friend bool operator==(const SecretObject& a, const SecretObject& b);
};

// Its keys are those of `data` and `binary_data` together; none is in both.
struct ConfigMapObject {
  ObjectMeta metadata;
  bool immutable = false;
  StringMap data;
  StringMap binary_data;  // decoded bytes
  friend bool operator==(const ConfigMapObject&, const ConfigMapObject&) = default;
};

// The manifest of a node, of this one or another. Amounts are as in ResourceRequirements.
struct NodeObject {
  ObjectMeta metadata = ClusterScopedMeta();
  ResourceList capacity;
  ResourceList allocatable;
  friend bool operator==(const NodeObject&, const NodeObject&) = default;
};

// An object of any kind that the program knows. A kind that is added here does not compile before
// its ObjectTraits, its Fields() and its checks are there.
using Object =
    std::variant<Pod, SecretObject, ConfigMapObject, NodeObject, PersistentVolume,
                 PersistentVolumeClaim, StorageClass, CsiDriverObject, CsiNodeObject,
                 VolumeAttachment, VolumeSnapshot, VolumeSnapshotContent, VolumeSnapshotClass>;
// Objects travel between threads as immutable values. Whoever has one keeps that version of the
// object alive.
using ObjectPtr = std::shared_ptr<const Object>;

// In the order of Object's alternatives.
enum class ObjectKind {
  kPod,
  kSecret,
  kConfigMap,
  kNode,
  kPersistentVolume,
  kPersistentVolumeClaim,
  kStorageClass,
  kCsiDriver,
  kCsiNode,
  kVolumeAttachment,
  kVolumeSnapshot,
  kVolumeSnapshotContent,
  kVolumeSnapshotClass,
};

// Whether the names of a kind are unique within a namespace or on the whole.
enum class ObjectScope { kNamespaced, kCluster };

// When an object ends that its source has no more.
enum class ObjectEnd {
  // It ends once it is certainly absent from all sources.
  kWithSource,
  // It outlives the pods that use it: it is Missing until a command ends it.
  kByCommand,
};

// What has to be decided for every kind of object. The fields of a kind, the checks over several of
// them and what may change are declared in kube/object_fields.h, kube/storage_fields.h and
// kube/snapshot_fields.h.
struct ObjectKindFacts {
  // Has no defaults: every kind decides everything.
  constexpr ObjectKindFacts(ObjectKind its_kind, std::string_view its_name,
                            std::string_view its_plural, std::string_view its_short_name,
                            std::string_view its_api_version, ObjectScope its_scope,
                            ObjectEnd its_end)
      : kind(its_kind),
        name(its_name),
        plural(its_plural),
        short_name(its_short_name),
        api_version(its_api_version),
        scope(its_scope),
        end(its_end) {}

  ObjectKind kind;
  std::string_view name;  // "StorageClass"
  // In lower case, as kubectl takes it: "storageclasses".
  std::string_view plural;
  std::string_view short_name;  // kubectl's; "" if it has none
  std::string_view api_version;
  ObjectScope scope;
  ObjectEnd end;
};

inline constexpr std::string_view kCoreApi = "v1";
inline constexpr std::string_view kStorageApi = "storage.k8s.io/v1";
inline constexpr std::string_view kSnapshotApi = "snapshot.storage.k8s.io/v1";

// The facts of each alternative of Object, as `kFacts`.
template <typename T>
struct ObjectTraits;
template <>
struct ObjectTraits<Pod> {
  static constexpr auto kFacts = ObjectKindFacts(ObjectKind::kPod, "Pod", "pods", "po", kCoreApi,
                                                 ObjectScope::kNamespaced, ObjectEnd::kWithSource);
};
template <>
struct ObjectTraits<SecretObject> {
  static constexpr auto kFacts =
      ObjectKindFacts(ObjectKind::kSecret, "Secret", "secrets", "", kCoreApi,
                      ObjectScope::kNamespaced, ObjectEnd::kWithSource);
};
template <>
struct ObjectTraits<ConfigMapObject> {
  static constexpr auto kFacts =
      ObjectKindFacts(ObjectKind::kConfigMap, "ConfigMap", "configmaps", "cm", kCoreApi,
                      ObjectScope::kNamespaced, ObjectEnd::kWithSource);
};
template <>
struct ObjectTraits<NodeObject> {
  static constexpr auto kFacts = ObjectKindFacts(ObjectKind::kNode, "Node", "nodes", "no", kCoreApi,
                                                 ObjectScope::kCluster, ObjectEnd::kWithSource);
};
template <>
struct ObjectTraits<PersistentVolume> {
  static constexpr auto kFacts =
      ObjectKindFacts(ObjectKind::kPersistentVolume, "PersistentVolume", "persistentvolumes", "pv",
                      kCoreApi, ObjectScope::kCluster, ObjectEnd::kByCommand);
};
template <>
struct ObjectTraits<PersistentVolumeClaim> {
  static constexpr auto kFacts = ObjectKindFacts(
      ObjectKind::kPersistentVolumeClaim, "PersistentVolumeClaim", "persistentvolumeclaims", "pvc",
      kCoreApi, ObjectScope::kNamespaced, ObjectEnd::kByCommand);
};
template <>
struct ObjectTraits<StorageClass> {
  static constexpr auto kFacts =
      ObjectKindFacts(ObjectKind::kStorageClass, "StorageClass", "storageclasses", "sc",
                      kStorageApi, ObjectScope::kCluster, ObjectEnd::kByCommand);
};
template <>
struct ObjectTraits<CsiDriverObject> {
  static constexpr auto kFacts =
      ObjectKindFacts(ObjectKind::kCsiDriver, "CSIDriver", "csidrivers", "", kStorageApi,
                      ObjectScope::kCluster, ObjectEnd::kWithSource);
};
template <>
struct ObjectTraits<CsiNodeObject> {
  static constexpr auto kFacts =
      ObjectKindFacts(ObjectKind::kCsiNode, "CSINode", "csinodes", "", kStorageApi,
                      ObjectScope::kCluster, ObjectEnd::kWithSource);
};
// Its absence makes volumes wait that are not on the node yet. It never takes one away.
template <>
struct ObjectTraits<VolumeAttachment> {
  static constexpr auto kFacts =
      ObjectKindFacts(ObjectKind::kVolumeAttachment, "VolumeAttachment", "volumeattachments", "",
                      kStorageApi, ObjectScope::kCluster, ObjectEnd::kWithSource);
};

template <>
struct ObjectTraits<VolumeSnapshot> {
  static constexpr auto kFacts =
      ObjectKindFacts(ObjectKind::kVolumeSnapshot, "VolumeSnapshot", "volumesnapshots", "vs",
                      kSnapshotApi, ObjectScope::kNamespaced, ObjectEnd::kByCommand);
};
template <>
struct ObjectTraits<VolumeSnapshotContent> {
  static constexpr auto kFacts = ObjectKindFacts(
      ObjectKind::kVolumeSnapshotContent, "VolumeSnapshotContent", "volumesnapshotcontents", "vsc",
      kSnapshotApi, ObjectScope::kCluster, ObjectEnd::kByCommand);
};
template <>
struct ObjectTraits<VolumeSnapshotClass> {
  static constexpr auto kFacts = ObjectKindFacts(
      ObjectKind::kVolumeSnapshotClass, "VolumeSnapshotClass", "volumesnapshotclasses", "vsclass",
      kSnapshotApi, ObjectScope::kCluster, ObjectEnd::kByCommand);
};

inline constexpr auto kAllObjectKinds = [] {
  std::array<ObjectKind, std::variant_size_v<Object>> kinds{};
  for (size_t i = 0; i < kinds.size(); ++i) kinds[i] = static_cast<ObjectKind>(i);
  return kinds;
}();

// The reference is valid as long as the program runs, and so are its texts.
const ObjectKindFacts& KindFactsOf(ObjectKind kind);
// "Pod", "PersistentVolumeClaim", "CSIDriver".
std::string_view ObjectKindName(ObjectKind kind);
// "v1", "storage.k8s.io/v1" or "snapshot.storage.k8s.io/v1".
std::string_view ApiVersionOf(ObjectKind kind);
// Whether objects of the kind have no namespace.
bool IsClusterScoped(ObjectKind kind);
// Whether an object of the kind is more than its name: its uid tells it from another one, and
// counts once it is on record. Of pods, whose uids are on record with them, this is false.
bool HasUidOnRecord(ObjectKind kind);
// Accepts any case, the plural ("pods") and kubectl's short name ("pvc"); nullopt for a kind that
// the program does not handle.
std::optional<ObjectKind> ParseObjectKind(std::string_view name);

// The name of an object; the uid is not part of it. Keys are ordered by kind, namespace and name.
struct ObjectKey {
  ObjectKind kind = ObjectKind::kPod;
  // "" for a kind without namespaces.
  std::string name_space;
  std::string name;
  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
};

// "Pod default/web"; "Node n1".
std::string ToString(const ObjectKey& key);

// What an object is and is called. The references live as long as `object`.
ObjectKind KindOf(const Object& object);
const ObjectMeta& MetaOf(const Object& object);
ObjectMeta& MetaOf(Object& object);
ObjectKey KeyOf(const Object& object);

}  // namespace volumed
