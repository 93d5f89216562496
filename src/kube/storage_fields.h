// The typed fields of PersistentVolume, PersistentVolumeClaim, StorageClass, CSIDriver, CSINode and
// VolumeAttachment, and the checks over several of them, declared as those in kube/object_fields.h
// are. For use in .cc files of kube/ only.
// Source: kubernetes core/v1 and storage/v1 types.go@v1.36.2, pkg/apis/core/validation
// (ValidatePersistentVolume, ValidatePersistentVolumeClaim, ValidatePersistentVolumeSpec for inline
// volumes), pkg/apis/storage/validation (ValidateStorageClass, ValidateCSIDriver, ValidateCSINode,
// ValidateVolumeAttachment, and the updates of these).
#pragma once

#include "kube/object_fields.h"

namespace volumed {

template <typename V>
void Fields(V& v, ClaimReference& o) {
  v.Text("namespace", o.name_space, rules::kDnsLabel, Presence::kRequired);
  v.Text("name", o.name, rules::kDnsSubdomain, Presence::kRequired);
  v.Text("uid", o.uid, rules::kUid);
}

template <typename V>
void Fields(V& v, NodeRequirement& o) {
  v.Text("key", o.key, rules::kQualifiedName, Presence::kRequired);
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

// A volume without a source, or with one that nobody knows, is refused: unlike a pod's volume it
// has no default.
template <typename V>
void Fields(V& v, PersistentVolumeSpec& o) {
  v.Nested("capacity", Presence::kRequired,
           [&o](auto& capacity) { capacity.Amount("storage", o.capacity, Presence::kRequired); });
  int seen = 0;
  SourceCases(v, o.source, seen);
  v.RequireCase(seen, "names no volume source of a kind that this program knows");
  v.Enums("accessModes", o.access_modes, Presence::kRequired);
  v.Enum("persistentVolumeReclaimPolicy", o.reclaim_policy);
  v.Text("storageClassName", o.storage_class_name, rules::kDnsSubdomain);
  v.Texts("mountOptions", o.mount_options, rules::kNotEmpty);
  v.Enum("volumeMode", o.volume_mode);
  v.Maybe("claimRef", o.claim_ref);
  v.Maybe("nodeAffinity", o.node_affinity);
  v.Text("volumeAttributesClassName", o.volume_attributes_class_name, rules::kDnsSubdomain);
}

template <typename V>
void Fields(V& v, PersistentVolumeStatus& o) {
  v.Enum("phase", o.phase);
  v.Text("reason", o.reason);
  v.Text("message", o.message);
}

template <typename V>
void Fields(V& v, PersistentVolume& o) {
  Metadata(v, o);
  v.Struct("spec", o.spec, Presence::kRequired);
  v.Struct("status", o.status);
}

// The capacity is more than zero, a local volume says to which nodes it belongs, and "/" of a host
// is never recycled.
void Validate(const PersistentVolume& volume, const std::string& prefix, ProblemSink& problems);
// Source and mode never change, and neither does a node affinity once it is there; while the volume
// is bound, its size does not shrink and its class stays.
void CheckUpdate(const PersistentVolume& before, const PersistentVolume& now, UpdateChecks& checks);

template <typename V>
void Fields(V& v, ClaimCondition& o) {
  v.Text("type", o.type, rules::kNotEmpty, Presence::kRequired);
  v.Text("status", o.status, rules::kNotEmpty, Presence::kRequired);
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
  v.TextMap("allocatedResourceStatuses", o.allocated_resource_statuses, rules::kQualifiedName);
  v.List("conditions", o.conditions);
}

template <typename V>
void Fields(V& v, PersistentVolumeClaim& o) {
  Metadata(v, o);
  v.Struct("spec", o.spec, Presence::kRequired);
  v.Struct("status", o.status);
}

void Validate(const PersistentVolumeClaim& claim, const std::string& prefix, ProblemSink& problems);
// The spec never changes, but for a volume name and a class that are given later. A bound claim's
// request may grow, or shrink to more than the capacity that its status says, and its attributes
// class may change.
void CheckUpdate(const PersistentVolumeClaim& before, const PersistentVolumeClaim& now,
                 UpdateChecks& checks);

template <typename V>
void Fields(V& v, TopologyRequirement& o) {
  v.Text("key", o.key, rules::kQualifiedName, Presence::kRequired);
  v.Texts("values", o.values);
}

template <typename V>
void Fields(V& v, TopologyTerm& o) {
  v.List("matchLabelExpressions", o.match_label_expressions);
}

template <typename V>
void Fields(V& v, StorageClass& o) {
  Metadata(v, o);
  v.Text("provisioner", o.provisioner, rules::kQualifiedName, Presence::kRequired);
  v.TextMap("parameters", o.parameters, rules::kNotEmpty);
  v.Enum("reclaimPolicy", o.reclaim_policy);
  v.Texts("mountOptions", o.mount_options, rules::kNotEmpty);
  v.Bool("allowVolumeExpansion", o.allow_volume_expansion);
  v.Enum("volumeBindingMode", o.volume_binding_mode);
  v.List("allowedTopologies", o.allowed_topologies);
}

// The reclaim policy is not Recycle, and a topology names values.
void Validate(const StorageClass& storage_class, const std::string& prefix, ProblemSink& problems);
// Parameters, provisioner, reclaim policy and binding mode never change.
void CheckUpdate(const StorageClass& before, const StorageClass& now, UpdateChecks& checks);

template <typename V>
void Fields(V& v, CsiTokenRequest& o) {
  v.Text("audience", o.audience);
  v.Number("expirationSeconds", o.expiration_seconds, rules::kTokenExpiration);
}

// The fields of "spec" are members of the object itself.
template <typename V>
void Fields(V& v, CsiDriverObject& o) {
  Metadata(v, o);
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
                rules::kAllocatableUpdatePeriod);
    spec.Bool("serviceAccountTokenInSecrets", o.service_account_token_in_secrets);
  });
}

