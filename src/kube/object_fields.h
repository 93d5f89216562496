// The fields of pods, Secrets, ConfigMaps and nodes, and the checks over several of them (those of
// storage kinds: kube/storage_fields.h; of volume sources: kube/volume_sources.h).
//
// Fields() declares each typed field once: its name in a manifest, its place, its type, its rule
// and whether it is required. FieldReader, FieldWriter and FieldLister visit it; `V` is one of
// these, and has all their methods. Whoever adds a field declares it here, and has it read,
// printed, listed and known (kube/unknown_fields.h). The order is that in which problems are told.
//
// Every kind of object also says what its fields must keep together (Validate) and what may not
// change (CheckUpdate). Validate() REQUIRES that the single fields are right; its `prefix` is "" or
// ends with "." ("items[2]."). CheckUpdate() REQUIRES that both objects have one namespace and
// name. For use in .cc files of kube/ only.
//
// Threads: any. Blocks: no. Errors: as problems.
// Source: kubernetes core/v1 types.go, pkg/apis/core/validation/validation.go@v1.36.2
// (ValidateVolumes, ValidateVolumeMounts, ValidateVolumeDevices, validateProjectionSources).
#pragma once

#include <type_traits>
#include <variant>

#include "kube/field_problem.h"
#include "kube/field_rules.h"
#include "kube/objects.h"
#include "kube/refused_sources.h"
#include "kube/storage_enums.h"
#include "kube/update_checks.h"

namespace volumed {

// One alternative of a union of sources. Of those without an implementation there are several
// fields, all of which make the one alternative RemovedVolumeSource.
template <typename Source, typename V, typename Variant>
void SourceCase(V& v, Variant& source, int& seen) {
  if constexpr (std::is_same_v<Source, RemovedVolumeSource>) {
    for (const RemovedSource& removed : kRemovedSources) {
      v.RemovedCase(removed.field, source, seen);
    }
  } else {
    v.template Case<Source>(Source::kKind, source, seen);
  }
}

// The fields of a union of sources: each of its alternatives says the name of its field. `seen`
// counts the fields that a manifest has of them, for RequireCase().
template <typename V, typename... Sources>
void SourceCases(V& v, std::variant<Sources...>& source, int& seen) {
  (SourceCase<Sources>(v, source, seen), ...);
}

// Unlike a volume, a projection without a source has no default.
template <typename V>
void Fields(V& v, VolumeProjection& o) {
  int seen = 0;
  SourceCases(v, o, seen);
  v.RequireCase(seen, "names no source of a kind that this program knows");
}

template <typename V>
void Fields(V& v, LabelRequirement& o) {
  v.Text("key", o.key, rules::kQualifiedName, Presence::kRequired);
  v.Enum("operator", o.op, Presence::kRequired);
  v.Texts("values", o.values, rules::kLabelValue);
}

template <typename V>
void Fields(V& v, LabelSelector& o) {
  v.TextMap("matchLabels", o.match_labels, rules::kQualifiedName, rules::kLabelValue);
  v.List("matchExpressions", o.match_expressions);
}

// Only the resource "storage" is looked at.
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
  v.Text("storageClassName", o.storage_class_name, rules::kDnsSubdomain);
  v.Text("volumeAttributesClassName", o.volume_attributes_class_name, rules::kDnsSubdomain);
  v.Text("volumeName", o.volume_name, rules::kDnsSubdomain);
  v.Enum("volumeMode", o.volume_mode);
  v.JsonText("dataSource", o.data_source_json);
  v.JsonText("dataSourceRef", o.data_source_ref_json);
}

// The template's metadata gives labels and annotations only.
template <typename V>
void Fields(V& v, PersistentVolumeClaimTemplate& o) {
  v.Nested("metadata", Presence::kOptional, [&o](auto& metadata) {
    metadata.TextMap("labels", o.labels, rules::kQualifiedName, rules::kLabelValue);
    metadata.TextMap("annotations", o.annotations, rules::kQualifiedName);
  });
  v.Struct("spec", o.spec, Presence::kRequired);
}

