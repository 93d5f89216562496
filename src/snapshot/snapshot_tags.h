// SnapshotTags: what of a VolumeSnapshot is kept in the tags of the snapshot that was made for it,
// and the VolumeSnapshotContent that follows from both. So the content outlives its VolumeSnapshot
// and the agent without a record of its own.
//
// All functions are pure. Threads: any. Blocks: never.
#pragma once

#include <optional>
#include <string>

#include "kube/objects.h"
#include "snapshot/snapshot_record.h"

namespace volumed {

struct SnapshotTags {
  SnapshotReference snapshot;  // with its uid
  SnapshotDeletionPolicy policy = SnapshotDeletionPolicy::kDelete;
  std::string class_name;
  VolumeMode mode = VolumeMode::kFilesystem;
  friend bool operator==(const SnapshotTags&, const SnapshotTags&) = default;
};

// Names of what is made for a VolumeSnapshot with this uid. Source: external-snapshotter
// pkg/utils/util.go@v8.6.0 (GetDynamicSnapshotContentNameForSnapshot), whose snapshotter calls a
// snapshot likewise.
std::string SnapshotContentName(const std::string& uid);  // "snapcontent-<uid>"
std::string ObjectSnapshotName(const std::string& uid);   // "snapshot-<uid>"

ObjectKey SnapshotKey(const VolumeSnapshot& snapshot);
ObjectKey SnapshotContentKey(const VolumeSnapshotContent& content);

StringMap TagsOf(const SnapshotTags& tags);
// Nullopt: the snapshot was made for no VolumeSnapshot.
std::optional<SnapshotTags> SnapshotTagsOf(const SnapshotRecord& record);

// Whether the snapshot was made for this VolumeSnapshot. Its uid alone does not tell: a manifest
// may be applied with the uid of another object.
bool IsMadeFor(const SnapshotRecord& record, const VolumeSnapshot& snapshot);

// What a record says of itself, as the status of whatever stands for it.
VolumeSnapshotContentStatus ContentStatusOf(const SnapshotRecord& record);
VolumeSnapshotStatus SnapshotStatusOf(const SnapshotRecord& record, const std::string& content);

// The content of a snapshot that was made for a VolumeSnapshot, and is cut; else nullopt. Its uid
// is the snapshot's id.
std::optional<VolumeSnapshotContent> ContentOf(const SnapshotRecord& record,
                                               const std::string& driver);

}  // namespace volumed
