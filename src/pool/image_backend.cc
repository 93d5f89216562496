// A volume as a file with the content of a disk, at <pool>/volumes/<id>/image.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "mounter/host_directory.h"
#include "pool/pool_backend.h"

namespace volumed {
namespace {

// Root's alone: a pod sees a volume by its device, and never by its file.
constexpr uint32_t kDirectoryMode = 0700;
constexpr uint32_t kFileMode = 0600;
// In one round trip to a worker.
constexpr size_t kMeasuredAtOnce = 256;

class ImageBackend final : public PoolBackend {
 public:
  ImageBackend(Kernel& kernel, PoolLayout layout, std::string pool_uuid)
      : kernel_(kernel), layout_(std::move(layout)), pool_uuid_(std::move(pool_uuid)) {}

  PoolBackendKind kind() const override { return PoolBackendKind::kImage; }
  Result<MadeArtefact> Make(const PoolVolumeRecord& volume, const PoolParameters& parameters,
                            const CallOptions& call) override;
  Status Discard(const PoolVolumeRecord& volume, const CallOptions& call) override;
  Result<MadeArtefact> Grow(const PoolVolumeRecord& volume, int64_t bytes,
                            const PoolParameters& parameters, const CallOptions& call) override;
  Result<OpenedVolume> Open(const PoolVolumeRecord& volume, const PoolTuning& tuning,
                            bool read_only, const CallOptions& call) override;
  Status Tune(const PoolVolumeRecord& volume, const PoolTuning& tuning,
              const CallOptions& call) override;
  Status Close(const PoolId& volume, const CallOptions& call) override;
  Result<std::vector<PoolId>> ListOpen(const CallOptions& call) override;
  Result<std::map<PoolId, MadeArtefact>> Measure(const std::vector<PoolId>& volumes,
                                                 OfDamaged damaged,
                                                 const CallOptions& call) override;

 private:
  Status CheckObject(const PoolId& id, const StorageObject& recorded, const CallOptions& call);
  Status RemoveFiles(const PoolId& id, const CallOptions& call);
  Status RefreshLoops(const PoolId& id, int64_t bytes, const CallOptions& call);
  Status Configure(const LoopEntry& loop, ConfigureLoop change, const CallOptions& call);
  Status MeasureSome(const std::vector<PoolId>& volumes, OfDamaged damaged, const CallOptions& call,
                     std::map<PoolId, MadeArtefact>& measured);

