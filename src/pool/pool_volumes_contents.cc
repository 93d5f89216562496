// Volumes with a content from the beginning: what follows from it, how it gets into them, and the
// identity of their filesystems.
#include <algorithm>
#include <memory>
#include <utility>

#include "base/random.h"
#include "pool/pool_volumes_parts.h"
#include "pool/static_backend.h"

namespace volumed {
namespace {

Error BadContent(const std::string& why) { return Error::NotApplied(Code::kInvalidArgument, why); }

// What a new volume has of its source, be that a cut or a volume that is to be cut.
struct ContentSource {
  std::string shown;  // for people
  std::string pool;
  PoolBackendKind backend = PoolBackendKind::kNotKnown;
  bool is_block = false;
  int64_t bytes = 0;
  std::string fs_type;        // empty: it is blank, or a block volume's
  std::string first_fs_type;  // that a blank one is to be formatted with; empty: not known, or none
  std::string family;
  int64_t block_bytes = 0;
};

ContentSource SourceOf(const PoolCutRecord& cut) {
  return {.shown = "snapshot " + cut.id,
          .pool = cut.pool,
          .backend = cut.backend,
          .is_block = cut.is_block,
          .bytes = cut.size_bytes,
          .fs_type = cut.filesystem.type,
          .first_fs_type = cut.first_fs_type,
          .family = cut.family,
          .block_bytes = cut.block_bytes};
}

ContentSource SourceOf(const PoolVolumeRecord& volume) {
  return {.shown = "volume " + volume.id,
          .pool = volume.pool,
          .backend = CutBackendOf(volume.backend),
          .is_block = volume.is_block,
          .bytes = std::max(volume.capacity_bytes, volume.target_bytes),
          .fs_type = volume.filesystem.type,
          .first_fs_type = PoolFilesystemOf(volume),
          .family = volume.family,
          .block_bytes = volume.block_bytes};
}

// Fills in what the wish does not say, and refuses what it says otherwise.
Status TakeSource(const ContentSource& source, const PoolVolumeWish& wish,
                  PoolParameters& parameters) {
  if (source.is_block != wish.is_block) {
    return BadContent(source.shown + (source.is_block ? " is of a block volume, and the new volume "
                                                        "is to have a filesystem"
                                                      : " has a filesystem, and the new volume is "
                                                        "to be a block volume"));
  }
  if (IsListed(source.backend)) {
    return BadContent(source.shown +
                      " is a listed export, and is not copied: its files are its "
                      "server's");
  }
  if (parameters.pool.empty()) parameters.pool = source.pool;
  if (parameters.pool != source.pool) {
    return BadContent(source.shown + " is in pool " + source.pool +
                      ", and the new volume is to be "
                      "in pool " +
                      parameters.pool);
  }
  if (parameters.backend != source.backend) {
    return BadContent(source.shown + " gives volumes of backend " +
                      std::string(PoolBackendName(source.backend)) +
                      ", and the new volume is to be of backend " +
                      std::string(PoolBackendName(parameters.backend)));
  }
  const std::string& inherited = source.fs_type.empty() ? source.first_fs_type : source.fs_type;
  const bool is_said = wish.parameters.contains(kPoolFsTypeParameter);
  if (!is_said && !inherited.empty()) parameters.fs_type = inherited;
  // What is blank can become whatever is asked for.
  if (source.fs_type.empty() || parameters.fs_type == source.fs_type) return OkStatus();
  return BadContent(source.shown + " has a filesystem of type " + source.fs_type +
                    ", and the new volume is to have one of type " + parameters.fs_type);
}

Status CheckGrowsTo(const ContentSource& source, int64_t bytes) {
  if (source.fs_type != "btrfs" || bytes <= source.bytes || bytes >= kLeastResizedBtrfs) {
    return OkStatus();
  }
  return Error::NotApplied(Code::kOutOfRange,
                           source.shown +
                               " has a btrfs, which no kernel resizes to less than "
                               "256Mi: ask for that at least, or for the same size");
}

// What is on record of a copy's filesystem, before it has a UUID of its own.
PoolFilesystem FilesystemOfCopy(const PoolCutRecord& cut) {
  PoolFilesystem filesystem = cut.filesystem;
  if (!cut.is_block && !filesystem.uuid.empty()) filesystem.new_uuid = NewUuid();
  return filesystem;
}

}  // namespace

std::string ContentDifference(const PoolVolumeRecord& there,
                              const std::optional<VolumeContent>& content) {
  const std::string snapshot = content && content->is_snapshot ? content->handle : "";
  const std::string volume = content && !content->is_snapshot ? content->handle : "";
  if (there.from_snapshot == snapshot && there.from_volume == volume) return "";
  if (!there.from_snapshot.empty()) return "it was made of snapshot " + there.from_snapshot;
  if (!there.from_volume.empty()) return "it is a clone of volume " + there.from_volume;
  return "it was made empty";
}

Result<PoolVolumes::Shape> PoolVolumes::ShapeOf(const PoolVolumeWish& wish) const {
  Shape shape;
  ASSIGN_OR_RETURN(shape.parameters, ParsePoolParameters(wish.parameters));
  if (!wish.content) {
    ASSIGN_OR_RETURN(shape.bytes, DecidePoolSize(wish.size, shape.parameters, wish.is_block));
    return shape;
  }
  ContentSource source;
  if (wish.content->is_snapshot) {
    ASSIGN_OR_RETURN(const PoolCutRecord cut, FindCut(wish.content->handle));
    source = SourceOf(cut);
    // An earlier program did not write it down.
    const std::optional<PoolVolumeRecord> volume = FindRow(cut.volume);
    if (source.first_fs_type.empty() && volume) source.first_fs_type = PoolFilesystemOf(*volume);
  } else {
    ASSIGN_OR_RETURN(const PoolVolumeRecord volume, Find(wish.content->handle));
    RETURN_IF_ERROR(CheckUsable(volume));
    RETURN_IF_ERROR(CheckNotInline(volume));
    source = SourceOf(volume);
  }
  RETURN_IF_ERROR(TakeSource(source, wish, shape.parameters));
  ASSIGN_OR_RETURN(shape.bytes,
                   DecidePoolSize(wish.size, shape.parameters, wish.is_block, source.bytes));
  RETURN_IF_ERROR(CheckGrowsTo(source, shape.bytes));
  shape.family = source.family;
  if (source.block_bytes != 0) shape.block_bytes = source.block_bytes;
  return shape;
}

Result<MadeArtefact> PoolVolumes::MakeFrom(const VolumeContent& content, Making& making) {
  PoolVolumeRecord& record = making.record;
  if (contents_ == nullptr) {
    return Error::NotApplied(Code::kUnimplemented, "this node makes no volumes with a content");
  }
  Result<std::unique_ptr<HeldContent>> held = contents_->Hold(content, record.id, making.call);
  if (!held.ok()) {
    // What is being made ready for this volume is known by its id, which stays therefore.
    if (held.error().code() == Code::kUnavailable) return held.error().AsMaybeApplied();
    return held.error();
  }
  making.content = *std::move(held);
  ASSIGN_OR_RETURN(const PoolCutRecord cut, FindCut(making.content->cut_id()));
  if (!IsWhole(cut)) {
    return Error::MaybeApplied(Code::kUnavailable, "snapshot " + cut.id + " is not ready yet");
  }
  const bool is_fit = cut.pool == record.pool && cut.backend == record.backend &&
                      cut.is_block == record.is_block && cut.size_bytes <= record.capacity_bytes;
  if (!is_fit) {
    return BadContent("volume " + record.id + " cannot be made of snapshot " + cut.id +
                      ": it is of another pool, another mode, or larger");
  }
  // The row of a listed device does not say what sectors it has, and its cut does.
  if (cut.block_bytes != 0) record.block_bytes = cut.block_bytes;
  // Of what an earlier call has left nobody knows of which cut it is.
  if (making.is_repeat) RETURN_IF_ERROR(making.backend.Discard(record, making.call));
  ASSIGN_OR_RETURN(MadeArtefact made,
                   making.backend.Materialize(record, making.parameters, cut, making.call));
  record.family = made.shares_blocks ? cut.family : record.id;
  record.filesystem = FilesystemOfCopy(cut);
  return made;
}

// There is no way to what is on a logical volume but its device.
Status PoolVolumes::NameCopy(Held& held, const Pool& pool) {
  const PoolId id = ParsePoolId(held.record.id).value();
  if (held.record.backend != PoolBackendKind::kLvm) {
    return GiveOwnIdentity(held.record, pool.opened()->layout.Image(id), held.call);
  }
  const auto before = [this, &held](const SafePath& device) {
    return GiveOwnIdentity(held.record, device, held.call);
  };
  RETURN_IF_ERROR(
      held.backend->Open(held.record, PoolTuning(), /*read_only=*/false, before, held.call));
  return held.backend->Close(id, held.call);
}

Status PoolVolumes::GiveOwnIdentity(PoolVolumeRecord& record, const SafePath& file,
                                    const CallOptions& call) {
  const PoolFilesystem before = record.filesystem;
  // A device is no file that could be told from others by that: its backend has found it.
  const bool is_device = record.backend == PoolBackendKind::kLvm;
  RETURN_IF_ERROR(
      parts_.kernel
          .Call(ChangeFilesystemUuid{.path = file,
                                     .expected = is_device ? StorageObject() : record.object,
                                     .fs_type = before.type,
                                     .old_uuid = before.uuid,
                                     .new_uuid = before.new_uuid},
                call)
          .With("give the copy " + record.id + " a UUID of its own"));
  record.filesystem = {before.type, before.new_uuid, ""};
  const Status written = Write(record);
  return written.ok() ? written : Status(written.error().AsMaybeApplied());
}

}  // namespace volumed