// A volume without a source stays the emptyDir that it is by default.
template <typename V>
void Fields(V& v, PodVolume& o) {
  v.Text("name", o.name, rules::kDnsLabel, Presence::kRequired);
  int seen = 0;
  SourceCases(v, o.source, seen);
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
  v.Number("runAsUser", o.run_as_user, rules::kUnixId);
  v.Number("runAsGroup", o.run_as_group, rules::kUnixId);
  v.Bool("privileged", o.privileged);
  v.Maybe("seLinuxOptions", o.se_linux_options);
}

template <typename V>
void Fields(V& v, PodSecurityContext& o) {
  v.Number("runAsUser", o.run_as_user, rules::kUnixId);
  v.Number("runAsGroup", o.run_as_group, rules::kUnixId);
  v.Number("fsGroup", o.fs_group, rules::kUnixId);
  v.Enum("fsGroupChangePolicy", o.fs_group_change_policy);
  v.Ints("supplementalGroups", o.supplemental_groups, rules::kUnixId);
  v.Maybe("seLinuxOptions", o.se_linux_options);
  v.Enum("seLinuxChangePolicy", o.se_linux_change_policy);
}

template <typename V>
void Fields(V& v, VolumeMount& o) {
  v.Text("name", o.name, rules::kDnsLabel, Presence::kRequired);
  v.Path("mountPath", o.mount_path, rules::kMountPath, Presence::kRequired);
  v.Text("subPath", o.sub_path, rules::kSubPath);
  v.Text("subPathExpr", o.sub_path_expr, rules::kSubPath);
  v.Bool("readOnly", o.read_only);
  v.Enum("recursiveReadOnly", o.recursive_read_only);
  v.Enum("mountPropagation", o.mount_propagation);
}

template <typename V>
void Fields(V& v, VolumeDevice& o) {
  v.Text("name", o.name, rules::kDnsLabel, Presence::kRequired);
  v.Path("devicePath", o.device_path, rules::kMountPath, Presence::kRequired);
}

template <typename V>
void Fields(V& v, ConfigMapKeySelector& o) {
  v.Text("name", o.name, rules::kDnsSubdomain);
  v.Text("key", o.key, rules::kConfigKey, Presence::kRequired);
  v.Bool("optional", o.optional);
}

template <typename V>
void Fields(V& v, SecretKeySelector& o) {
  v.Text("name", o.name, rules::kDnsSubdomain);
  v.Text("key", o.key, rules::kConfigKey, Presence::kRequired);
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
  v.Text("name", o.name, rules::kEnvName, Presence::kRequired);
  v.Text("value", o.value);
  v.Maybe("valueFrom", o.value_from);
}

template <typename V>
void Fields(V& v, ResourceRequirements& o) {
  v.Amounts("limits", o.limits);
  v.Amounts("requests", o.requests);
}

// The same for all three lists of containers, though a restart policy counts for init containers
// alone.
template <typename V>
void Fields(V& v, Container& o) {
  v.Text("name", o.name, rules::kDnsLabel, Presence::kRequired);
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
  v.Text("nodeName", o.node_name, rules::kDnsSubdomain);
  // The deprecated name of the same field, which still appears; the newer one wins.
  v.Text("serviceAccount", o.service_account_name, rules::kDnsSubdomain);
  v.Text("serviceAccountName", o.service_account_name, rules::kDnsSubdomain);
  v.Number("terminationGracePeriodSeconds", o.termination_grace_period_seconds,
           rules::kNotNegative);
  v.Number("activeDeadlineSeconds", o.active_deadline_seconds, rules::kPositive);
  v.Enum("restartPolicy", o.restart_policy);
  v.Bool("hostUsers", o.host_users, true);
  v.Bool("hostNetwork", o.host_network);
}

// status.podIPs and status.hostIPs are lists of {ip}.
template <typename V>
void IpListFields(V& v, const char* name, std::vector<std::string>& ips) {
  v.Wrapped(name, "ip", ips);
}

