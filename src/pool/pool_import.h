// Import: what it takes to make a PersistentVolume of storage that is there already, without
// copying it. A plan only looks: it says what would be done, and what is wrong. A directory of a
// local-path or hostpath provisioner and a logical volume stay where they are, and get a
// PersistentVolume with a `local` source; a volume of a CSI driver gets one with its handle. An
// image file and a subvolume that lie on a pool's filesystem become volumes of the pool, which
// share their blocks; the file itself stays as it is. Hence other hard links of it matter to
// nobody.
//
// A plain directory on a pool's filesystem becomes a volume of the pool, if one is named, by being
// moved there: nothing but its name changes. Until the volume is ready it is on record where it
// was, and whoever deletes such a volume gets it back there. An image on a filesystem that shares
// no blocks becomes none.
//
// Threads: any; one call per source at a time. Blocks: until the call's deadline.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/storage_objects.h"
#include "os/kernel.h"
#include "pool/pool_volumes.h"

namespace volumed {

enum class ImportKind { kDirectory, kImage, kLogicalVolume, kCsi };
// "directory", "image", "logical volume", "csi". Pure.
std::string_view ImportKindName(ImportKind kind);

struct ImportRequest {
  // An absolute, clean path, or "<driver>^<handle>".
  std::string source;
  // In which it is to become a volume. Empty: an image becomes one of the pool on whose filesystem
  // it lies, and nothing else becomes one.
  std::string pool;
  std::string pv_name;     // empty: one that follows from the source
  int64_t size_bytes = 0;  // 0: what it has; to be said of a CSI volume and of a subvolume
};

struct ImportPlan {
  ImportKind kind = ImportKind::kCsi;
  // Nullopt: nothing is to be made.
  std::optional<PoolImportWish> wish;
  // The volume of a pool that it is, or that an earlier call has begun to make of it; empty: none.
  std::string volume;
  // In a sentence, what is done, or was.
  std::string deed;
  // What a person has to know besides: it is not repaired, or not seen from here.
  std::vector<std::string> notes;
  int64_t size_bytes = 0;
  bool is_block = false;
  PoolFilesystem filesystem;
  // To be applied. Of a volume that is not made yet it has no handle that names anything.
  PersistentVolume object;
};

// All outlive the call.
struct ImportParts {
  PoolVolumes& volumes;
  Kernel& kernel;
  const std::string& driver;  // of the pools
  std::string node;
  std::string agent_root;                         // which nothing is imported from
  std::vector<std::string> own_directories = {};  // likewise
};

// Only looks. A look at an image attaches a loop device to it that takes no writes, and detaches it
// again; one that an agent has left that ended meanwhile is used again, and said. Errors, not
// applied: InvalidArgument for a request that is none; NotFound; FailedPrecondition for what is
// mounted or attached elsewhere, is led to by a link, lies in a pool's volumes or in the agent's
// own directories, or has a filesystem that was never finished; Unimplemented for an image that
// shares no blocks; OutOfRange for a size below what is used; those of the effects. Maybe applied:
// the loop device may be left.
Result<ImportPlan> PlanImport(const ImportParts& parts, const ImportRequest& request,
                              const CallOptions& call);

// Does what is planned; may be repeated, with a plan that was made anew. Errors: those of
// PoolVolumes::Import.
Result<ImportPlan> DoImport(const ImportParts& parts, ImportPlan plan, const CallOptions& call);

}  // namespace volumed
