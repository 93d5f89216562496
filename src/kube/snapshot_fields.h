// The typed fields of VolumeSnapshot, VolumeSnapshotContent and VolumeSnapshotClass, and the checks
// over several of them, declared as those in kube/object_fields.h are. For use in .cc files of
// kube/ only.
// Source: kubernetes-csi/external-snapshotter client/apis/volumesnapshot/v1/types.go@v8.6.0, with
// the rules that its custom resource definitions have (XValidation).
#pragma once

#include "kube/object_fields.h"

namespace volumed {

template <typename V>
void Fields(V& v, SnapshotError& o) {
  v.Time("time", o.unix_millis);
  v.Text("message", o.message);
}

template <typename V>
void Fields(V& v, VolumeSnapshotSpec& o) {
  v.Nested("source", Presence::kRequired, [&o](auto& source) {
    source.Text("persistentVolumeClaimName", o.persistent_volume_claim_name, rules::kDnsSubdomain);
    source.Text("volumeSnapshotContentName", o.volume_snapshot_content_name, rules::kDnsSubdomain);
  });
  v.Text("volumeSnapshotClassName", o.volume_snapshot_class_name, rules::kDnsSubdomain);
}

template <typename V>
void Fields(V& v, VolumeSnapshotStatus& o) {
  v.Text("boundVolumeSnapshotContentName", o.bound_volume_snapshot_content_name);
  v.Time("creationTime", o.creation_unix_millis);
  v.Bool("readyToUse", o.ready_to_use);
  v.Amount("restoreSize", o.restore_size);
  v.Maybe("error", o.error);
  v.Text("volumeGroupSnapshotName", o.volume_group_snapshot_name);
}

template <typename V>
void Fields(V& v, VolumeSnapshot& o) {
  Metadata(v, o);
  v.Struct("spec", o.spec, Presence::kRequired);
  v.Struct("status", o.status);
}

// It has exactly one source, and its class has a name if it has one.
void Validate(const VolumeSnapshot& snapshot, const std::string& prefix, ProblemSink& problems);
// The source never changes.
void CheckUpdate(const VolumeSnapshot& before, const VolumeSnapshot& now, UpdateChecks& checks);

template <typename V>
void Fields(V& v, SnapshotReference& o) {
  v.Text("namespace", o.name_space, rules::kDnsLabel, Presence::kRequired);
  v.Text("name", o.name, rules::kDnsSubdomain, Presence::kRequired);
  v.Text("uid", o.uid, rules::kUid);
}

template <typename V>
void Fields(V& v, VolumeSnapshotContentSpec& o) {
  v.Struct("volumeSnapshotRef", o.volume_snapshot_ref, Presence::kRequired);
  v.Enum("deletionPolicy", o.deletion_policy, Presence::kRequired);
  v.Text("driver", o.driver, rules::kDriverName, Presence::kRequired);
  v.Text("volumeSnapshotClassName", o.volume_snapshot_class_name, rules::kDnsSubdomain);
  v.Nested("source", Presence::kRequired, [&o](auto& source) {
    source.Text("volumeHandle", o.volume_handle);
    source.Text("snapshotHandle", o.snapshot_handle);
  });
  v.Enum("sourceVolumeMode", o.source_volume_mode);
}

template <typename V>
void Fields(V& v, VolumeSnapshotContentStatus& o) {
  v.Text("snapshotHandle", o.snapshot_handle);
  v.Number("creationTime", o.creation_unix_nanos, rules::kNotNegative);
  v.Number("restoreSize", o.restore_size, rules::kNotNegative);
  v.Bool("readyToUse", o.ready_to_use);
  v.Maybe("error", o.error);
  v.Text("volumeGroupSnapshotHandle", o.volume_group_snapshot_handle);
}

template <typename V>
void Fields(V& v, VolumeSnapshotContent& o) {
  Metadata(v, o);
  v.Struct("spec", o.spec, Presence::kRequired);
  v.Struct("status", o.status);
}

// It has exactly one source.
void Validate(const VolumeSnapshotContent& content, const std::string& prefix,
              ProblemSink& problems);
// The source never changes, and neither does the mode of the volume once it is known.
void CheckUpdate(const VolumeSnapshotContent& before, const VolumeSnapshotContent& now,
                 UpdateChecks& checks);

template <typename V>
void Fields(V& v, VolumeSnapshotClass& o) {
  Metadata(v, o);
  v.Text("driver", o.driver, rules::kDriverName, Presence::kRequired);
  v.TextMap("parameters", o.parameters, rules::kNotEmpty);
  v.Enum("deletionPolicy", o.deletion_policy, Presence::kRequired);
}

inline void Validate(const VolumeSnapshotClass&, const std::string&, ProblemSink&) {}
inline void CheckUpdate(const VolumeSnapshotClass&, const VolumeSnapshotClass&, UpdateChecks&) {}

}  // namespace volumed
