// The volume sources that are made from objects: secret, configMap, downwardAPI and projected, with
// their fields, as kube/volume_sources.h describes it. Their volumes hold files that the program
// writes itself (plugins/payload.h), below paths that a source says or that are the keys of an
// object.
//
// Paths of payload files are relative, have no ".." element and do not begin with "..", since names
// such as "..data" are the program's own. Modes are 0..0777.
//
// Source: kubernetes staging/src/k8s.io/api/core/v1/types.go@v1.36.2 (VolumeSource).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/quantity.h"
#include "kube/source_facts.h"
#include "kube/value_rules.h"

namespace volumed {

// The mode that the API server gives to payload files by default.
inline constexpr int32_t kDefaultPayloadMode = 0644;
// How long a token is good if its projection does not say.
// Source: core/v1 ServiceAccountTokenProjection.expirationSeconds.
inline constexpr int64_t kDefaultTokenExpirationSeconds = 3600;

// A name in the namespace of the pod.
struct LocalObjectReference {
  std::string name;
  friend bool operator==(const LocalObjectReference&, const LocalObjectReference&) = default;
};

template <typename V>
void Fields(V& v, LocalObjectReference& o) {
  v.Text("name", o.name, rules::kDnsSubdomain, Presence::kRequired);
}

// The reference to a secret in a PersistentVolume, which itself belongs to no namespace.
struct SecretReference {
  std::string name;
  std::string name_space;
  friend bool operator==(const SecretReference&, const SecretReference&) = default;
};

template <typename V>
void Fields(V& v, SecretReference& o) {
  v.Text("name", o.name, rules::kDnsSubdomain, Presence::kRequired);
  v.Text("namespace", o.name_space, rules::kDnsLabel, Presence::kRequired);
}

// The value of one key of a Secret or ConfigMap gets a file of its own.
struct KeyToPath {
  std::string key;
  std::string path;             // of the file, below the volume
  std::optional<int32_t> mode;  // 0..0777; the volume's default mode when absent
  friend bool operator==(const KeyToPath&, const KeyToPath&) = default;
};

template <typename V>
void Fields(V& v, KeyToPath& o) {
  v.Text("key", o.key, rules::kConfigKey, Presence::kRequired);
  v.Path("path", o.path, rules::kPayloadPath, Presence::kRequired);
  v.Number("mode", o.mode, rules::kFileMode);
}

// The volume has the keys of a Secret of the pod's namespace, as files. If the Secret or a key is
// not there, the volume is not made before it comes; an optional one may be absent, but that has to
// be certain.
struct SecretVolumeSource {
  static constexpr char kKind[] = "secret";
  static constexpr SourceFacts kFacts{SourceRules::kOfSingleFields, SourceObjects::kNamed,
                                      SourceStorage::kUnnamed};
  std::string secret_name;
  std::vector<KeyToPath> items;  // empty: every key under its own name
  int32_t default_mode = kDefaultPayloadMode;
  bool optional = false;
  friend bool operator==(const SecretVolumeSource&, const SecretVolumeSource&) = default;
};

template <typename V>
void Fields(V& v, SecretVolumeSource& o) {
  v.Text("secretName", o.secret_name, rules::kDnsSubdomain, Presence::kRequired);
  v.List("items", o.items);
  v.Number("defaultMode", o.default_mode, rules::kFileMode);
  v.Bool("optional", o.optional);
}

inline void AddObjectsOf(const SecretVolumeSource& source, ObjectNames& names) {
  names.secrets.push_back(source.secret_name);
}

// The same as a secret volume, for a ConfigMap; its binaryData gives files too.
struct ConfigMapVolumeSource {
  static constexpr char kKind[] = "configMap";
  static constexpr SourceFacts kFacts{SourceRules::kOfSingleFields, SourceObjects::kNamed,
                                      SourceStorage::kUnnamed};
  std::string name;
  // Empty: every key under its own name.
  std::vector<KeyToPath> items;
  int32_t default_mode = kDefaultPayloadMode;
  bool optional = false;
  friend bool operator==(const ConfigMapVolumeSource&, const ConfigMapVolumeSource&) = default;
};

template <typename V>
void Fields(V& v, ConfigMapVolumeSource& o) {
  v.Text("name", o.name, rules::kDnsSubdomain, Presence::kRequired);
  v.List("items", o.items);
  v.Number("defaultMode", o.default_mode, rules::kFileMode);
  v.Bool("optional", o.optional);
}

inline void AddObjectsOf(const ConfigMapVolumeSource& source, ObjectNames& names) {
  names.config_maps.push_back(source.name);
}

// A field of the pod, as "metadata.labels['app']". kube/field_path.h computes it. A file in a
// volume can have fields of the metadata only.
struct ObjectFieldSelector {
  std::string api_version;  // "" or "v1"
  std::string field_path;
  friend bool operator==(const ObjectFieldSelector&, const ObjectFieldSelector&) = default;
};

template <typename V>
void Fields(V& v, ObjectFieldSelector& o) {
  v.Text("apiVersion", o.api_version, rules::kApiVersionV1);
  v.Text("fieldPath", o.field_path, rules::kFieldPath, Presence::kRequired);
}

// The selector names a limit or request of one of the pod's containers; kube/field_path.h computes
// it.
struct ResourceFieldSelector {
  std::string container_name;       // may be empty in a container's own env only
  std::string resource;             // "limits.memory", ...
  std::optional<Quantity> divisor;  // absent or zero: 1
  friend bool operator==(const ResourceFieldSelector&, const ResourceFieldSelector&) = default;
};

template <typename V>
void Fields(V& v, ResourceFieldSelector& o) {
  v.Text("containerName", o.container_name, rules::kDnsLabel);
  v.Text("resource", o.resource, rules::kResourceName, Presence::kRequired);
  v.Amount("divisor", o.divisor);
}

// The file's content is a field of the pod or a resource of a container: exactly one of field_ref
// and resource_field_ref is set.
struct DownwardApiVolumeFile {
  std::string path;  // of the file, below the volume
  std::optional<ObjectFieldSelector> field_ref;
  std::optional<ResourceFieldSelector> resource_field_ref;
  // Absent: the volume's default mode.
  std::optional<int32_t> mode;
  friend bool operator==(const DownwardApiVolumeFile&, const DownwardApiVolumeFile&) = default;
};

template <typename V>
void Fields(V& v, DownwardApiVolumeFile& o) {
  v.Path("path", o.path, rules::kPayloadPath, Presence::kRequired);
  v.Maybe("fieldRef", o.field_ref);
  v.Maybe("resourceFieldRef", o.resource_field_ref);
  v.Number("mode", o.mode, rules::kFileMode);
}

// The volume has fields of the pod, as files; they are written anew when the pod's manifest
// changes.
struct DownwardApiVolumeSource {
  static constexpr char kKind[] = "downwardAPI";
  static constexpr SourceFacts kFacts{SourceRules::kOverFields, SourceObjects::kNone,
                                      SourceStorage::kUnnamed};
  std::vector<DownwardApiVolumeFile> items;
  int32_t default_mode = kDefaultPayloadMode;
  friend bool operator==(const DownwardApiVolumeSource&, const DownwardApiVolumeSource&) = default;
};

template <typename V>
void Fields(V& v, DownwardApiVolumeSource& o) {
  v.List("items", o.items);
  v.Number("defaultMode", o.default_mode, rules::kFileMode);
}

// Each file has one kind of content, a field of the metadata or a resource of a named container.
void CheckSource(const DownwardApiVolumeSource& source, const std::string& path,
                 ProblemSink& problems);

// This is a secret volume within a projected one, whose default mode counts.
struct SecretProjection {
  static constexpr char kKind[] = "secret";
  std::string name;
  std::vector<KeyToPath> items;
  bool optional = false;
  friend bool operator==(const SecretProjection&, const SecretProjection&) = default;
};

template <typename V>
void Fields(V& v, SecretProjection& o) {
  v.Text("name", o.name, rules::kDnsSubdomain, Presence::kRequired);
  v.List("items", o.items);
  v.Bool("optional", o.optional);
}

// This is a configMap volume within a projected one.
struct ConfigMapProjection {
  static constexpr char kKind[] = "configMap";
  std::string name;
  std::vector<KeyToPath> items;
  bool optional = false;
  friend bool operator==(const ConfigMapProjection&, const ConfigMapProjection&) = default;
};

template <typename V>
void Fields(V& v, ConfigMapProjection& o) {
  v.Text("name", o.name, rules::kDnsSubdomain, Presence::kRequired);
  v.List("items", o.items);
  v.Bool("optional", o.optional);
}

// This is a downwardAPI volume within a projected one.
struct DownwardApiProjection {
  static constexpr char kKind[] = "downwardAPI";
  std::vector<DownwardApiVolumeFile> items;
  friend bool operator==(const DownwardApiProjection&, const DownwardApiProjection&) = default;
};

template <typename V>
void Fields(V& v, DownwardApiProjection& o) {
  v.List("items", o.items);
}

// The file has a token of the pod's service account, which is renewed before it expires
// (volumehost/local_token_issuer.h).
struct ServiceAccountTokenProjection {
  static constexpr char kKind[] = "serviceAccountToken";
  std::string audience;                                         // "": the issuer's own audience
  int64_t expiration_seconds = kDefaultTokenExpirationSeconds;  // 600..2^32
  std::string path;                                             // of the file, below the volume
  friend bool operator==(const ServiceAccountTokenProjection&,
                         const ServiceAccountTokenProjection&) = default;
};

template <typename V>
void Fields(V& v, ServiceAccountTokenProjection& o) {
  v.Text("audience", o.audience);
  v.Number("expirationSeconds", o.expiration_seconds, rules::kTokenExpiration);
  v.Path("path", o.path, rules::kPayloadPath, Presence::kRequired);
}

// The file is to have certificates of a cluster. The source is decoded and refused, since only an
// API server has them (plugins/payload.h).
struct ClusterTrustBundleProjection {
  static constexpr char kKind[] = "clusterTrustBundle";
  std::string name;  // exactly one of name and signer_name is set
  std::string signer_name;
  // A JSON object as text, possible with a signer name only; "" when absent.
  std::string label_selector_json;  // "" when absent
  bool optional = false;
  std::string path;  // of the file, below the volume
  friend bool operator==(const ClusterTrustBundleProjection&,
                         const ClusterTrustBundleProjection&) = default;
};

template <typename V>
void Fields(V& v, ClusterTrustBundleProjection& o) {
  v.Text("name", o.name, rules::kNotEmpty);
  v.Text("signerName", o.signer_name, rules::kNotEmpty);
  v.JsonText("labelSelector", o.label_selector_json);
  v.Bool("optional", o.optional);
  v.Path("path", o.path, rules::kPayloadPath, Presence::kRequired);
}

// The files are to have a certificate that a cluster signs for the pod. The source is decoded and
// refused, since only an API server can have it signed. At least one of the three paths is set; the
// others are "".
struct PodCertificateProjection {
  static constexpr char kKind[] = "podCertificate";
  std::string signer_name;
  std::string key_type;
  std::optional<int64_t> max_expiration_seconds;
  std::string credential_bundle_path;
  std::string key_path;
  std::string certificate_chain_path;
  friend bool operator==(const PodCertificateProjection&,
                         const PodCertificateProjection&) = default;
};

template <typename V>
void Fields(V& v, PodCertificateProjection& o) {
  v.Text("signerName", o.signer_name, rules::kNotEmpty, Presence::kRequired);
  v.Text("keyType", o.key_type, rules::kNotEmpty, Presence::kRequired);
  v.Number("maxExpirationSeconds", o.max_expiration_seconds, rules::kCertificateExpiration);
  v.Path("credentialBundlePath", o.credential_bundle_path, rules::kPayloadPath,
         Presence::kOptional);
  v.Path("keyPath", o.key_path, rules::kPayloadPath, Presence::kOptional);
  v.Path("certificateChainPath", o.certificate_chain_path, rules::kPayloadPath,
         Presence::kOptional);
}

// One source of a projected volume. A kind of projection says its name as a volume source does.
using VolumeProjection = std::variant<SecretProjection, ConfigMapProjection, DownwardApiProjection,
                                      ServiceAccountTokenProjection, ClusterTrustBundleProjection,
                                      PodCertificateProjection>;

// The volume has several sources in one directory. The decoder refuses a path that two of them
// name; keys of whole Secrets and ConfigMaps are not known to it, and there a later source
// overwrites an earlier one.
struct ProjectedVolumeSource {
  static constexpr char kKind[] = "projected";
  static constexpr SourceFacts kFacts{SourceRules::kOverFields, SourceObjects::kNamed,
                                      SourceStorage::kUnnamed};
  // In the order in which they are written.
  std::vector<VolumeProjection> sources;
  int32_t default_mode = kDefaultPayloadMode;
  friend bool operator==(const ProjectedVolumeSource&, const ProjectedVolumeSource&) = default;
};

template <typename V>
void Fields(V& v, ProjectedVolumeSource& o) {
  v.List("sources", o.sources);
  v.Number("defaultMode", o.default_mode, rules::kFileMode);
}

// No path is named twice, and each source keeps its own rules.
void CheckSource(const ProjectedVolumeSource& source, const std::string& path,
                 ProblemSink& problems);
// Adds the Secrets and ConfigMaps of all its sources, the optional ones too.
void AddObjectsOf(const ProjectedVolumeSource& source, ObjectNames& names);

}  // namespace volumed
