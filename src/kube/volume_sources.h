// The volume sources that a node handles, of pods and of PersistentVolumes. Field names are
// Kubernetes' own, in this project's spelling; optional fields without a default are std::optional.
//
// All that the program has to know of a kind of source stands together: the struct with its name in
// a manifest (kKind) and its facts (kube/source_facts.h), the declaration of its fields, and what
// the facts promise. The variants at the end list the kinds: reading, writing, validation, known
// fields and names in messages follow from them.
//
// Fields() declares each typed field once: its name in a manifest, its place, its type, its rule
// and whether it is required. FieldReader, FieldWriter and FieldLister (all in kube/) visit it.
//
// Values; threads: any. No function here blocks or fails; CheckSource() tells problems, REQUIRES
// that the single fields are right, and gets the path of the source in its manifest.
// Source: kubernetes staging/src/k8s.io/api/core/v1/types.go@v1.36.2 (VolumeSource).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/quantity.h"
#include "kube/claim_spec.h"
#include "kube/migrated_sources.h"
#include "kube/payload_sources.h"
#include "kube/source_facts.h"
#include "kube/value_rules.h"

namespace volumed {

// What has to be at the path of a hostPath volume. The two that create make an empty directory
// (0755) or file (0644) if nothing is there.
enum class HostPathType {
  kUnset,  // no check before the mount
  kDirectoryOrCreate,
  kDirectory,
  kFileOrCreate,
  kFile,
  kSocket,
  kCharDevice,
  kBlockDevice,
};

// The volume is a directory that is made for the pod and removed with it.
struct EmptyDirVolumeSource {
  static constexpr char kKind[] = "emptyDir";
  static constexpr SourceFacts kFacts{SourceRules::kOverFields, SourceObjects::kNone,
                                      SourceStorage::kUnnamed};
  std::string medium;  // "" (disk), "Memory", "HugePages" or "HugePages-<size>"
  // In bytes, not negative. Absent: no limit of the volume's own.
  std::optional<Quantity> size_limit;
  friend bool operator==(const EmptyDirVolumeSource&, const EmptyDirVolumeSource&) = default;
};

template <typename V>
void Fields(V& v, EmptyDirVolumeSource& o) {
  v.Text("medium", o.medium, rules::kMedium);
  v.Amount("sizeLimit", o.size_limit);
}

// A size limit is not negative.
void CheckSource(const EmptyDirVolumeSource& source, const std::string& path,
                 ProblemSink& problems);

// The volume is a path of the node, which containers get as it is.
struct HostPathVolumeSource {
  static constexpr char kKind[] = "hostPath";
  static constexpr SourceFacts kFacts{SourceRules::kOfSingleFields, SourceObjects::kNone,
                                      SourceStorage::kOnNode};
  std::string path;  // absolute, no ".." element
  HostPathType type = HostPathType::kUnset;
  friend bool operator==(const HostPathVolumeSource&, const HostPathVolumeSource&) = default;
};

template <typename V>
void Fields(V& v, HostPathVolumeSource& o) {
  v.Path("path", o.path, rules::kHostPath, Presence::kRequired);
  v.Enum("type", o.type);
}

// The volume is the one that a claim of the pod's namespace is bound to.
struct PersistentVolumeClaimVolumeSource {
  static constexpr char kKind[] = "persistentVolumeClaim";
  static constexpr SourceFacts kFacts{SourceRules::kOfSingleFields, SourceObjects::kNone,
                                      SourceStorage::kUnnamed};
  std::string claim_name;
  // The pod only reads, whatever its volumeMounts say.
  bool read_only = false;
  friend bool operator==(const PersistentVolumeClaimVolumeSource&,
                         const PersistentVolumeClaimVolumeSource&) = default;
};

template <typename V>
void Fields(V& v, PersistentVolumeClaimVolumeSource& o) {
  v.Text("claimName", o.claim_name, rules::kDnsSubdomain, Presence::kRequired);
  v.Bool("readOnly", o.read_only);
}

// The volume is bound to a claim of the pod's own, made from this template
// (kube/ephemeral_claim.h).
struct EphemeralVolumeSource {
  static constexpr char kKind[] = "ephemeral";
  static constexpr SourceFacts kFacts{SourceRules::kOverFields, SourceObjects::kNone,
                                      SourceStorage::kUnnamed};
  PersistentVolumeClaimTemplate volume_claim_template;
  friend bool operator==(const EphemeralVolumeSource&, const EphemeralVolumeSource&) = default;
};

template <typename V>
void Fields(V& v, EphemeralVolumeSource& o) {
  v.Struct("volumeClaimTemplate", o.volume_claim_template, Presence::kRequired);
}

// The claim keeps what any claim keeps (kube/source_checks.h).
void CheckSource(const EphemeralVolumeSource& source, const std::string& path,
                 ProblemSink& problems);

// A CSI driver makes the volume for the pod. It is refused, since this program calls no CSI drivers
// (kube/refused_sources.h).
struct CsiVolumeSource {
  static constexpr char kKind[] = "csi";
  static constexpr SourceFacts kFacts{SourceRules::kOfSingleFields, SourceObjects::kNamed,
                                      SourceStorage::kUnnamed};
  std::string driver;
  bool read_only = false;
  std::string fs_type;
  std::map<std::string, std::string> volume_attributes;
  std::optional<LocalObjectReference> node_publish_secret_ref;
  friend bool operator==(const CsiVolumeSource&, const CsiVolumeSource&) = default;
};

template <typename V>
void Fields(V& v, CsiVolumeSource& o) {
  v.Text("driver", o.driver, rules::kDriverName, Presence::kRequired);
  v.Bool("readOnly", o.read_only);
  v.Text("fsType", o.fs_type);
  v.TextMap("volumeAttributes", o.volume_attributes);
  v.Maybe("nodePublishSecretRef", o.node_publish_secret_ref);
}

inline void AddObjectsOf(const CsiVolumeSource& source, ObjectNames& names) {
  if (source.node_publish_secret_ref) names.secrets.push_back(source.node_publish_secret_ref->name);
}

// A CSI driver has the volume. It is refused likewise.
struct CsiPersistentVolumeSource {
  static constexpr char kKind[] = "csi";
  static constexpr SourceFacts kFacts{SourceRules::kOfSingleFields, SourceObjects::kNone,
                                      SourceStorage::kOfDriver};
  std::string driver;
  // The driver's own name for the volume.
  std::string volume_handle;
  bool read_only = false;
  std::string fs_type;
  StringMap volume_attributes;
  std::optional<SecretReference> controller_publish_secret_ref;
  std::optional<SecretReference> node_stage_secret_ref;
  std::optional<SecretReference> node_publish_secret_ref;
  std::optional<SecretReference> controller_expand_secret_ref;
  std::optional<SecretReference> node_expand_secret_ref;
  friend bool operator==(const CsiPersistentVolumeSource&,
                         const CsiPersistentVolumeSource&) = default;
};

template <typename V>
void Fields(V& v, CsiPersistentVolumeSource& o) {
  v.Text("driver", o.driver, rules::kDriverName, Presence::kRequired);
  v.Text("volumeHandle", o.volume_handle, rules::kNotEmpty, Presence::kRequired);
  v.Bool("readOnly", o.read_only);
  v.Text("fsType", o.fs_type);
  v.TextMap("volumeAttributes", o.volume_attributes);
  v.Maybe("controllerPublishSecretRef", o.controller_publish_secret_ref);
  v.Maybe("nodeStageSecretRef", o.node_stage_secret_ref);
  v.Maybe("nodePublishSecretRef", o.node_publish_secret_ref);
  v.Maybe("controllerExpandSecretRef", o.controller_expand_secret_ref);
  v.Maybe("nodeExpandSecretRef", o.node_expand_secret_ref);
}

// The volume is a directory that an NFS server exports.
struct NfsVolumeSource {
  static constexpr char kKind[] = "nfs";
  static constexpr SourceFacts kFacts{SourceRules::kOfSingleFields, SourceObjects::kNone,
                                      SourceStorage::kOnServer};
  std::string server;  // name or address
  std::string path;    // absolute, on the server
  // The mount is read-only for every pod that uses the volume.
  bool read_only = false;
  friend bool operator==(const NfsVolumeSource&, const NfsVolumeSource&) = default;
};

template <typename V>
void Fields(V& v, NfsVolumeSource& o) {
  v.Text("server", o.server, rules::kNotEmpty, Presence::kRequired);
  v.Text("path", o.path, rules::kNfsPath, Presence::kRequired);
  v.Bool("readOnly", o.read_only);
}

// The volume is a LUN of an iSCSI target. An inline volume names a secret in the pod's namespace, a
// PersistentVolume a secret in any namespace.
template <typename SecretRef>
struct BasicIscsiVolumeSource {
  static constexpr char kKind[] = "iscsi";
  static constexpr SourceFacts kFacts{SourceRules::kOverFields, SourceObjects::kNamed,
                                      SourceStorage::kUnnamed};
  // "<address>[:port]"; the port is 3260 if it is left out.
  std::string target_portal;
  std::string iqn;  // the target's name
  int32_t lun = 0;  // 0..255
  // The iface of open-iscsi by which the node logs in.
  std::string iscsi_interface = "default";
  // "": the mounter's default, ext4.
  std::string fs_type;
  bool read_only = false;
  // Further portals of the same target, as target_portal.
  std::vector<std::string> portals;
  bool chap_auth_discovery = false;
  bool chap_auth_session = false;
  // User names and passwords for CHAP; required if one of the two flags above is set.
  std::optional<SecretRef> secret_ref;
  // "": the node's own. Else the volume gets an interface of its own, with this name.
  std::string initiator_name;
  friend bool operator==(const BasicIscsiVolumeSource&, const BasicIscsiVolumeSource&) = default;
};
using IscsiVolumeSource = BasicIscsiVolumeSource<LocalObjectReference>;
using IscsiPersistentVolumeSource = BasicIscsiVolumeSource<SecretReference>;

template <typename V, typename SecretRef>
void Fields(V& v, BasicIscsiVolumeSource<SecretRef>& o) {
  v.Text("targetPortal", o.target_portal, rules::kNotEmpty, Presence::kRequired);
  v.Text("iqn", o.iqn, rules::kIqn, Presence::kRequired);
  v.Number("lun", o.lun, rules::kLun);
  v.Text("iscsiInterface", o.iscsi_interface);
  v.Text("fsType", o.fs_type);
  v.Bool("readOnly", o.read_only);
  v.Texts("portals", o.portals, rules::kNotEmpty);
  v.Bool("chapAuthDiscovery", o.chap_auth_discovery);
  v.Bool("chapAuthSession", o.chap_auth_session);
  v.Maybe("secretRef", o.secret_ref);
  v.Text("initiatorName", o.initiator_name, rules::kIqn);
}

// CHAP needs a secret.
void CheckSource(const IscsiVolumeSource& source, const std::string& path, ProblemSink& problems);
void CheckSource(const IscsiPersistentVolumeSource& source, const std::string& path,
                 ProblemSink& problems);
inline void AddObjectsOf(const IscsiVolumeSource& source, ObjectNames& names) {
  if (source.secret_ref) names.secrets.push_back(source.secret_ref->name);
}

// The volume is a LUN of a fibre channel target. Either target_wwns with lun, or wwids, is set.
struct FcVolumeSource {
  static constexpr char kKind[] = "fc";
  static constexpr SourceFacts kFacts{SourceRules::kOverFields, SourceObjects::kNone,
                                      SourceStorage::kUnnamed};
  // Names of target ports, such as "500a0982991b8dc5".
  std::vector<std::string> target_wwns;
  std::optional<int32_t> lun;
  // "": the mounter's default, ext4.
  std::string fs_type;
  bool read_only = false;
  // World wide identifiers of one LUN, such as "3600508b400105e210000900000490000".
  std::vector<std::string> wwids;
  friend bool operator==(const FcVolumeSource&, const FcVolumeSource&) = default;
};

template <typename V>
void Fields(V& v, FcVolumeSource& o) {
  v.Texts("targetWWNs", o.target_wwns, rules::kNotEmpty);
  v.Number("lun", o.lun, rules::kLun);
  v.Text("fsType", o.fs_type);
  v.Bool("readOnly", o.read_only);
  v.Texts("wwids", o.wwids, rules::kNotEmpty);
}

// Exactly one of the two ways to name the LUN is taken.
void CheckSource(const FcVolumeSource& source, const std::string& path, ProblemSink& problems);

// A driver makes the volume that is an executable of the node (plugins/flex_volume.h). An inline
// volume names a secret in the pod's namespace, a PersistentVolume one in any namespace; the driver
// gets its values.
template <typename SecretRef>
struct BasicFlexVolumeSource {
  static constexpr char kKind[] = "flexVolume";
  static constexpr SourceFacts kFacts{SourceRules::kOfSingleFields, SourceObjects::kNamed,
                                      SourceStorage::kUnnamed};
  std::string driver;  // "<vendor>/<name>"
  std::string fs_type;
  std::optional<SecretRef> secret_ref;
  bool read_only = false;
  // They are given to the driver as they are.
  std::map<std::string, std::string> options;
  friend bool operator==(const BasicFlexVolumeSource&, const BasicFlexVolumeSource&) = default;
};
using FlexVolumeSource = BasicFlexVolumeSource<LocalObjectReference>;
using FlexPersistentVolumeSource = BasicFlexVolumeSource<SecretReference>;

template <typename V, typename SecretRef>
void Fields(V& v, BasicFlexVolumeSource<SecretRef>& o) {
  v.Text("driver", o.driver, rules::kQualifiedName, Presence::kRequired);
  v.Text("fsType", o.fs_type);
  v.Maybe("secretRef", o.secret_ref);
  v.Bool("readOnly", o.read_only);
  v.TextMap("options", o.options);
}

inline void AddObjectsOf(const FlexVolumeSource& source, ObjectNames& names) {
  if (source.secret_ref) names.secrets.push_back(source.secret_ref->name);
}

// The volume is a directory or a device of one node, which the PersistentVolume's node affinity
// names.
struct LocalVolumeSource {
  static constexpr char kKind[] = "local";
  static constexpr SourceFacts kFacts{SourceRules::kOfSingleFields, SourceObjects::kNone,
                                      SourceStorage::kOnNode};
  std::string path;  // absolute, no ".." element: a directory or a block device
  // For a block device alone; "": the mounter's default, ext4.
  std::string fs_type;
  friend bool operator==(const LocalVolumeSource&, const LocalVolumeSource&) = default;
};

template <typename V>
void Fields(V& v, LocalVolumeSource& o) {
  v.Path("path", o.path, rules::kHostPath, Presence::kRequired);
  v.Text("fsType", o.fs_type);
}

// The volume is a clone of a repository. A new one is refused, as by Kubernetes; one that an
// earlier agent made can be taken down (plugins/git_repo.h).
struct GitRepoVolumeSource {
  static constexpr char kKind[] = "gitRepo";
  static constexpr SourceFacts kFacts{SourceRules::kOfSingleFields, SourceObjects::kNone,
                                      SourceStorage::kUnnamed};
  std::string repository;
  std::string revision;
  std::string directory;
  friend bool operator==(const GitRepoVolumeSource&, const GitRepoVolumeSource&) = default;
};

template <typename V>
void Fields(V& v, GitRepoVolumeSource& o) {
  v.Text("repository", o.repository, rules::kNotEmpty, Presence::kRequired);
  v.Text("revision", o.revision);
  v.Text("directory", o.directory, rules::kSubPath);
}

// The volume is the content of an image. It is refused, since only a container runtime has images.
struct ImageVolumeSource {
  static constexpr char kKind[] = "image";
  static constexpr SourceFacts kFacts{SourceRules::kOfSingleFields, SourceObjects::kNone,
                                      SourceStorage::kUnnamed};
  std::string reference;
  std::string pull_policy;  // "", "Always", "Never" or "IfNotPresent"
  friend bool operator==(const ImageVolumeSource&, const ImageVolumeSource&) = default;
};

template <typename V>
void Fields(V& v, ImageVolumeSource& o) {
  v.Text("reference", o.reference);
  v.Text("pullPolicy", o.pull_policy, rules::kPullPolicy);
}

// A source that has neither an implementation in Kubernetes' own tree any more nor a translation
// ("rbd", "glusterfs", ...). It is decoded, so that the pod or the PersistentVolume is known, and
// so that the reason why its volume is not made can be told (kube/refused_sources.h).
struct RemovedVolumeSource {
  static constexpr SourceFacts kFacts{SourceRules::kOfSingleFields, SourceObjects::kNone,
                                      SourceStorage::kUnnamed};
  std::string kind;  // the field's name in a manifest
  friend bool operator==(const RemovedVolumeSource&, const RemovedVolumeSource&) = default;
};

// What the volumes of a pod may be made from.
using VolumeSource = std::variant<
    EmptyDirVolumeSource, HostPathVolumeSource, SecretVolumeSource, ConfigMapVolumeSource,
    DownwardApiVolumeSource, ProjectedVolumeSource, PersistentVolumeClaimVolumeSource,
    EphemeralVolumeSource, CsiVolumeSource, NfsVolumeSource, IscsiVolumeSource, FcVolumeSource,
    FlexVolumeSource, GitRepoVolumeSource, ImageVolumeSource, AwsElasticBlockStoreVolumeSource,
    GcePersistentDiskVolumeSource, CinderVolumeSource, AzureDiskVolumeSource, AzureFileVolumeSource,
    VsphereVirtualDiskVolumeSource, PortworxVolumeSource, RemovedVolumeSource>;

// What a PersistentVolume may be made from.
using PersistentVolumeSource =
    std::variant<HostPathVolumeSource, LocalVolumeSource, NfsVolumeSource,
                 IscsiPersistentVolumeSource, FcVolumeSource, CsiPersistentVolumeSource,
                 FlexPersistentVolumeSource, AwsElasticBlockStoreVolumeSource,
                 GcePersistentDiskVolumeSource, CinderPersistentVolumeSource, AzureDiskVolumeSource,
                 AzureFilePersistentVolumeSource, VsphereVirtualDiskVolumeSource,
                 PortworxVolumeSource, RemovedVolumeSource>;

// The source's field name in a manifest: "emptyDir", "hostPath", "gcePersistentDisk", ... It is
// also what messages call the kind of a volume.
std::string VolumeSourceKind(const VolumeSource& source);
std::string VolumeSourceKind(const PersistentVolumeSource& source);

// The Secrets and ConfigMaps of the pod's namespace that a pod's volume needs, the optional ones
// too.
ObjectNames ObjectsNamedBy(const VolumeSource& source);

// A volume of a pod. Named PodVolume because Volume is the program's own interface
// (volume/volume.h).
struct PodVolume {
  std::string name;     // DNS-1123 label, unique in the pod
  VolumeSource source;  // a volume without any source is an emptyDir, as the API server has it
  friend bool operator==(const PodVolume&, const PodVolume&) = default;
};

}  // namespace volumed
