// The typed fields of PersistentVolume, PersistentVolumeClaim, StorageClass and CSIDriver, declared
// as those in kube/object_fields.h are. For use in .cc files of kube/ only.
// Source: kubernetes core/v1 and storage/v1 types.go@v1.36.2.
#pragma once

#include "kube/object_fields.h"

namespace volumed {

template <typename V>
void Fields(V& v, SecretReference& o) {
  v.Text("name", o.name, kDnsSubdomain, Presence::kRequired);
  v.Text("namespace", o.name_space, kDnsLabel, Presence::kRequired);
}

template <typename V>
void Fields(V& v, LocalVolumeSource& o) {
  v.Path("path", o.path, kHostPath, Presence::kRequired);
  v.Text("fsType", o.fs_type);
}

template <typename V>
void Fields(V& v, CsiPersistentVolumeSource& o) {
  v.Text("driver", o.driver, kDriverName, Presence::kRequired);
  v.Text("volumeHandle", o.volume_handle, kNotEmpty, Presence::kRequired);
  v.Bool("readOnly", o.read_only);
  v.Text("fsType", o.fs_type);
  v.TextMap("volumeAttributes", o.volume_attributes);
  v.Maybe("controllerPublishSecretRef", o.controller_publish_secret_ref);
  v.Maybe("nodeStageSecretRef", o.node_stage_secret_ref);
  v.Maybe("nodePublishSecretRef", o.node_publish_secret_ref);
  v.Maybe("controllerExpandSecretRef", o.controller_expand_secret_ref);
  v.Maybe("nodeExpandSecretRef", o.node_expand_secret_ref);
}

template <typename V>
void Fields(V& v, ClaimReference& o) {
  v.Text("namespace", o.name_space, kDnsLabel, Presence::kRequired);
  v.Text("name", o.name, kDnsSubdomain, Presence::kRequired);
  v.Text("uid", o.uid, kUid);
}

template <typename V>
void Fields(V& v, NodeRequirement& o) {
  v.Text("key", o.key, kQualifiedName, Presence::kRequired);
  v.Enum("operator", o.op, Presence::kRequired);
  v.Texts("values", o.values);
}

template <typename V>
void Fields(V& v, NodeSelectorTerm& o) {
  v.List("matchExpressions", o.match_expressions);
  v.List("matchFields", o.match_fields);
}

template <typename V>
void Fields(V& v, NodeSelector& o) {
  v.List("nodeSelectorTerms", o.terms, Presence::kRequired);
}

template <typename V>
void Fields(V& v, VolumeNodeAffinity& o) {
  v.Struct("required", o.required, Presence::kRequired);
}

template <typename V>
void Fields(V& v, PersistentVolumeSpec& o) {
  v.Nested("capacity", Presence::kRequired,
           [&o](auto& capacity) { capacity.Amount("storage", o.capacity, Presence::kRequired); });
  int seen = 0;
  v.template Case<HostPathVolumeSource>("hostPath", o.source, seen);
  v.template Case<LocalVolumeSource>("local", o.source, seen);
  v.template Case<NfsVolumeSource>("nfs", o.source, seen);
  v.template Case<IscsiPersistentVolumeSource>("iscsi", o.source, seen);
  v.template Case<FcVolumeSource>("fc", o.source, seen);
  v.template Case<CsiPersistentVolumeSource>("csi", o.source, seen);
  v.template Case<FlexPersistentVolumeSource>("flexVolume", o.source, seen);
  for (const RemovedSource& removed : kRemovedSources) {
    v.RemovedCase(removed.field, o.source, seen);
  }
  v.RequireCase(seen, "names no volume source of a kind that this program knows");
  v.Enums("accessModes", o.access_modes, Presence::kRequired);
  v.Enum("persistentVolumeReclaimPolicy", o.reclaim_policy);
  v.Text("storageClassName", o.storage_class_name, kDnsSubdomain);
  v.Texts("mountOptions", o.mount_options, kNotEmpty);
  v.Enum("volumeMode", o.volume_mode);
  v.Maybe("claimRef", o.claim_ref);
  v.Maybe("nodeAffinity", o.node_affinity);
  v.Text("volumeAttributesClassName", o.volume_attributes_class_name, kDnsSubdomain);
}

template <typename V>
void Fields(V& v, PersistentVolumeStatus& o) {
  v.Enum("phase", o.phase);
  v.Text("reason", o.reason);
  v.Text("message", o.message);
}

template <typename V>
void Fields(V& v, PersistentVolume& o) {
  Metadata(v, o.metadata, Scope::kCluster);
  v.Struct("spec", o.spec, Presence::kRequired);
  v.Struct("status", o.status);
}

template <typename V>
void Fields(V& v, ClaimCondition& o) {
  v.Text("type", o.type, kNotEmpty, Presence::kRequired);
  v.Text("status", o.status, kNotEmpty, Presence::kRequired);
  v.Text("reason", o.reason);
  v.Text("message", o.message);
  v.Time("lastTransitionTime", o.last_transition_unix_millis);
}

template <typename V>
void Fields(V& v, PersistentVolumeClaimStatus& o) {
  v.Enum("phase", o.phase);
  v.Enums("accessModes", o.access_modes);
  v.Amounts("capacity", o.capacity);
  v.Amounts("allocatedResources", o.allocated_resources);
  v.TextMap("allocatedResourceStatuses", o.allocated_resource_statuses, kQualifiedName);
  v.List("conditions", o.conditions);
}

template <typename V>
void Fields(V& v, PersistentVolumeClaim& o) {
  Metadata(v, o.metadata, Scope::kNamespaced);
  v.Struct("spec", o.spec, Presence::kRequired);
  v.Struct("status", o.status);
}

template <typename V>
void Fields(V& v, TopologyRequirement& o) {
  v.Text("key", o.key, kQualifiedName, Presence::kRequired);
  v.Texts("values", o.values);
}

template <typename V>
void Fields(V& v, TopologyTerm& o) {
  v.List("matchLabelExpressions", o.match_label_expressions);
}

template <typename V>
void Fields(V& v, StorageClass& o) {
  Metadata(v, o.metadata, Scope::kCluster);
  v.Text("provisioner", o.provisioner, kQualifiedName, Presence::kRequired);
  v.TextMap("parameters", o.parameters, kNotEmpty);
  v.Enum("reclaimPolicy", o.reclaim_policy);
  v.Texts("mountOptions", o.mount_options, kNotEmpty);
  v.Bool("allowVolumeExpansion", o.allow_volume_expansion);
  v.Enum("volumeBindingMode", o.volume_binding_mode);
  v.List("allowedTopologies", o.allowed_topologies);
}

template <typename V>
void Fields(V& v, CsiTokenRequest& o) {
  v.Text("audience", o.audience);
  v.Number("expirationSeconds", o.expiration_seconds, kTokenExpiration);
}

template <typename V>
void Fields(V& v, CsiDriverObject& o) {
  Metadata(v, o.metadata, Scope::kCluster);
  v.Nested("spec", Presence::kRequired, [&o](auto& spec) {
    spec.Bool("attachRequired", o.attach_required, true);
    spec.Bool("podInfoOnMount", o.pod_info_on_mount);
    spec.Enum("fsGroupPolicy", o.fs_group_policy);
    spec.Bool("storageCapacity", o.storage_capacity);
    spec.Enums("volumeLifecycleModes", o.volume_lifecycle_modes);
    spec.List("tokenRequests", o.token_requests);
    spec.Bool("requiresRepublish", o.requires_republish);
    spec.Bool("seLinuxMount", o.se_linux_mount);
    spec.Number("nodeAllocatableUpdatePeriodSeconds", o.node_allocatable_update_period_seconds,
                kAllocatableUpdatePeriod);
  });
}

}  // namespace volumed
