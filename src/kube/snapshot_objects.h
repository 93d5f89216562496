// VolumeSnapshot, VolumeSnapshotContent and VolumeSnapshotClass as plain values.
//
// Values; threads: any. Source: kubernetes-csi/external-snapshotter
// client/apis/volumesnapshot/v1/types.go@v8.6.0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/quantity.h"
#include "kube/claim_spec.h"
#include "kube/object_meta.h"

namespace volumed {

// On a class that is to be taken for its driver if a snapshot names none: "true".
inline constexpr std::string_view kDefaultSnapshotClassAnnotation =
    "snapshot.storage.kubernetes.io/is-default-class";
// Finalizers, which keep a snapshot as long as a volume is made of it or its content is there, and
// a content as long as its snapshot is.
inline constexpr std::string_view kSnapshotAsSourceProtection =
    "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection";
inline constexpr std::string_view kSnapshotBoundProtection =
    "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection";
inline constexpr std::string_view kSnapshotContentBoundProtection =
    "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection";

// What becomes of a content, and of the snapshot that it stands for, when its VolumeSnapshot is
// deleted: both go with it, or stay as they are.
enum class SnapshotDeletionPolicy { kDelete, kRetain };

// Why a snapshot was not made the last time.
struct SnapshotError {
  std::optional<int64_t> unix_millis;
  std::string message;
  friend bool operator==(const SnapshotError&, const SnapshotError&) = default;
};

// Exactly one of the first two is set.
struct VolumeSnapshotSpec {
  // A claim of the snapshot's namespace, of whose volume the snapshot is to be made.
  std::string persistent_volume_claim_name;
  // The content of a snapshot that exists already.
  std::string volume_snapshot_content_name;
  // Absent: the default class of the claim's driver.
  std::optional<std::string> volume_snapshot_class_name;
  friend bool operator==(const VolumeSnapshotSpec&, const VolumeSnapshotSpec&) = default;
};

// kube/prepare_for_create.h empties it in what a manifest gives. The binding it tells of counts
// only if the content refers back, by name and uid.
struct VolumeSnapshotStatus {
  std::string bound_volume_snapshot_content_name;
  std::optional<int64_t> creation_unix_millis;  // when the point in time was taken
  std::optional<bool> ready_to_use;
  std::optional<Quantity> restore_size;  // the least that a volume made of it has
  std::optional<SnapshotError> error;
  std::string volume_group_snapshot_name;
  friend bool operator==(const VolumeSnapshotStatus&, const VolumeSnapshotStatus&) = default;
};

// A user's wish for a snapshot of a claim, or for one that exists already.
struct VolumeSnapshot {
  ObjectMeta metadata;
  VolumeSnapshotSpec spec;
  VolumeSnapshotStatus status;
  friend bool operator==(const VolumeSnapshot&, const VolumeSnapshot&) = default;
};

// The VolumeSnapshot to which a content is bound, or for which it is kept. Without a uid it is kept
// for the first one of that name.
struct SnapshotReference {
  std::string name_space;
  std::string name;
  std::string uid;
  friend bool operator==(const SnapshotReference&, const SnapshotReference&) = default;
};

struct VolumeSnapshotContentSpec {
  SnapshotReference volume_snapshot_ref;
  SnapshotDeletionPolicy deletion_policy = SnapshotDeletionPolicy::kRetain;
  std::string driver;
  std::optional<std::string> volume_snapshot_class_name;
  // Exactly one of these two: the volume of which the snapshot was or is to be made, or the
  // snapshot that exists, as the driver calls them.
  std::string volume_handle;
  std::string snapshot_handle;
  std::optional<VolumeMode> source_volume_mode;  // absent: not known
  friend bool operator==(const VolumeSnapshotContentSpec&,
                         const VolumeSnapshotContentSpec&) = default;
};

// kube/prepare_for_create.h empties it in what a manifest gives.
struct VolumeSnapshotContentStatus {
  std::string snapshot_handle;
  std::optional<int64_t> creation_unix_nanos;
  std::optional<int64_t> restore_size;  // bytes
  std::optional<bool> ready_to_use;
  std::optional<SnapshotError> error;
  std::string volume_group_snapshot_handle;
  friend bool operator==(const VolumeSnapshotContentStatus&,
                         const VolumeSnapshotContentStatus&) = default;
};

// A snapshot as its driver has it.
struct VolumeSnapshotContent {
  ObjectMeta metadata = ClusterScopedMeta();
  VolumeSnapshotContentSpec spec;
  VolumeSnapshotContentStatus status;
  friend bool operator==(const VolumeSnapshotContent&, const VolumeSnapshotContent&) = default;
};

// Says how snapshots are made, and what becomes of them.
struct VolumeSnapshotClass {
  ObjectMeta metadata = ClusterScopedMeta();
  std::string driver;
  StringMap parameters;  // the driver's own
  SnapshotDeletionPolicy deletion_policy = SnapshotDeletionPolicy::kDelete;
  friend bool operator==(const VolumeSnapshotClass&, const VolumeSnapshotClass&) = default;
};

}  // namespace volumed