// Of the status only the phase and the addresses are read.
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
  v.Text("kind", o.kind, rules::kNotEmpty, Presence::kRequired);
  v.Text("name", o.name, rules::kNotEmpty, Presence::kRequired);
  v.Text("uid", o.uid, rules::kUid, Presence::kRequired);
  v.Bool("controller", o.controller);
}

// The metadata of any object. Its name is a DNS subdomain, which is what most kinds demand;
// CSIDriver demands more (Validate). A kind without namespaces does not read the namespace.
template <typename V>
void MetaFields(V& v, ObjectMeta& o, ObjectScope scope) {
  v.Text("name", o.name, rules::kDnsSubdomain, Presence::kRequired);
  v.Text("generateName", o.generate_name);
  if (scope == ObjectScope::kNamespaced) v.Text("namespace", o.name_space, rules::kDnsLabel);
  v.Text("uid", o.uid, rules::kUid);
  v.TextMap("labels", o.labels, rules::kQualifiedName, rules::kLabelValue);
  v.TextMap("annotations", o.annotations, rules::kQualifiedName);
  v.Time("creationTimestamp", o.creation_unix_millis);
  v.Time("deletionTimestamp", o.deletion_unix_millis);
  v.Number("deletionGracePeriodSeconds", o.deletion_grace_period_seconds, rules::kNotNegative);
  v.Texts("finalizers", o.finalizers, rules::kQualifiedName);
  v.List("ownerReferences", o.owner_references);
}

// The field "metadata" of an object of kind T.
template <typename V, typename T>
void Metadata(V& v, T& object) {
  v.Nested("metadata", Presence::kRequired, [&object](auto& nested) {
    MetaFields(nested, object.metadata, ObjectTraits<T>::kFacts.scope);
  });
}

template <typename V>
void Fields(V& v, Pod& o) {
  Metadata(v, o);
  v.Struct("spec", o.spec, Presence::kRequired);
  v.Struct("status", o.status);
}

// Names of volumes and of containers are unique; mounts and devices are of the pod's volumes, at
// places of their own; a device is of a claim; resources are of containers that the pod has.
void Validate(const Pod& pod, const std::string& prefix, ProblemSink& problems);
// Only the volumes of a pod under one uid must not change.
void CheckUpdate(const Pod& before, const Pod& now, UpdateChecks& checks);

// The manifest's stringData is merged into data, and wins.
template <typename V>
void Fields(V& v, SecretObject& o) {
  Metadata(v, o);
  v.Text("type", o.type);
  v.Bool("immutable", o.immutable);
  v.SecretBytesMap("data", o.data, rules::kConfigKey);
  v.SecretTextMap("stringData", o.data, rules::kConfigKey);
}

inline void Validate(const SecretObject&, const std::string&, ProblemSink&) {}
// The type never changes; data not if `immutable` is set. Problems do not say what the data is.
void CheckUpdate(const SecretObject& before, const SecretObject& now, UpdateChecks& checks);

template <typename V>
void Fields(V& v, ConfigMapObject& o) {
  Metadata(v, o);
  v.Bool("immutable", o.immutable);
  v.TextMap("data", o.data, rules::kConfigKey);
  v.BytesMap("binaryData", o.binary_data, rules::kConfigKey);
}

// A key is in one of data and binaryData.
void Validate(const ConfigMapObject& config_map, const std::string& prefix, ProblemSink& problems);
// Neither data nor binaryData changes if `immutable` is set.
void CheckUpdate(const ConfigMapObject& before, const ConfigMapObject& now, UpdateChecks& checks);

// Besides the metadata of a node only its amounts are read.
template <typename V>
void Fields(V& v, NodeObject& o) {
  Metadata(v, o);
  v.Nested("status", Presence::kOptional, [&o](auto& nested) {
    nested.Amounts("capacity", o.capacity);
    nested.Amounts("allocatable", o.allocatable);
  });
}

inline void Validate(const NodeObject&, const std::string&, ProblemSink&) {}
inline void CheckUpdate(const NodeObject&, const NodeObject&, UpdateChecks&) {}

}  // namespace volumed
