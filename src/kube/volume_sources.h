// The volume sources of core/v1 that a node handles, as plain values. Field names are Kubernetes'
// own, in this project's spelling; optional fields without a default are std::optional.
//
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

namespace volumed {

// The mode that the API server gives to payload files by default.
inline constexpr int32_t kDefaultPayloadMode = 0644;
// Source: core/v1 ServiceAccountTokenProjection.expirationSeconds.
inline constexpr int64_t kDefaultTokenExpirationSeconds = 3600;

// A name in the namespace of the pod.
struct LocalObjectReference {
  std::string name;
  friend bool operator==(const LocalObjectReference&, const LocalObjectReference&) = default;
};

// The reference to a secret in a PersistentVolume, which itself belongs to no namespace.
struct SecretReference {
  std::string name;
  std::string name_space;
  friend bool operator==(const SecretReference&, const SecretReference&) = default;
};

struct EmptyDirVolumeSource {
  std::string medium;  // "" (disk), "Memory", "HugePages" or "HugePages-<size>"
  std::optional<Quantity> size_limit;
  friend bool operator==(const EmptyDirVolumeSource&, const EmptyDirVolumeSource&) = default;
};

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

struct HostPathVolumeSource {
  std::string path;  // absolute, no ".." element
  HostPathType type = HostPathType::kUnset;
  friend bool operator==(const HostPathVolumeSource&, const HostPathVolumeSource&) = default;
};

struct KeyToPath {
  std::string key;
  std::string path;             // relative, no ".." element, not beginning with ".."
  std::optional<int32_t> mode;  // 0..0777; the volume's default mode when absent
  friend bool operator==(const KeyToPath&, const KeyToPath&) = default;
};

struct SecretVolumeSource {
  std::string secret_name;
  std::vector<KeyToPath> items;  // empty: every key under its own name
  int32_t default_mode = kDefaultPayloadMode;
  bool optional = false;
  friend bool operator==(const SecretVolumeSource&, const SecretVolumeSource&) = default;
};

struct ConfigMapVolumeSource {
  std::string name;
  std::vector<KeyToPath> items;
  int32_t default_mode = kDefaultPayloadMode;
  bool optional = false;
  friend bool operator==(const ConfigMapVolumeSource&, const ConfigMapVolumeSource&) = default;
};

// A field of the pod, as "metadata.labels['app']". kube/field_path.h computes it.
struct ObjectFieldSelector {
  std::string api_version;  // "" or "v1"
  std::string field_path;
  friend bool operator==(const ObjectFieldSelector&, const ObjectFieldSelector&) = default;
};

struct ResourceFieldSelector {
  std::string container_name;       // may be empty in a container's own env only
  std::string resource;             // "limits.memory", ...
  std::optional<Quantity> divisor;  // absent or zero: 1
  friend bool operator==(const ResourceFieldSelector&, const ResourceFieldSelector&) = default;
};

// Exactly one of field_ref and resource_field_ref is set.
struct DownwardApiVolumeFile {
  std::string path;
  std::optional<ObjectFieldSelector> field_ref;
  std::optional<ResourceFieldSelector> resource_field_ref;
  std::optional<int32_t> mode;
  friend bool operator==(const DownwardApiVolumeFile&, const DownwardApiVolumeFile&) = default;
};

struct DownwardApiVolumeSource {
  std::vector<DownwardApiVolumeFile> items;
  int32_t default_mode = kDefaultPayloadMode;
  friend bool operator==(const DownwardApiVolumeSource&, const DownwardApiVolumeSource&) = default;
};

struct SecretProjection {
  std::string name;
  std::vector<KeyToPath> items;
  bool optional = false;
  friend bool operator==(const SecretProjection&, const SecretProjection&) = default;
};

struct ConfigMapProjection {
  std::string name;
  std::vector<KeyToPath> items;
  bool optional = false;
  friend bool operator==(const ConfigMapProjection&, const ConfigMapProjection&) = default;
};

struct DownwardApiProjection {
  std::vector<DownwardApiVolumeFile> items;
  friend bool operator==(const DownwardApiProjection&, const DownwardApiProjection&) = default;
};

struct ServiceAccountTokenProjection {
  std::string audience;                                         // "": the issuer's own audience
  int64_t expiration_seconds = kDefaultTokenExpirationSeconds;  // 600..2^32
  std::string path;
  friend bool operator==(const ServiceAccountTokenProjection&,
                         const ServiceAccountTokenProjection&) = default;
};

struct ClusterTrustBundleProjection {
  std::string name;  // exactly one of name and signer_name is set
  std::string signer_name;
  std::string label_selector_json;  // "" when absent
  bool optional = false;
  std::string path;
  friend bool operator==(const ClusterTrustBundleProjection&,
                         const ClusterTrustBundleProjection&) = default;
};

struct PodCertificateProjection {
  std::string signer_name;
  std::string key_type;
  std::optional<int64_t> max_expiration_seconds;
  std::string credential_bundle_path;
  std::string key_path;
  std::string certificate_chain_path;
  friend bool operator==(const PodCertificateProjection&,
                         const PodCertificateProjection&) = default;
};

using VolumeProjection = std::variant<SecretProjection, ConfigMapProjection, DownwardApiProjection,
                                      ServiceAccountTokenProjection, ClusterTrustBundleProjection,
                                      PodCertificateProjection>;

struct ProjectedVolumeSource {
  std::vector<VolumeProjection> sources;  // a later source overwrites paths of an earlier one
  int32_t default_mode = kDefaultPayloadMode;
  friend bool operator==(const ProjectedVolumeSource&, const ProjectedVolumeSource&) = default;
};

struct PersistentVolumeClaimVolumeSource {
  std::string claim_name;
  bool read_only = false;
  friend bool operator==(const PersistentVolumeClaimVolumeSource&,
                         const PersistentVolumeClaimVolumeSource&) = default;
};

// A claim of the pod's own, made from this template (kube/ephemeral_claim.h).
struct EphemeralVolumeSource {
  PersistentVolumeClaimTemplate volume_claim_template;
  friend bool operator==(const EphemeralVolumeSource&, const EphemeralVolumeSource&) = default;
};

struct CsiVolumeSource {
  std::string driver;
  bool read_only = false;
  std::string fs_type;
  std::map<std::string, std::string> volume_attributes;
  std::optional<LocalObjectReference> node_publish_secret_ref;
  friend bool operator==(const CsiVolumeSource&, const CsiVolumeSource&) = default;
};

struct NfsVolumeSource {
  std::string server;
  std::string path;
  bool read_only = false;
  friend bool operator==(const NfsVolumeSource&, const NfsVolumeSource&) = default;
};

// An inline volume names a secret in the pod's namespace, a PersistentVolume a secret in any
// namespace.
template <typename SecretRef>
struct BasicIscsiVolumeSource {
  std::string target_portal;
  std::string iqn;
  int32_t lun = 0;
  std::string iscsi_interface = "default";
  std::string fs_type;
  bool read_only = false;
  std::vector<std::string> portals;
  bool chap_auth_discovery = false;
  bool chap_auth_session = false;
  std::optional<SecretRef> secret_ref;
  std::string initiator_name;
  friend bool operator==(const BasicIscsiVolumeSource&, const BasicIscsiVolumeSource&) = default;
};
using IscsiVolumeSource = BasicIscsiVolumeSource<LocalObjectReference>;

// Either target_wwns with lun, or wwids, is set.
struct FcVolumeSource {
  std::vector<std::string> target_wwns;
  std::optional<int32_t> lun;
  std::string fs_type;
  bool read_only = false;
  std::vector<std::string> wwids;
  friend bool operator==(const FcVolumeSource&, const FcVolumeSource&) = default;
};

template <typename SecretRef>
struct BasicFlexVolumeSource {
  std::string driver;
  std::string fs_type;
  std::optional<SecretRef> secret_ref;
  bool read_only = false;
  std::map<std::string, std::string> options;
  friend bool operator==(const BasicFlexVolumeSource&, const BasicFlexVolumeSource&) = default;
};
using FlexVolumeSource = BasicFlexVolumeSource<LocalObjectReference>;

struct GitRepoVolumeSource {
  std::string repository;
  std::string revision;
  std::string directory;
  friend bool operator==(const GitRepoVolumeSource&, const GitRepoVolumeSource&) = default;
};

struct ImageVolumeSource {
  std::string reference;
  std::string pull_policy;  // "", "Always", "Never" or "IfNotPresent"
  friend bool operator==(const ImageVolumeSource&, const ImageVolumeSource&) = default;
};

// A source that has no implementation in Kubernetes' own tree any more ("gcePersistentDisk", ...).
// It is decoded, so that the pod or the PersistentVolume is known, and so that the reason why its
// volume is not made can be told (kube/refused_sources.h).
struct RemovedVolumeSource {
  std::string kind;  // the field's name in a manifest
  friend bool operator==(const RemovedVolumeSource&, const RemovedVolumeSource&) = default;
};

using VolumeSource =
    std::variant<EmptyDirVolumeSource, HostPathVolumeSource, SecretVolumeSource,
                 ConfigMapVolumeSource, DownwardApiVolumeSource, ProjectedVolumeSource,
                 PersistentVolumeClaimVolumeSource, EphemeralVolumeSource, CsiVolumeSource,
                 NfsVolumeSource, IscsiVolumeSource, FcVolumeSource, FlexVolumeSource,
                 GitRepoVolumeSource, ImageVolumeSource, RemovedVolumeSource>;

// Named PodVolume because Volume is the program's own interface (volume/volume.h).
struct PodVolume {
  std::string name;     // DNS-1123 label, unique in the pod
  VolumeSource source;  // a volume without any source is an emptyDir, as the API server has it
  friend bool operator==(const PodVolume&, const PodVolume&) = default;
};

// The source's field name in a manifest: "emptyDir", "hostPath", "gcePersistentDisk", ...
std::string VolumeSourceKind(const VolumeSource& source);

}  // namespace volumed