// Its name is that of a CSI driver, each audience is asked for once, and it is said where tokens go
// only if some are asked for.
void Validate(const CsiDriverObject& driver, const std::string& prefix, ProblemSink& problems);
// Whether volumes are attached, and which modes they may have, never changes.
void CheckUpdate(const CsiDriverObject& before, const CsiDriverObject& now, UpdateChecks& checks);

template <typename V>
void Fields(V& v, CsiNodeDriver& o) {
  v.Text("name", o.name, rules::kDriverName, Presence::kRequired);
  v.Text("nodeID", o.node_id, rules::kNotEmpty, Presence::kRequired);
  v.Texts("topologyKeys", o.topology_keys, rules::kQualifiedName);
  v.Nested("allocatable", Presence::kOptional, [&o](auto& allocatable) {
    allocatable.Number("count", o.allocatable_count, rules::kNotNegative);
  });
}

// A node without drivers has an empty list, or none.
template <typename V>
void Fields(V& v, CsiNodeObject& o) {
  Metadata(v, o);
  v.Nested("spec", Presence::kRequired, [&o](auto& spec) { spec.List("drivers", o.drivers); });
}

// No driver is there twice, no topology key is twice in one, and no node's id is too long.
void Validate(const CsiNodeObject& node, const std::string& prefix, ProblemSink& problems);
// A driver that stays keeps its node's id and its topology keys. Whoever has to change these takes
// the driver out first, as it is when it registers anew.
void CheckUpdate(const CsiNodeObject& before, const CsiNodeObject& now, UpdateChecks& checks);

inline constexpr char kNotOfInlineVolumes[] =
    "may not be specified in the context of inline volumes";

template <typename V>
void Fields(V& v, InlineVolumeSpec& o) {
  for (const char* name : {"capacity", "claimRef", "nodeAffinity"}) {
    v.Forbidden(name, kNotOfInlineVolumes);
  }
  v.Struct("csi", o.csi, Presence::kRequired);
  v.Enums("accessModes", o.access_modes, Presence::kRequired);
  v.Enum("persistentVolumeReclaimPolicy", o.reclaim_policy);
  v.Text("storageClassName", o.storage_class_name, rules::kDnsSubdomain);
  v.Texts("mountOptions", o.mount_options, rules::kNotEmpty);
  v.Enum("volumeMode", o.volume_mode);
  v.Text("volumeAttributesClassName", o.volume_attributes_class_name, rules::kDnsSubdomain);
}

template <typename V>
void Fields(V& v, VolumeError& o) {
  v.Time("time", o.unix_millis);
  v.Text("message", o.message);
  v.Number("errorCode", o.error_code, rules::kNotNegative);
}

// The fields of "spec", "spec.source" and "status" are members of the object itself.
template <typename V>
void Fields(V& v, VolumeAttachment& o) {
  Metadata(v, o);
  v.Nested("spec", Presence::kRequired, [&o](auto& spec) {
    spec.Text("attacher", o.attacher, rules::kDriverName, Presence::kRequired);
    spec.Text("nodeName", o.node_name, rules::kDnsSubdomain, Presence::kRequired);
    spec.Nested("source", Presence::kRequired, [&o](auto& source) {
      source.Text("persistentVolumeName", o.persistent_volume_name, rules::kDnsSubdomain);
      source.Maybe("inlineVolumeSpec", o.inline_volume_spec);
    });
  });
  v.Nested("status", Presence::kOptional, [&o](auto& status) {
    status.Bool("attached", o.attached);
    status.TextMap("attachmentMetadata", o.attachment_metadata);
    status.Maybe("attachError", o.attach_error);
    status.Maybe("detachError", o.detach_error);
  });
}

// It has exactly one source, and its status is not larger than an API server takes.
void Validate(const VolumeAttachment& attachment, const std::string& prefix, ProblemSink& problems);
// Only the status changes.
void CheckUpdate(const VolumeAttachment& before, const VolumeAttachment& now, UpdateChecks& checks);

}  // namespace volumed
