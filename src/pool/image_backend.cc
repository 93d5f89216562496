#include "pool/image_backend.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/byte_text.h"
#include "base/strings.h"
#include "mounter/host_directory.h"
#include "pool/artefact_directory.h"
#include "pool/bound_devices.h"

namespace volumed {
namespace {

// In one round trip to a worker.
constexpr size_t kMeasuredAtOnce = 256;

std::vector<std::string> DevicesOf(const LoopList& list) {
  std::vector<std::string> devices;
  for (const LoopEntry& loop : list.loops) {
    if (!loop.deleted) devices.push_back(loop.path);
  }
  return devices;
}

}  // namespace

MadeArtefact ArtefactOf(const FileExtent& file) {
  return {.object = file.object,
          .size_bytes = file.size_bytes,
          .allocated_bytes = file.allocated_bytes};
}

bool Allocates(const PoolParameters& parameters) {
  return parameters.allocation == PoolAllocation::kThick;
}

Status ImageBackend::MakeDirectoryOf(const PoolId& id, const std::string& description, Begun& begun,
                                     const CallOptions& call) {
  ASSIGN_OR_RETURN(const bool made, MakeArtefactDirectory(kernel_, layout_, id, call));
  if (made) begun.made.push_back(id);
  begun.is_all_new = begun.is_all_new && made;
  return DescribeArtefact(kernel_, layout_, id, description, DescriptionSync::kNever, call);
}

// A pool that is full must be free to say so for certain: what was made goes again.
Error ImageBackend::TakenBack(const Begun& begun, const Error& error, const CallOptions& call) {
  if (error.maybe_applied()) return error;
  for (const PoolId& id : begun.made) {
    if (!RemoveFiles(id, call).ok()) return error.AsMaybeApplied();
  }
  return begun.is_all_new ? error : error.AsMaybeApplied();
}

Result<MadeArtefact> ImageBackend::Make(const PoolVolumeRecord& volume,
                                        const PoolParameters& parameters, const CallOptions& call) {
  const PoolId id = IdOf(volume);
  Begun begun;
  RETURN_IF_ERROR(MakeDirectoryOf(id, DescriptionOf(volume, pool_uuid_), begun, call));
  const Result<FileExtent> file = kernel_.Call(SetFileSize{.path = layout_.Image(id),
                                                           .make = true,
                                                           .bytes = volume.capacity_bytes,
                                                           .allocate = Allocates(parameters),
                                                           .mode = kPoolImageMode},
                                               call);
  if (file.ok()) return ArtefactOf(*file);
  return TakenBack(begun, file.error(), call);
}

Result<MadeArtefact> ImageBackend::Import(const PoolVolumeRecord& volume, const PoolParameters&,
                                          const ImportedFile& source, const CallOptions& call) {
  const PoolId id = IdOf(volume);
  Begun begun;
  RETURN_IF_ERROR(MakeDirectoryOf(id, DescriptionOf(volume, pool_uuid_), begun, call));
  const Result<FileExtent> file = kernel_.Call(
      CloneFile{.from = source.path, .expected = source.object, .to = layout_.Image(id)}, call);
  if (!file.ok()) return TakenBack(begun, file.error(), call);
  if (file->size_bytes == volume.capacity_bytes) {
    MadeArtefact made = ArtefactOf(*file);
    made.shares_blocks = true;
    return made;
  }
  const Error grown =
      Error::NotApplied(Code::kFailedPrecondition,
                        source.path.Display() + " has " + BytesForPeople(file->size_bytes) +
                            " by now, and had " + BytesForPeople(volume.capacity_bytes));
  return TakenBack(begun, grown, call);
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
      layout_.Image(id).Display() + " is another file than the one on record: " + difference +
          "; it is left as it is: bring that one back, or move " +
          layout_.ArtefactDir(id).Display() + " away, and ask for the deletion again");
}

// One that is missing is told by whoever needs it.
Status ImageBackend::CheckFileHasItsEnd(const PoolVolumeRecord& volume, const CallOptions& call) {
  const PoolId id = IdOf(volume);
  ASSIGN_OR_RETURN(const FileInfo info, kernel_.Call(Stat{layout_.Image(id)}, call));
  if (info.type != FileType::kRegular || LostEndOf(volume, info.size_bytes).empty()) {
    return OkStatus();
  }
  RETURN_IF_ERROR(CheckObject(id, volume.object, call));
  return CheckHasItsEnd(volume, "file " + layout_.Image(id).Display(), info.size_bytes);
}