  Kernel& kernel_;
  const PoolLayout layout_;
  const std::string pool_uuid_;
};

// A record was decoded, or made, with an id.
PoolId IdOf(const PoolVolumeRecord& volume) { return ParsePoolId(volume.id).value(); }

MadeArtefact ArtefactOf(const FileExtent& file) {
  return {file.object, file.size_bytes, file.allocated_bytes};
}

bool Allocates(const PoolParameters& parameters) {
  return parameters.allocation == PoolAllocation::kThick;
}

Result<MadeArtefact> ImageBackend::Make(const PoolVolumeRecord& volume,
                                        const PoolParameters& parameters, const CallOptions& call) {
  const PoolId id = IdOf(volume);
  RETURN_IF_ERROR(
      kernel_.Call(MakeDirectory{.path = layout_.ArtefactDir(id), .mode = kDirectoryMode}, call));
  const WriteFile description{.path = layout_.Description(id),
                              .content = Secret<std::string>(DescriptionOf(volume, pool_uuid_)),
                              .mode = kFileMode};
  if (const Result<Changed> written = kernel_.Call(description, call); !written.ok()) {
    return written.error().AsMaybeApplied();
  }
  const Result<FileExtent> file = kernel_.Call(SetFileSize{.path = layout_.Image(id),
                                                           .make = true,
                                                           .bytes = volume.capacity_bytes,
                                                           .allocate = Allocates(parameters),
                                                           .mode = kFileMode},
                                               call);
  if (file.ok()) return ArtefactOf(*file);
  // A pool that is full must be free to say so for certain: what was made goes again.
  if (!file.error().maybe_applied() && RemoveFiles(id, call).ok()) return file.error();
  return file.error().AsMaybeApplied();
}

Status ImageBackend::CheckObject(const PoolId& id, const StorageObject& recorded,
                                 const CallOptions& call) {
  if (recorded.inode == 0) return OkStatus();
  ASSIGN_OR_RETURN(const StorageIdentity there,
                   kernel_.Call(IdentifyStorage{.path = layout_.Image(id)}, call));
  if (there.type == FileType::kMissing) return OkStatus();
  const std::string difference = StorageDifference(recorded, there.object);
  if (difference.empty()) return OkStatus();
  return Error::NotApplied(
      Code::kFailedPrecondition,
      layout_.Image(id).Display() + " is another file than the volume's: " + difference +
          "; it is left as it is: bring the volume's own file back, or move " +
          layout_.ArtefactDir(id).Display() + " away, and ask for the deletion again");
}

// The image first: as long as it is there, its description is, too. What somebody else has put
// beside them stays, and is an error.
Status ImageBackend::RemoveFiles(const PoolId& id, const CallOptions& call) {
  using Kind = SkeletonPart::Kind;
  const RemoveSkeleton skeleton{
      .path = layout_.ArtefactDir(id),
      .parts = {{.name = kPoolImageFile, .kind = Kind::kFile},
                {.name = kPoolDescriptionFile, .kind = Kind::kFile},
                {.name = UnfinishedName(kPoolDescriptionFile), .kind = Kind::kFile}}};
  RETURN_IF_ERROR(kernel_.Call(skeleton, call));
  return OkStatus();
}

Status ImageBackend::Discard(const PoolVolumeRecord& volume, const CallOptions& call) {
  const PoolId id = IdOf(volume);
  RETURN_IF_ERROR(CheckObject(id, volume.object, call));
  RETURN_IF_ERROR(Close(id, call));
  return RemoveFiles(id, call);
}

Result<MadeArtefact> ImageBackend::Grow(const PoolVolumeRecord& volume, int64_t bytes,
                                        const PoolParameters& parameters, const CallOptions& call) {
  const PoolId id = IdOf(volume);
  ASSIGN_OR_RETURN(const FileExtent file,
                   kernel_.Call(SetFileSize{.path = layout_.Image(id),
                                            .expected = volume.object,
                                            .bytes = bytes,
                                            .allocate = Allocates(parameters),
                                            .mode = kFileMode},
                                call));
  if (const Status refreshed = RefreshLoops(id, file.size_bytes, call); !refreshed.ok()) {
    return refreshed.error().AsMaybeApplied();
  }
  return ArtefactOf(file);
}

// A loop device does not see by itself that its file has grown.
Status ImageBackend::RefreshLoops(const PoolId& id, int64_t bytes, const CallOptions& call) {
  ASSIGN_OR_RETURN(const LoopList list, kernel_.Call(ListLoops{layout_.Image(id)}, call));
  for (const LoopEntry& loop : list.loops) {
    if (loop.deleted || loop.size_bytes >= bytes) continue;
    ConfigureLoop refresh;
    refresh.refresh_size = true;
    RETURN_IF_ERROR(Configure(loop, std::move(refresh), call));
  }
  return OkStatus();
}

Status ImageBackend::Configure(const LoopEntry& loop, ConfigureLoop change,
                               const CallOptions& call) {
  ASSIGN_OR_RETURN(const IdentifiedDevice device,
                   kernel_.Call(IdentifyDevice{.path = HostPath(loop.path)}, call));
  change.device = loop.path;
  change.expected = device.facts.identity;
  RETURN_IF_ERROR(kernel_.Call(change, call));
  return OkStatus();
}

Status ImageBackend::Tune(const PoolVolumeRecord& volume, const PoolTuning& tuning,
                          const CallOptions& call) {
  if (!tuning.direct_io) return OkStatus();
  ASSIGN_OR_RETURN(const LoopList list, kernel_.Call(ListLoops{layout_.Image(IdOf(volume))}, call));
  for (const LoopEntry& loop : list.loops) {
    if (loop.deleted || loop.direct_io == *tuning.direct_io) continue;
    ConfigureLoop change;
    change.direct_io = tuning.direct_io;
    // The effect reads it back.
    RETURN_IF_ERROR(Configure(loop, std::move(change), call)
                        .With("switch the direct I/O of volume " + volume.id));
  }
  return OkStatus();
}

Result<OpenedVolume> ImageBackend::Open(const PoolVolumeRecord& volume, const PoolTuning& tuning,
                                        bool read_only, const CallOptions& call) {
  ASSIGN_OR_RETURN(const AttachedLoop loop,
                   kernel_.Call(AttachLoop{.path = layout_.Image(IdOf(volume)),
                                           .expected = volume.object,
                                           .read_only = read_only,
                                           .direct_io = tuning.direct_io.value_or(true),
                                           .block_size = static_cast<uint32_t>(volume.block_bytes)},
                                call));
  OpenedVolume opened{loop.device.path, loop.device.facts.identity, loop.direct_io};
  if (!tuning.direct_io || *tuning.direct_io == loop.direct_io) return opened;
  if (const Status tuned = Tune(volume, tuning, call); !tuned.ok()) {
    if (!loop.changed || Close(IdOf(volume), call).ok()) return tuned.error();
    return tuned.error().AsMaybeApplied();
  }
  opened.direct_io = *tuning.direct_io;
  return opened;
}

Status ImageBackend::Close(const PoolId& volume, const CallOptions& call) {
  const SafePath image = layout_.Image(volume);
  RETURN_IF_ERROR(kernel_.Call(DetachLoops{image}, call));
  const Result<LoopList> left = kernel_.Call(ListLoops{image}, call);
  if (!left.ok()) return left.error().AsMaybeApplied();
  for (const LoopEntry& loop : left->loops) {
    if (loop.deleted) continue;
    return Error::MaybeApplied(
        Code::kFailedPrecondition,
        "somebody still has " + loop.path + " open, the device of " + volume.ToString());
  }
  return OkStatus();
}

Result<std::vector<PoolId>> ImageBackend::ListOpen(const CallOptions& call) {
  const SafePath volumes = layout_.Volumes();
  ASSIGN_OR_RETURN(const LoopList list, kernel_.Call(ListLoops{volumes}, call));
  std::set<PoolId> open;
  for (const LoopEntry& loop : list.loops) {
    const auto below = StripPrefix(loop.file, volumes.Display() + "/");
    if (!below || loop.deleted) continue;
    const std::optional<PoolId> id = ParsePoolId(below->substr(0, below->find('/')));
    if (id && loop.file == layout_.Image(*id).Display()) open.insert(*id);
  }
  return std::vector<PoolId>(open.begin(), open.end());
}

Status ImageBackend::MeasureSome(const std::vector<PoolId>& volumes, OfDamaged damaged,
                                 const CallOptions& call,
                                 std::map<PoolId, MadeArtefact>& measured) {
  Batch batch{.path = layout_.Volumes(), .items = {}};
  for (const PoolId& id : volumes) batch.items.push_back({.request = Stat{layout_.Image(id)}});
  ASSIGN_OR_RETURN(const BatchAnswer answer, kernel_.Call(batch, call));
  for (size_t at = 0; at < volumes.size() && at < answer.items.size(); ++at) {
    const Result<AnyAnswer>& result = answer.items[at].result;
    if (!result.ok() && damaged == OfDamaged::kError) {
      return result.error().With(volumes[at].ToString());
    }
    const auto* info = result.ok() ? std::get_if<FileInfo>(&result.value()) : nullptr;
    if (info == nullptr || info->type != FileType::kRegular) continue;
    measured[volumes[at]] = {
        .object = {}, .size_bytes = info->size_bytes, .allocated_bytes = info->allocated_bytes};
  }
  return OkStatus();
}

Result<std::map<PoolId, MadeArtefact>> ImageBackend::Measure(const std::vector<PoolId>& volumes,
                                                             OfDamaged damaged,
                                                             const CallOptions& call) {
  std::map<PoolId, MadeArtefact> measured;
  for (size_t at = 0; at < volumes.size(); at += kMeasuredAtOnce) {
    const auto begin = volumes.begin() + static_cast<std::ptrdiff_t>(at);
    const size_t count = std::min(kMeasuredAtOnce, volumes.size() - at);
    RETURN_IF_ERROR(
        MeasureSome({begin, begin + static_cast<std::ptrdiff_t>(count)}, damaged, call, measured));
  }
  return measured;
}

}  // namespace

std::unique_ptr<PoolBackend> MakeImageBackend(Kernel& kernel, PoolLayout layout,
                                              std::string pool_uuid) {
  return std::make_unique<ImageBackend>(kernel, std::move(layout), std::move(pool_uuid));
}

}  // namespace volumed
