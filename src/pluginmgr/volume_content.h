// VolumeContent: what a new volume has in it from the beginning; VolumeContents, which finds it for
// a claim that names a source of its data; and ContentHolder, which keeps it for whoever makes the
// volume of it.
// Source: kubernetes core/v1 types.go@v1.36.2 (PersistentVolumeClaimSpec.DataSource,
// DataSourceRef).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/quantity.h"
#include "base/result.h"
#include "kube/objects.h"
#include "os/kernel.h"

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

// A content that stays as it is until this object goes: a cut that its pool owns.
// Threads: any. The destructor may post work; it blocks never.
class HeldContent {
 public:
  virtual ~HeldContent() = default;
  virtual const std::string& cut_id() const = 0;
};

// Whoever knows which snapshots there are, for whoever makes volumes from them.
// Threads: any. Blocks: until the call's deadline, as a cut may have to be made.
class ContentHolder {
 public:
  virtual ~ContentHolder() = default;
  // Holds a snapshot that is ready, or cuts the volume that is to be cloned. `for_volume` is the id
  // of the new volume: a repeated call for it holds the same cut. REQUIRES: the calling operation
  // has the device of a volume that is cloned for itself. Errors, not applied: NotFound;
  // Unavailable, if the snapshot is not ready yet; FailedPrecondition, if it failed or is being
  // deleted; those of a cut, of which some are maybe applied.
  virtual Result<std::unique_ptr<HeldContent>> Hold(const VolumeContent& content,
                                                    const std::string& for_volume,
                                                    const CallOptions& call) = 0;
};

}  // namespace volumed