Status ImageBackend::RemoveFiles(const PoolId& id, const CallOptions& call) {
  return RemoveArtefactDirectory(kernel_, layout_, id, {kPoolImageFile}, call);
}

Status ImageBackend::DiscardFiles(const PoolId& id, const StorageObject& recorded,
                                  const CallOptions& call) {
  RETURN_IF_ERROR(CheckObject(id, recorded, call));
  RETURN_IF_ERROR(Close(id, call));
  return RemoveFiles(id, call);
}

Status ImageBackend::PrepareDiscard(const PoolId& id, const StorageObject& recorded,
                                    const CallOptions& call) {
  RETURN_IF_ERROR(CheckObject(id, recorded, call));
  RETURN_IF_ERROR(CheckArtefactNotMounted(kernel_, layout_, id, call));
  ASSIGN_OR_RETURN(const std::vector<std::string> devices, ListDevices(id, call));
  if (devices.empty()) return OkStatus();
  RETURN_IF_ERROR(CheckNotShown(kernel_, devices, call));
  Status closed = Close(id, call);
  if (closed.ok()) return closed;
  // The volume is as it was, and its device goes once it is closed.
  return Error::NotApplied(closed.error().code(), closed.error().message());
}

Status ImageBackend::Discard(const PoolVolumeRecord& volume, const CallOptions& call) {
  return DiscardFiles(IdOf(volume), volume.object, call);
}

Status ImageBackend::DiscardCut(const PoolCutRecord& cut, const CallOptions& call) {
  return DiscardFiles(IdOf(cut), cut.object, call);
}

