#include "pool/subvolume_backend.h"

namespace volumed {
namespace {

// That the filesystem is none of the kind is the class's, or the pool's, and not this program's.
Error AsRefusal(const Error& error) {
  if (error.code() != Code::kUnimplemented) return error;
  return Error::FromParts(Code::kFailedPrecondition, error.outcome(), error.sys_errno(),
                          "the pool has no volumes of backend subvolume: " + error.message());
}

}  // namespace

Status SubvolumeBackend::MakeData(const SafePath& data, const CallOptions& call) {
  const Result<FileExtent> made = kernel_.Call(MakeSubvolume{.path = data}, call);
  return made.ok() ? OkStatus() : Status(AsRefusal(made.error()));
}

Status SubvolumeBackend::RemoveData(const SafePath& data, const StorageObject& recorded,
                                    const CallOptions& call) {
  RETURN_IF_ERROR(kernel_.Call(RemoveSubvolume{.path = data, .expected = recorded}, call));
  return OkStatus();
}

Result<MadeArtefact> SubvolumeBackend::Import(const PoolVolumeRecord& volume,
                                              const PoolParameters& parameters,
                                              const ImportedFile& source, const CallOptions& call) {
  const auto fill = [&]() -> Result<bool> {
    RETURN_IF_ERROR(Snapshot(volume, parameters, source, call));
    return true;
  };
  return MakeAround(volume, fill, call);
}

// What is there already is of an earlier moment than this call's, so that a repeated call has
// discarded it before. A snapshot has the limit of what it was made of.
Status SubvolumeBackend::Snapshot(const PoolVolumeRecord& volume, const PoolParameters& parameters,
                                  const ImportedFile& source, const CallOptions& call) {
  const MakeSubvolume snapshot{
      .path = layout_.Data(TreeIdOf(volume.id)), .of = source.path, .expected = source.object};
  const Result<FileExtent> made = kernel_.Call(snapshot, call);
  if (!made.ok()) return AsRefusal(made.error());
  return Bound(volume, volume.capacity_bytes, parameters, call);
}

Result<bool> SubvolumeBackend::FillData(const PoolVolumeRecord& volume,
                                        const PoolParameters& parameters, const PoolCutRecord& cut,
                                        const CallOptions& call) {
  RETURN_IF_ERROR(Snapshot(volume, parameters, {layout_.Data(TreeIdOf(cut.id)), cut.object}, call));
  return true;
}

Result<MadeCut> SubvolumeBackend::CutOne(const CutWish& wish, const CallOptions& call) {
  const PoolId id = TreeIdOf(wish.cut.id);
  const MakeSubvolume snapshot{.path = layout_.Data(id),
                               .of = layout_.Data(TreeIdOf(wish.source.id)),
                               .expected = wish.source.object,
                               .read_only = true};
  const Result<FileExtent> made = kernel_.Call(snapshot, call);
  if (!made.ok()) return AsRefusal(made.error());
  // One that was there is of an earlier moment than this call's.
  if (!made->changed) {
    return Error::MaybeApplied(Code::kAborted, "there is a cut of an earlier call already");
  }
  MadeCut cut;
  ASSIGN_OR_RETURN(cut.artefact, Look(id, wish.source.capacity_bytes, call));
  cut.artefact.shares_blocks = true;
  return cut;
}

Result<MadeArtefact> SubvolumeBackend::CopyCut(const PoolCutRecord& cut, const PoolVolumeRecord&,
                                               int64_t, const CallOptions&) {
  return Error::NotApplied(Code::kInternal, "cut " + cut.id + " of a subvolume is never a copy");
}

std::unique_ptr<PoolBackend> MakeSubvolumeBackend(Kernel& kernel, PoolLayout layout,
                                                  std::string pool_uuid) {
  return std::make_unique<SubvolumeBackend>(kernel, std::move(layout), std::move(pool_uuid));
}

}  // namespace volumed
