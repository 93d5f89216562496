#include "pool/artefact_directory.h"

#include <utility>

#include "base/byte_text.h"
#include "mounter/mount_refs.h"

namespace volumed {
namespace {

constexpr uint32_t kArtefactDirectoryMode = 0700;
constexpr uint32_t kArtefactDescriptionMode = 0600;

}  // namespace

Result<bool> MakeArtefactDirectory(Kernel& kernel, const PoolLayout& layout, const PoolId& id,
                                   const CallOptions& call) {
  ASSIGN_OR_RETURN(
      const Changed directory,
      kernel.Call(MakeDirectory{.path = layout.ArtefactDir(id), .mode = kArtefactDirectoryMode},
                  call));
  return directory.changed;
}

Status DescribeArtefact(Kernel& kernel, const PoolLayout& layout, const PoolId& id,
                        const std::string& description, DescriptionSync sync,
                        const CallOptions& call) {
  const WriteFile written{.path = layout.Description(id),
                          .content = Secret<std::string>(description),
                          .mode = kArtefactDescriptionMode,
                          .unsynced = sync == DescriptionSync::kNever};
  if (const Result<Changed> done = kernel.Call(written, call); !done.ok()) {
    return done.error().AsMaybeApplied();
  }
  return OkStatus();
}

Status RemoveArtefactDirectory(Kernel& kernel, const PoolLayout& layout, const PoolId& id,
                               const std::vector<std::string>& files, const CallOptions& call) {
  using Kind = SkeletonPart::Kind;
  const std::string description = PoolDescriptionFile(id.object);
  // Its row goes after this, and may be synced by anybody: files without a row would be those of a
  // volume whose record was lost.
  RemoveSkeleton skeleton{.path = layout.ArtefactDir(id), .parts = {}, .synced = true};
  for (const std::string& file : files) {
    skeleton.parts.push_back({.name = file, .kind = Kind::kFile});
  }
  skeleton.parts.push_back({.name = description, .kind = Kind::kFile});
  skeleton.parts.push_back({.name = UnfinishedName(description), .kind = Kind::kFile});
  RETURN_IF_ERROR(kernel.Call(skeleton, call));
  return OkStatus();
}

Status CheckArtefactNotMounted(Kernel& kernel, const PoolLayout& layout, const PoolId& id,
                               const CallOptions& call) {
  const std::string directory = layout.ArtefactDir(id).Display();
  ASSIGN_OR_RETURN(const std::vector<std::string> places,
                   FindMountsOfTree(kernel, directory, call));
  if (places.empty()) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           directory + ", or something in it, is mounted at " + places.front());
}

std::string LostEndOf(const PoolVolumeRecord& volume, int64_t size_bytes) {
  // A row gets its larger size once the file has grown to it.
  const int64_t wanted = volume.capacity_bytes;
  if (size_bytes >= wanted) return "";
  return "has " + BytesForPeople(size_bytes) + ", and is to have " + BytesForPeople(wanted);
}

Status CheckHasItsEnd(const PoolVolumeRecord& volume, const std::string& its, int64_t size_bytes) {
  const std::string lost = LostEndOf(volume, size_bytes);
  if (lost.empty()) return OkStatus();
  return Error::NotApplied(
      Code::kFailedPrecondition,
      "volume " + volume.id + " has lost its end: its " + its + " " + lost +
          "; it is left as it is: bring its own back, or delete the volume and restore a snapshot");
}

}  // namespace volumed
