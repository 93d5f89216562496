// Every typed field of every object (those of storage kinds: kube/storage_fields.h), declared once:
// its name in a manifest, its place in the object, its type, its rule and whether it is required.
// FieldReader, FieldWriter and FieldLister visit it; checks that concern several fields are in
// kube/validate.h. For use in .cc files of kube/ only. Source: kubernetes core/v1 types.go@v1.36.2.
#pragma once

#include "kube/field_problem.h"
#include "kube/field_rules.h"
#include "kube/objects.h"
#include "kube/refused_sources.h"
#include "kube/storage_enums.h"

namespace volumed {

template <typename V>
void Fields(V& v, LocalObjectReference& o) {
  v.Text("name", o.name, kDnsSubdomain, Presence::kRequired);
}

template <typename V>
void Fields(V& v, KeyToPath& o) {
  v.Text("key", o.key, kConfigKey, Presence::kRequired);
  v.Path("path", o.path, kPayloadPath, Presence::kRequired);
  v.Number("mode", o.mode, kFileMode);
}

template <typename V>
void Fields(V& v, EmptyDirVolumeSource& o) {
  v.Text("medium", o.medium, kMedium);
  v.Amount("sizeLimit", o.size_limit);
}

template <typename V>
void Fields(V& v, HostPathVolumeSource& o) {
  v.Path("path", o.path, kHostPath, Presence::kRequired);
  v.Enum("type", o.type);
}

template <typename V>
void Fields(V& v, SecretVolumeSource& o) {
  v.Text("secretName", o.secret_name, kDnsSubdomain, Presence::kRequired);
  v.List("items", o.items);
  v.Number("defaultMode", o.default_mode, kFileMode);
  v.Bool("optional", o.optional);
}

template <typename V>
void Fields(V& v, ConfigMapVolumeSource& o) {
  v.Text("name", o.name, kDnsSubdomain, Presence::kRequired);
  v.List("items", o.items);
  v.Number("defaultMode", o.default_mode, kFileMode);
  v.Bool("optional", o.optional);
}

template <typename V>
void Fields(V& v, ObjectFieldSelector& o) {
  v.Text("apiVersion", o.api_version, kApiVersionV1);
  v.Text("fieldPath", o.field_path, kFieldPath, Presence::kRequired);
}

template <typename V>
void Fields(V& v, ResourceFieldSelector& o) {
  v.Text("containerName", o.container_name, kDnsLabel);
  v.Text("resource", o.resource, kResourceName, Presence::kRequired);
  v.Amount("divisor", o.divisor);
}

template <typename V>
void Fields(V& v, DownwardApiVolumeFile& o) {
  v.Path("path", o.path, kPayloadPath, Presence::kRequired);
  v.Maybe("fieldRef", o.field_ref);
  v.Maybe("resourceFieldRef", o.resource_field_ref);
  v.Number("mode", o.mode, kFileMode);
}

template <typename V>
void Fields(V& v, DownwardApiVolumeSource& o) {
  v.List("items", o.items);
  v.Number("defaultMode", o.default_mode, kFileMode);
}

template <typename V>
void Fields(V& v, SecretProjection& o) {
  v.Text("name", o.name, kDnsSubdomain, Presence::kRequired);
  v.List("items", o.items);
  v.Bool("optional", o.optional);
}

template <typename V>
void Fields(V& v, ConfigMapProjection& o) {
  v.Text("name", o.name, kDnsSubdomain, Presence::kRequired);
  v.List("items", o.items);
  v.Bool("optional", o.optional);
}

template <typename V>
void Fields(V& v, DownwardApiProjection& o) {
  v.List("items", o.items);
}

template <typename V>
void Fields(V& v, ServiceAccountTokenProjection& o) {
  v.Text("audience", o.audience);
  v.Number("expirationSeconds", o.expiration_seconds, kTokenExpiration);
  v.Path("path", o.path, kPayloadPath, Presence::kRequired);
}

template <typename V>
void Fields(V& v, ClusterTrustBundleProjection& o) {
  v.Text("name", o.name, kNotEmpty);
  v.Text("signerName", o.signer_name, kNotEmpty);
  v.JsonText("labelSelector", o.label_selector_json);
  v.Bool("optional", o.optional);
  v.Path("path", o.path, kPayloadPath, Presence::kRequired);
}

template <typename V>
void Fields(V& v, PodCertificateProjection& o) {
  v.Text("signerName", o.signer_name, kNotEmpty, Presence::kRequired);
  v.Text("keyType", o.key_type, kNotEmpty, Presence::kRequired);
  v.Number("maxExpirationSeconds", o.max_expiration_seconds, kCertificateExpiration);
  v.Path("credentialBundlePath", o.credential_bundle_path, kPayloadPath, Presence::kOptional);
  v.Path("keyPath", o.key_path, kPayloadPath, Presence::kOptional);
  v.Path("certificateChainPath", o.certificate_chain_path, kPayloadPath, Presence::kOptional);
}

template <typename V>
void Fields(V& v, VolumeProjection& o) {
  int seen = 0;
  v.template Case<SecretProjection>("secret", o, seen);
  v.template Case<ConfigMapProjection>("configMap", o, seen);
  v.template Case<DownwardApiProjection>("downwardAPI", o, seen);
  v.template Case<ServiceAccountTokenProjection>("serviceAccountToken", o, seen);
  v.template Case<ClusterTrustBundleProjection>("clusterTrustBundle", o, seen);
  v.template Case<PodCertificateProjection>("podCertificate", o, seen);
  v.RequireCase(seen, "names no source of a kind that this program knows");
}

template <typename V>
void Fields(V& v, ProjectedVolumeSource& o) {
  v.List("sources", o.sources);
  v.Number("defaultMode", o.default_mode, kFileMode);
}

template <typename V>
void Fields(V& v, PersistentVolumeClaimVolumeSource& o) {
  v.Text("claimName", o.claim_name, kDnsSubdomain, Presence::kRequired);
  v.Bool("readOnly", o.read_only);
}

template <typename V>
void Fields(V& v, EphemeralVolumeSource& o) {
  v.Struct("volumeClaimTemplate", o.volume_claim_template, Presence::kRequired);
}

template <typename V>
void Fields(V& v, CsiVolumeSource& o) {
  v.Text("driver", o.driver, kDriverName, Presence::kRequired);
  v.Bool("readOnly", o.read_only);
  v.Text("fsType", o.fs_type);
  v.TextMap("volumeAttributes", o.volume_attributes);
  v.Maybe("nodePublishSecretRef", o.node_publish_secret_ref);
}

template <typename V>
void Fields(V& v, NfsVolumeSource& o) {
  v.Text("server", o.server, kNotEmpty, Presence::kRequired);
  v.Text("path", o.path, kNfsPath, Presence::kRequired);
  v.Bool("readOnly", o.read_only);
}

template <typename V, typename SecretRef>
void Fields(V& v, BasicIscsiVolumeSource<SecretRef>& o) {
  v.Text("targetPortal", o.target_portal, kNotEmpty, Presence::kRequired);
  v.Text("iqn", o.iqn, kIqn, Presence::kRequired);
  v.Number("lun", o.lun, kLun);
  v.Text("iscsiInterface", o.iscsi_interface);
  v.Text("fsType", o.fs_type);
  v.Bool("readOnly", o.read_only);
  v.Texts("portals", o.portals, kNotEmpty);
  v.Bool("chapAuthDiscovery", o.chap_auth_discovery);
  v.Bool("chapAuthSession", o.chap_auth_session);
  v.Maybe("secretRef", o.secret_ref);
  v.Text("initiatorName", o.initiator_name, kIqn);
}

template <typename V>
void Fields(V& v, FcVolumeSource& o) {
  v.Texts("targetWWNs", o.target_wwns, kNotEmpty);
  v.Number("lun", o.lun, kLun);
  v.Text("fsType", o.fs_type);
  v.Bool("readOnly", o.read_only);
  v.Texts("wwids", o.wwids, kNotEmpty);
}

template <typename V, typename SecretRef>
void Fields(V& v, BasicFlexVolumeSource<SecretRef>& o) {
  v.Text("driver", o.driver, kQualifiedName, Presence::kRequired);
  v.Text("fsType", o.fs_type);
  v.Maybe("secretRef", o.secret_ref);
  v.Bool("readOnly", o.read_only);
  v.TextMap("options", o.options);
}

template <typename V>
void Fields(V& v, GitRepoVolumeSource& o) {
  v.Text("repository", o.repository, kNotEmpty, Presence::kRequired);
  v.Text("revision", o.revision);
  v.Text("directory", o.directory, kSubPath);
}

template <typename V>
void Fields(V& v, ImageVolumeSource& o) {
  v.Text("reference", o.reference);
  v.Text("pullPolicy", o.pull_policy, kPullPolicy);
}

template <typename V>
void Fields(V& v, LabelRequirement& o) {
  v.Text("key", o.key, kQualifiedName, Presence::kRequired);
  v.Enum("operator", o.op, Presence::kRequired);
  v.Texts("values", o.values, kLabelValue);
}

template <typename V>
void Fields(V& v, LabelSelector& o) {
  v.TextMap("matchLabels", o.match_labels, kQualifiedName, kLabelValue);
  v.List("matchExpressions", o.match_expressions);
}

template <typename V>
void Fields(V& v, StorageRequest& o) {
  v.Nested("requests", Presence::kRequired,
           [&o](auto& requests) { requests.Amount("storage", o.request, Presence::kRequired); });
  v.Nested("limits", Presence::kOptional,
           [&o](auto& limits) { limits.Amount("storage", o.limit); });
}

template <typename V>
void Fields(V& v, PersistentVolumeClaimSpec& o) {
  v.Enums("accessModes", o.access_modes, Presence::kRequired);
  v.Struct("resources", o.storage, Presence::kRequired);
  v.Maybe("selector", o.selector);
  v.Text("storageClassName", o.storage_class_name, kDnsSubdomain);
  v.Text("volumeAttributesClassName", o.volume_attributes_class_name, kDnsSubdomain);
  v.Text("volumeName", o.volume_name, kDnsSubdomain);
  v.Enum("volumeMode", o.volume_mode);
  v.JsonText("dataSource", o.data_source_json);
  v.JsonText("dataSourceRef", o.data_source_ref_json);
}

template <typename V>
void Fields(V& v, PersistentVolumeClaimTemplate& o) {
  v.Nested("metadata", Presence::kOptional, [&o](auto& metadata) {
    metadata.TextMap("labels", o.labels, kQualifiedName, kLabelValue);
    metadata.TextMap("annotations", o.annotations, kQualifiedName);
  });
  v.Struct("spec", o.spec, Presence::kRequired);
}

template <typename V>
void Fields(V& v, PodVolume& o) {
  v.Text("name", o.name, kDnsLabel, Presence::kRequired);
  int seen = 0;
  v.template Case<EmptyDirVolumeSource>("emptyDir", o.source, seen);
  v.template Case<HostPathVolumeSource>("hostPath", o.source, seen);
  v.template Case<SecretVolumeSource>("secret", o.source, seen);
  v.template Case<ConfigMapVolumeSource>("configMap", o.source, seen);
  v.template Case<DownwardApiVolumeSource>("downwardAPI", o.source, seen);
  v.template Case<ProjectedVolumeSource>("projected", o.source, seen);
  v.template Case<PersistentVolumeClaimVolumeSource>("persistentVolumeClaim", o.source, seen);
  v.template Case<EphemeralVolumeSource>("ephemeral", o.source, seen);
  v.template Case<CsiVolumeSource>("csi", o.source, seen);
  v.template Case<NfsVolumeSource>("nfs", o.source, seen);
  v.template Case<IscsiVolumeSource>("iscsi", o.source, seen);
  v.template Case<FcVolumeSource>("fc", o.source, seen);
  v.template Case<FlexVolumeSource>("flexVolume", o.source, seen);
  v.template Case<GitRepoVolumeSource>("gitRepo", o.source, seen);
  v.template Case<ImageVolumeSource>("image", o.source, seen);
  for (const RemovedSource& removed : kRemovedSources) {
    v.RemovedCase(removed.field, o.source, seen);
  }
}

template <typename V>
void Fields(V& v, SeLinuxOptions& o) {
  v.Text("user", o.user);
  v.Text("role", o.role);
  v.Text("type", o.type);
  v.Text("level", o.level);
}

template <typename V>
void Fields(V& v, ContainerSecurityContext& o) {
  v.Number("runAsUser", o.run_as_user, kUnixId);
  v.Number("runAsGroup", o.run_as_group, kUnixId);
  v.Bool("privileged", o.privileged);
  v.Maybe("seLinuxOptions", o.se_linux_options);
}

template <typename V>
void Fields(V& v, PodSecurityContext& o) {
  v.Number("runAsUser", o.run_as_user, kUnixId);
  v.Number("runAsGroup", o.run_as_group, kUnixId);
  v.Number("fsGroup", o.fs_group, kUnixId);
  v.Enum("fsGroupChangePolicy", o.fs_group_change_policy);
  v.Ints("supplementalGroups", o.supplemental_groups, kUnixId);
  v.Maybe("seLinuxOptions", o.se_linux_options);
}

template <typename V>
void Fields(V& v, VolumeMount& o) {
  v.Text("name", o.name, kDnsLabel, Presence::kRequired);
  v.Path("mountPath", o.mount_path, kMountPath, Presence::kRequired);
  v.Text("subPath", o.sub_path, kSubPath);
  v.Text("subPathExpr", o.sub_path_expr, kSubPath);
  v.Bool("readOnly", o.read_only);
  v.Enum("recursiveReadOnly", o.recursive_read_only);
  v.Enum("mountPropagation", o.mount_propagation);
}

template <typename V>
void Fields(V& v, VolumeDevice& o) {
  v.Text("name", o.name, kDnsLabel, Presence::kRequired);
  v.Path("devicePath", o.device_path, kMountPath, Presence::kRequired);
}

template <typename V>
void Fields(V& v, ConfigMapKeySelector& o) {
  v.Text("name", o.name, kDnsSubdomain);
  v.Text("key", o.key, kConfigKey, Presence::kRequired);
  v.Bool("optional", o.optional);
}

template <typename V>
void Fields(V& v, SecretKeySelector& o) {
  v.Text("name", o.name, kDnsSubdomain);
  v.Text("key", o.key, kConfigKey, Presence::kRequired);
  v.Bool("optional", o.optional);
}

template <typename V>
void Fields(V& v, EnvVarSource& o) {
  v.Maybe("fieldRef", o.field_ref);
  v.Maybe("resourceFieldRef", o.resource_field_ref);
  v.Maybe("configMapKeyRef", o.config_map_key_ref);
  v.Maybe("secretKeyRef", o.secret_key_ref);
}

template <typename V>
void Fields(V& v, EnvVar& o) {
  v.Text("name", o.name, kEnvName, Presence::kRequired);
  v.Text("value", o.value);
  v.Maybe("valueFrom", o.value_from);
}

template <typename V>
void Fields(V& v, ResourceRequirements& o) {
  v.Amounts("limits", o.limits);
  v.Amounts("requests", o.requests);
}

template <typename V>
void Fields(V& v, Container& o) {
  v.Text("name", o.name, kDnsLabel, Presence::kRequired);
  v.Text("image", o.image);
  v.Texts("command", o.command);
  v.Texts("args", o.args);
  v.List("volumeMounts", o.volume_mounts);
  v.List("volumeDevices", o.volume_devices);
  v.Struct("securityContext", o.security_context);
  v.Struct("resources", o.resources);
  v.List("env", o.env);
  v.Enum("restartPolicy", o.restart_policy);
}

template <typename V>
void Fields(V& v, PodSpec& o) {
  v.List("volumes", o.volumes);
  v.List("initContainers", o.init_containers);
  v.List("containers", o.containers, Presence::kRequired);
  v.List("ephemeralContainers", o.ephemeral_containers);
  v.Struct("securityContext", o.security_context);
  v.Struct("resources", o.resources);
  v.Text("nodeName", o.node_name, kDnsSubdomain);
  // The deprecated name of the same field, which still appears; the newer one wins.
  v.Text("serviceAccount", o.service_account_name, kDnsSubdomain);
  v.Text("serviceAccountName", o.service_account_name, kDnsSubdomain);
  v.Number("terminationGracePeriodSeconds", o.termination_grace_period_seconds, kNotNegative);
  v.Number("activeDeadlineSeconds", o.active_deadline_seconds, kPositive);
  v.Enum("restartPolicy", o.restart_policy);
  v.Bool("hostUsers", o.host_users, true);
  v.Bool("hostNetwork", o.host_network);
}

// status.podIPs and status.hostIPs are lists of {ip}.
template <typename V>
void IpListFields(V& v, const char* name, std::vector<std::string>& ips) {
  v.Wrapped(name, "ip", ips);
}

template <typename V>
void Fields(V& v, PodStatus& o) {
  v.Enum("phase", o.phase);
  v.Text("podIP", o.pod_ip);
  IpListFields(v, "podIPs", o.pod_ips);
  v.Text("hostIP", o.host_ip);
  IpListFields(v, "hostIPs", o.host_ips);
}

template <typename V>
void Fields(V& v, OwnerReference& o) {
  v.Text("apiVersion", o.api_version);
  v.Text("kind", o.kind, kNotEmpty, Presence::kRequired);
  v.Text("name", o.name, kNotEmpty, Presence::kRequired);
  v.Text("uid", o.uid, kUid, Presence::kRequired);
  v.Bool("controller", o.controller);
}

enum class Scope { kNamespaced, kCluster };

template <typename V>
void MetaFields(V& v, ObjectMeta& o, Scope scope) {
  v.Text("name", o.name, kDnsSubdomain, Presence::kRequired);
  v.Text("generateName", o.generate_name);
  if (scope == Scope::kNamespaced) v.Text("namespace", o.name_space, kDnsLabel);
  v.Text("uid", o.uid, kUid);
  v.TextMap("labels", o.labels, kQualifiedName, kLabelValue);
  v.TextMap("annotations", o.annotations, kQualifiedName);
  v.Time("creationTimestamp", o.creation_unix_millis);
  v.Time("deletionTimestamp", o.deletion_unix_millis);
  v.Number("deletionGracePeriodSeconds", o.deletion_grace_period_seconds, kNotNegative);
  v.Texts("finalizers", o.finalizers, kQualifiedName);
  v.List("ownerReferences", o.owner_references);
}

template <typename V>
void Metadata(V& v, ObjectMeta& o, Scope scope) {
  v.Nested("metadata", Presence::kRequired,
           [&o, scope](auto& nested) { MetaFields(nested, o, scope); });
}

template <typename V>
void Fields(V& v, Pod& o) {
  Metadata(v, o.metadata, Scope::kNamespaced);
  v.Struct("spec", o.spec, Presence::kRequired);
  v.Struct("status", o.status);
}

template <typename V>
void Fields(V& v, SecretObject& o) {
  Metadata(v, o.metadata, Scope::kNamespaced);
  v.Text("type", o.type);
  v.Bool("immutable", o.immutable);
  v.SecretBytesMap("data", o.data, kConfigKey);
  v.SecretTextMap("stringData", o.data, kConfigKey);
}

template <typename V>
void Fields(V& v, ConfigMapObject& o) {
  Metadata(v, o.metadata, Scope::kNamespaced);
  v.Bool("immutable", o.immutable);
  v.TextMap("data", o.data, kConfigKey);
  v.BytesMap("binaryData", o.binary_data, kConfigKey);
}

template <typename V>
void Fields(V& v, NodeObject& o) {
  Metadata(v, o.metadata, Scope::kCluster);
  v.Nested("status", Presence::kOptional, [&o](auto& nested) {
    nested.Amounts("capacity", o.capacity);
    nested.Amounts("allocatable", o.allocatable);
  });
}

}  // namespace volumed
