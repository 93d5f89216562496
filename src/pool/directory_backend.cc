#include "pool/directory_backend.h"

#include <cerrno>
#include <string>

#include "base/byte_text.h"
#include "mounter/host_directory.h"
#include "pool/artefact_directory.h"

namespace volumed {
namespace {

constexpr uint32_t kDataMode = 0755;

}  // namespace

Status DirectoryBackend::MakeData(const SafePath& data, const CallOptions& call) {
  MakeDirectory make{.path = data, .mode = kDataMode};
  make.exact_mode = true;
  RETURN_IF_ERROR(kernel_.Call(make, call));
  return OkStatus();
}

Status DirectoryBackend::RemoveData(const SafePath& data, const StorageObject& recorded,
                                    const CallOptions& call) {
  RETURN_IF_ERROR(kernel_.Call(RemoveTree{.path = data, .expected = recorded}, call));
  return OkStatus();
}

// Into a directory that is there and empty. All is on the disk when this answers, however long that
// takes.
Result<TreeCopied> DirectoryBackend::Copy(const CopyTree& copy, const std::string& advice,
                                          const CallOptions& call) {
  CallOptions to_the_end = call;
  to_the_end.must_finish = true;
  Result<TreeCopied> copied = kernel_.Call(copy, to_the_end);
  if (copied.ok() || copied.error().sys_errno() != EDQUOT) return copied;
  const Error& error = copied.error();
  return Error::FromParts(error.code(), error.outcome(), EDQUOT,
                          advice + " (" + error.message() + ")");
}

Result<MadeCut> DirectoryBackend::CutOne(const CutWish& wish, const CallOptions& call) {
  if (wish.mounted && wish.consistency != PoolConsistency::kBestEffort) {
    return Error::NotApplied(
        Code::kFailedPrecondition,
        "volume " + wish.source.id +
            " cannot be cut as it is used now: it is a directory that is mounted for writing, and "
            "its content is to be copied, which is of no one moment then: its class does not say "
            "\"consistency\": \"best-effort\"");
  }
  MadeCut cut{.artefact = {}, .was_frozen = false, .is_copy = true};
  ASSIGN_OR_RETURN(cut.artefact, Look(TreeIdOf(wish.source.id), wish.source.capacity_bytes, call));
  cut.artefact.object = {};
  cut.artefact.allocated_bytes = wish.cut.allocated_bytes;
  return cut;
}

Result<MadeArtefact> DirectoryBackend::CopyCut(const PoolCutRecord& cut,
                                               const PoolVolumeRecord& source,
                                               int64_t bytes_per_second, const CallOptions& call) {
  const PoolId id = TreeIdOf(cut.id);
  const PoolId from = TreeIdOf(source.id);
  RETURN_IF_ERROR(CheckObject(from, source.object, call));
  RETURN_IF_ERROR(kernel_.Call(RemoveTree{.path = layout_.Data(id)}, call));
  RETURN_IF_ERROR(MakeData(layout_.Data(id), call));
  // An earlier program had promised nothing to a copy of what nobody counts.
  const int64_t most = cut.allocated_bytes > 0 ? cut.allocated_bytes : cut.size_bytes;
  const std::string advice =
      "snapshot " + cut.id + " was promised " + BytesForPeople(most) +
      ", and the files of volume " + source.id +
      " are more, by what is written to it meanwhile or by its size: freeze or stop who writes to "
      "it, have less in it, or make it larger";
  ASSIGN_OR_RETURN(const TreeCopied copied, Copy({.to = layout_.Data(id),
                                                  .from = layout_.Data(from),
                                                  .expected = source.object,
                                                  .bytes_per_second = bytes_per_second,
                                                  .most_bytes = most},
                                                 advice, call));
  ASSIGN_OR_RETURN(MadeArtefact made, Look(id, cut.size_bytes, call));
  made.allocated_bytes = copied.allocated_bytes;
  made.shares_blocks = copied.shares_blocks;
  return made;
}

// The limit comes first: what is made in the directory is of its project, and what was there is
// not.
Result<bool> DirectoryBackend::FillData(const PoolVolumeRecord& volume,
                                        const PoolParameters& parameters, const PoolCutRecord& cut,
                                        const CallOptions& call) {
  const PoolId id = TreeIdOf(volume.id);
  const PoolId from = TreeIdOf(cut.id);
  RETURN_IF_ERROR(CheckObject(from, cut.object, call));
  RETURN_IF_ERROR(MakeData(layout_.Data(id), call));
  RETURN_IF_ERROR(Bound(volume, volume.capacity_bytes, parameters, call));
  const std::string advice = "volume " + volume.id + " is to have at most " +
                             BytesForPeople(volume.capacity_bytes) + ", and snapshot " + cut.id +
                             " has more: ask for a larger one";
  const Result<TreeCopied> copied = Copy({.to = layout_.Data(id),
                                          .from = layout_.Data(from),
                                          .expected = cut.object,
                                          .most_bytes = volume.capacity_bytes},
                                         advice, call);
  if (copied.ok()) return copied->shares_blocks;
  // The copy has ended, and all that it made is in the volume's own directory, which goes.
  const Error& error = copied.error();
  if (error.code() != Code::kResourceExhausted) return error;
  return Error::NotApplied(error.code(), error.message());
}

// ---- directories that were elsewhere ------------------------------------------------------------

// Nothing that is in the volume's directory is ever removed here but what describes it.
Result<MadeArtefact> DirectoryBackend::Import(const PoolVolumeRecord& volume,
                                              const PoolParameters& parameters,
                                              const ImportedFile& source, const CallOptions& call) {
  const PoolId id = TreeIdOf(volume.id);
  ASSIGN_OR_RETURN(const bool is_new, MakeArtefactDirectory(kernel_, layout_, id, call));
  const MoveDirectory move{.to = layout_.Data(id), .from = source.path, .expected = source.object};
  Status moved = DescribeArtefact(kernel_, layout_, id, DescriptionOf(volume, pool_uuid_),
                                  DescriptionSync::kNow, call);
  if (moved.ok()) {
    const Result<Changed> made = kernel_.Call(move, call);
    if (!made.ok()) moved = made.error();
  }
  if (!moved.ok()) {
    const bool is_gone = is_new && !moved.error().maybe_applied() &&
                         RemoveArtefactDirectory(kernel_, layout_, id, {}, call).ok();
    return is_gone ? moved.error() : moved.error().AsMaybeApplied();
  }
  const Result<bool> is_bounded = IsOfForeignProject(id, call);
  if (!is_bounded.ok()) return is_bounded.error().AsMaybeApplied();
  if (!*is_bounded) {
    const Status bounded = Bound(volume, volume.capacity_bytes, parameters, call);
    if (!bounded.ok()) return bounded.error().AsMaybeApplied();
  }
  return Look(id, volume.capacity_bytes, call);
}

Status DirectoryBackend::Discard(const PoolVolumeRecord& volume, const CallOptions& call) {
  if (volume.source.empty()) return TreeBackend::Discard(volume, call);
  const PoolId id = TreeIdOf(volume.id);
  const SafePath data = layout_.Data(id);
  ASSIGN_OR_RETURN(const StorageIdentity there, kernel_.Call(IdentifyStorage{.path = data}, call));
  if (there.type != FileType::kMissing) {
    const MoveDirectory back{
        .to = SplitLast(volume.source), .from = data, .expected = volume.object};
    const Result<Changed> moved = kernel_.Call(back, call);
    if (!moved.ok()) {
      return Error::FromParts(Code::kFailedPrecondition, moved.error().outcome(),
                              moved.error().sys_errno(),
                              "volume " + volume.id + " was to be made of " + volume.source +
                                  ", and cannot be given back there: " + moved.error().message());
    }
  }
  return RemoveArtefactDirectory(kernel_, layout_, id, {}, call);
}

std::unique_ptr<PoolBackend> MakeDirectoryBackend(Kernel& kernel, PoolLayout layout,
                                                  std::string pool_uuid) {
  return std::make_unique<DirectoryBackend>(kernel, std::move(layout), std::move(pool_uuid));
}

}  // namespace volumed
