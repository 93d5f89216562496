// VolumeContent: what a new volume has in it from the beginning; and VolumeContents, which finds it
// for a claim that names a source of its data.
// Source: kubernetes core/v1 types.go@v1.36.2 (PersistentVolumeClaimSpec.DataSource,
// DataSourceRef).
#pragma once

#include <optional>
#include <string>

#include "base/quantity.h"
#include "base/result.h"
#include "kube/objects.h"

namespace volumed {

// A value. The content is a volume that is cloned, or a snapshot.
struct VolumeContent {
  bool is_snapshot = false;
  std::string driver;  // which has it, and so has to make the new volume
  std::string handle;  // by which the driver knows it
  // The PersistentVolume that is cloned; "" for a snapshot.
  std::string volume_name;
  VolumeMode volume_mode = VolumeMode::kFilesystem;
  // The new volume has to have at least this size; zero: not known.
  Quantity size;
  friend bool operator==(const VolumeContent&, const VolumeContent&) = default;
};

// Whoever knows the objects that may be the source of a claim's data.
// Threads: the control thread. Blocks: never.
class VolumeContents {
 public:
  virtual ~VolumeContents() = default;
  // Nullopt: the claim names no source. Errors, not applied: NotFound and Unavailable, if the
  // source is not there or not ready (yet); InvalidArgument, if it can never be one.
  virtual Result<std::optional<VolumeContent>> Find(const PersistentVolumeClaim& claim) const = 0;
};

}  // namespace volumed
