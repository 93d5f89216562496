// Volumes that are made of what is on the node already, without a copy of it.
#include <utility>

#include "base/byte_text.h"
#include "base/printable_text.h"
#include "pool/pool_volumes_parts.h"

namespace volumed {
namespace {

// The smallest sectors that there are: an xfs that was made with sectors of 512 bytes does not
// mount from larger ones, and every filesystem mounts from smaller ones than its own.
constexpr int64_t kImportedBlockBytes = 512;

// Whether the row is that of the same import: nothing of its source has changed since.
bool IsSameImport(const PoolVolumeRecord& there, const PoolVolumeRecord& wanted) {
  return there.pool == wanted.pool && there.backend == wanted.backend &&
         there.capacity_bytes == wanted.capacity_bytes && there.is_block == wanted.is_block &&
         there.parameters == wanted.parameters && there.filesystem == wanted.filesystem &&
         there.source == wanted.source;
}

}  // namespace

Status PoolVolumes::CheckImported(const PoolImportWish& wish, const CallOptions& call) {
  ASSIGN_OR_RETURN(const StorageIdentity there,
                   parts_.kernel.Call(IdentifyStorage{.path = wish.source.path}, call));
  const std::string source = wish.source.path.Display();
  if (there.type == FileType::kMissing) {
    return Error::NotApplied(Code::kNotFound, "nothing is at " + source);
  }
  const std::string difference = StorageDifference(wish.source.object, there.object);
  if (difference.empty()) return OkStatus();
  return PoolRefusal("something else is at " + source + " than was looked at: " + difference);
}

Result<PoolVolumeRecord> PoolVolumes::PlanImported(const PoolImportWish& wish) const {
  StringMap said = {{"pool", wish.pool}, {"backend", std::string(PoolBackendName(wish.backend))}};
  if (IsTree(wish.backend)) said["quota"] = "best-effort";
  if (!wish.filesystem.type.empty()) said[kPoolFsTypeParameter] = wish.filesystem.type;
  ASSIGN_OR_RETURN(const PoolParameters parameters, ParsePoolParameters(said));
  RETURN_IF_ERROR(CheckPoolMode(parameters, wish.is_block));
  ASSIGN_OR_RETURN(const Pool* pool, OpenPoolFor(parameters));
  RETURN_IF_ERROR(CheckLookedThrough(*pool));
  if (wish.bytes <= 0 || wish.bytes % kPoolBlockBytes != 0) {
    return Error::NotApplied(Code::kOutOfRange,
                             "a volume cannot have " + BytesForPeople(wish.bytes) +
                                 ": sizes are multiples of " + std::to_string(kPoolBlockBytes));
  }
  PoolVolumeRecord record;
  record.id = NewPoolId(PoolObject::kVolume, pool->tag()).ToString();
  record.pool = pool->name();
  record.name = wish.name;
  record.backend = wish.backend;
  record.capacity_bytes = wish.bytes;
  record.is_block = wish.is_block;
  record.parameters = parameters.ToMap();
  record.family = record.id;
  record.filesystem = wish.filesystem;
  if (wish.backend == PoolBackendKind::kDirectory) {
    record.source = wish.source.path.Display();
    record.object = wish.source.object;
  }
  // What is in it is somebody's from the beginning.
  record.used = true;
  record.created_unix_ms = parts_.clock.WallUnixMillis();
  record.block_bytes = kImportedBlockBytes;
  return record;
}

// The source is still there (CheckImported), or is given back, so that nothing is lost by it.
Status PoolVolumes::TakeBackImport(PoolVolumeRecord record, const CallOptions& call) {
  ASSIGN_OR_RETURN(const Taken id, Take({record.id}));
  const Pool* const pool = PoolNamed(record.pool);
  if (pool == nullptr) {
    return PoolRefusal("its import into pool " + record.pool + " was begun as volume " + record.id +
                       ", and that pool is not configured any more");
  }
  ASSIGN_OR_RETURN(PoolBackend* const backend, BackendOf(*pool, record.backend));
  const CallOptions in_pool = InPool(call, *pool, record.id);
  RETURN_IF_ERROR(pool->CheckThere(in_pool));
  return Unmake(record, *backend, in_pool);
}

Result<PoolVolumeRecord> PoolVolumes::Import(const PoolImportWish& wish, const CallOptions& call) {
  RETURN_IF_ERROR(CheckAllReadable(call));
  ASSIGN_OR_RETURN(const Taken name, Take({NameKey(wish.name)}));
  const std::optional<PoolVolumeRecord> there = FindByName(wish.name);
  if (there && there->state == PoolVolumeState::kDeleting) {
    return Error::NotApplied(Code::kAborted, "volume " + there->id + ", which was made of " +
                                                 wish.source.path.Display() + ", is being deleted");
  }
  if (there && there->state != PoolVolumeState::kMaking) return *there;
  if (there) RETURN_IF_ERROR(CheckNotDoubted(*there));
  ASSIGN_OR_RETURN(PoolVolumeRecord record, PlanImported(wish));
  const bool goes_on = there && IsSameImport(*there, record);
  // It may be where an earlier call has moved it.
  const bool moves = there && !there->source.empty();
  if (!moves) RETURN_IF_ERROR(CheckImported(wish, call));
  if (goes_on) {
    record = *there;
  } else if (there) {
    RETURN_IF_ERROR(TakeBackImport(*there, call));
    if (moves) RETURN_IF_ERROR(CheckImported(wish, call));
  }
  const Fill fill = [&wish](Making& making) -> Result<MadeArtefact> {
    // A file is cloned anew, and a directory that was moved is found; a snapshot that is there
    // stays the one of an earlier moment.
    if (making.is_repeat && making.record.backend == PoolBackendKind::kSubvolume) {
      RETURN_IF_ERROR(making.backend.Discard(making.record, making.call));
    }
    return making.backend.Import(making.record, making.parameters, wish.source, making.call);
  };
  return Make(std::move(record), fill, /*ends_if_lost=*/false, call);
}

}  // namespace volumed
