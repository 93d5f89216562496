#include "pool/directory_backend.h"

#include "base/printable_text.h"

namespace volumed {
namespace {

constexpr uint32_t kDataMode = 0755;
constexpr char kCp[] = "/usr/bin/cp";
constexpr char kSync[] = "/usr/bin/sync";

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

// What it printed is named in the error; none of it is a secret.
Status DirectoryBackend::Run(const std::vector<std::string>& command, const CallOptions& call) {
  CallOptions to_the_end = call;
  to_the_end.must_finish = true;
  ASSIGN_OR_RETURN(const ProgramEnd end, kernel_.Call(RunProgram{command}, to_the_end));
  if (end.exit_status == 0) return OkStatus();
  return Error::MaybeApplied(Code::kInternal, command[0] + " ended with status " +
                                                  std::to_string(end.exit_status) + ": " +
                                                  PrintableText(end.output));
}

// Into a directory that is there and empty. All is on the disk when this answers.
Status DirectoryBackend::CopyTree(const SafePath& from, const SafePath& to,
                                  const CallOptions& call) {
  RETURN_IF_ERROR(Run(
      {kCp, "-a", "--reflink=auto", "--one-file-system", "-T", "--", from.Display(), to.Display()},
      call));
  return Run({kSync, "-f", to.Display()}, call);
}

Result<MadeCut> DirectoryBackend::CutOne(const CutWish& wish, const CallOptions& call) {
  if (wish.mounted) {
    return Error::NotApplied(
        Code::kFailedPrecondition,
        "volume " + wish.source.id +
            " cannot be cut as it is used now: it is a directory that is mounted for writing, and "
            "its content is to be copied");
  }
  MadeCut cut{.artefact = {}, .was_frozen = false, .is_copy = true};
  ASSIGN_OR_RETURN(cut.artefact, Look(TreeIdOf(wish.source.id), wish.source.capacity_bytes, call));
  cut.artefact.object = {};
  return cut;
}

Result<MadeArtefact> DirectoryBackend::CopyCut(const PoolCutRecord& cut,
                                               const PoolVolumeRecord& source, int64_t,
                                               const CallOptions& call) {
  const PoolId id = TreeIdOf(cut.id);
  const PoolId from = TreeIdOf(source.id);
  RETURN_IF_ERROR(CheckObject(from, source.object, call));
  RETURN_IF_ERROR(kernel_.Call(RemoveTree{.path = layout_.Data(id)}, call));
  RETURN_IF_ERROR(MakeData(layout_.Data(id), call));
  RETURN_IF_ERROR(CopyTree(layout_.Data(from), layout_.Data(id), call));
  return Look(id, cut.size_bytes, call);
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
  RETURN_IF_ERROR(CopyTree(layout_.Data(from), layout_.Data(id), call));
  return false;
}

Status DirectoryBackend::ImportData(const PoolVolumeRecord&, const PoolParameters&,
                                    const ImportedFile& source, const CallOptions&) {
  return DirectoryNotImported(source.path.Display());
}

Error DirectoryNotImported(const std::string& directory) {
  return Error::NotApplied(
      Code::kUnimplemented,
      directory +
          " is a plain directory, which becomes a volume of a pool only by a move within "
          "its filesystem, and there is no effect on the node for that (rename(2))");
}

std::unique_ptr<PoolBackend> MakeDirectoryBackend(Kernel& kernel, PoolLayout layout,
                                                  std::string pool_uuid) {
  return std::make_unique<DirectoryBackend>(kernel, std::move(layout), std::move(pool_uuid));
}

}  // namespace volumed