Result<MadeArtefact> ImageBackend::Grow(const PoolVolumeRecord& volume, int64_t bytes,
                                        const PoolParameters& parameters, const CallOptions& call) {
  const PoolId id = IdOf(volume);
  RETURN_IF_ERROR(CheckFileHasItsEnd(volume, call));
  ASSIGN_OR_RETURN(const FileExtent file,
                   kernel_.Call(SetFileSize{.path = layout_.Image(id),
                                            .expected = volume.object,
                                            .bytes = bytes,
                                            .allocate = Allocates(parameters),
                                            .mode = kPoolImageMode},
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
  if (!tuning.direct_io && !tuning.read_ahead_kib) return OkStatus();
  ASSIGN_OR_RETURN(const LoopList list, kernel_.Call(ListLoops{layout_.Image(IdOf(volume))}, call));
  for (const LoopEntry& loop : list.loops) {
    if (loop.deleted) continue;
    ConfigureLoop change;
    change.read_ahead_kib = tuning.read_ahead_kib;
    if (tuning.direct_io && loop.direct_io != *tuning.direct_io) {
      change.direct_io = tuning.direct_io;
    }
    if (!change.direct_io && !change.read_ahead_kib) continue;
    // The effect leaves what is so already, and reads it back.
    RETURN_IF_ERROR(
        Configure(loop, std::move(change), call).With("tune the device of volume " + volume.id));
  }
  return OkStatus();
}

Result<bool> ImageBackend::Throttle(const PoolVolumeRecord& volume, const IoLimits& limits,
                                    const std::vector<std::string>& cgroups,
                                    const CallOptions& call) {
  ASSIGN_OR_RETURN(const LoopList list, kernel_.Call(ListLoops{layout_.Image(IdOf(volume))}, call));
  bool is_open = false;
  bool is_each_alone = false;
  for (const LoopEntry& loop : list.loops) {
    if (loop.deleted) continue;
    ASSIGN_OR_RETURN(const IdentifiedDevice device,
                     kernel_.Call(IdentifyDevice{.path = HostPath(loop.path)}, call));
    const SetIoLimits request{.device = loop.path,
                              .expected = device.facts.identity,
                              .cgroups = cgroups,
                              .limits = limits};
    ASSIGN_OR_RETURN(const CgroupIoLimits set, kernel_.Call(request, call));
    is_each_alone = set.is_each_alone;
    is_open = true;
  }
  if (is_open) return is_each_alone;
  return Error::NotApplied(Code::kFailedPrecondition,
                           "volume " + volume.id + " has no device to be throttled");
}

Result<OpenedVolume> ImageBackend::Open(const PoolVolumeRecord& volume, const PoolTuning& tuning,
                                        bool read_only, const BeforeOpen& before,
                                        const CallOptions& call) {
  const PoolId id = IdOf(volume);
  RETURN_IF_ERROR(CheckFileHasItsEnd(volume, call));
  if (before) {
    RETURN_IF_ERROR(CheckObject(id, volume.object, call));
    RETURN_IF_ERROR(before(layout_.Image(id)));
  }
  ASSIGN_OR_RETURN(const AttachedLoop loop,
                   kernel_.Call(AttachLoop{.path = layout_.Image(id),
                                           .expected = volume.object,
                                           .read_only = read_only,
                                           .direct_io = tuning.direct_io.value_or(true),
                                           .block_size = static_cast<uint32_t>(volume.block_bytes)},
                                call));
  OpenedVolume opened{loop.device.path, loop.device.facts.identity, loop.direct_io};
  const bool is_direct = tuning.direct_io.value_or(loop.direct_io);
  if (is_direct == loop.direct_io && !tuning.read_ahead_kib) return opened;
  if (const Status tuned = Tune(volume, tuning, call); !tuned.ok()) {
    if (!loop.changed || Close(id, call).ok()) return tuned.error();
    return tuned.error().AsMaybeApplied();
  }
  opened.direct_io = is_direct;
  return opened;
}

Status ImageBackend::Close(const PoolId& volume, const CallOptions& call) {
  const SafePath image = layout_.Image(volume);
  ASSIGN_OR_RETURN(const LoopList there, kernel_.Call(ListLoops{image}, call));
  if (there.loops.empty()) return OkStatus();
  if (const Status free = CheckNotBound(kernel_, DevicesOf(there), call); !free.ok()) {
    return free.error().With("volume " + volume.ToString());
  }
  RETURN_IF_ERROR(kernel_.Call(DetachLoops{image}, call));
  const Result<LoopList> left = kernel_.Call(ListLoops{image}, call);
  if (!left.ok()) return left.error().AsMaybeApplied();
  const std::vector<std::string> open = DevicesOf(*left);
  if (open.empty()) return OkStatus();
  return Error::MaybeApplied(
      Code::kFailedPrecondition,
      "somebody still has " + open.front() + " open, the device of " + volume.ToString());
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

Result<std::vector<std::string>> ImageBackend::ListDevices(const PoolId& volume,
                                                           const CallOptions& call) {
  ASSIGN_OR_RETURN(const LoopList list, kernel_.Call(ListLoops{layout_.Image(volume)}, call));
  return DevicesOf(list);
}

Status ImageBackend::MeasureSome(const std::vector<PoolId>& volumes, OfDamaged damaged,
                                 const CallOptions& call,
                                 std::map<PoolId, MadeArtefact>& measured) {
  Batch batch{.path = layout_.Directory(), .items = {}};
  for (const PoolId& id : volumes) batch.items.push_back({.request = Stat{layout_.Image(id)}});
  ASSIGN_OR_RETURN(const BatchAnswer answer, kernel_.Call(batch, call));
  for (size_t at = 0; at < volumes.size() && at < answer.items.size(); ++at) {
    const Result<AnyAnswer>& result = answer.items[at].result;
    if (!result.ok() && damaged == OfDamaged::kError) {
      return result.error().With(volumes[at].ToString());
    }
    const auto* info = result.ok() ? std::get_if<FileInfo>(&result.value()) : nullptr;
    if (info == nullptr || info->type != FileType::kRegular) continue;
    MadeArtefact& made = measured[volumes[at]];
    made.object.inode = info->inode;
    made.size_bytes = info->size_bytes;
    made.allocated_bytes = info->allocated_bytes;
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

std::unique_ptr<PoolBackend> MakeImageBackend(Kernel& kernel, PoolLayout layout,
                                              std::string pool_uuid) {
  return std::make_unique<ImageBackend>(kernel, std::move(layout), std::move(pool_uuid));
}

}  // namespace volumed
