// The cuts of volumes that are images, and what is made of them.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>

#include "pool/image_backend.h"

#include "base/byte_text.h"
#include "pool/static_backend.h"

namespace volumed {
namespace {

// The filesystem does not do it, whatever the file is.
bool CannotShare(const Error& error) {
  return error.code() == Code::kUnimplemented || error.sys_errno() == EXDEV;
}

Error CannotBeCut(const CutWish& wish, const std::string& why) {
  return Error::NotApplied(Code::kFailedPrecondition,
                           "volume " + wish.source.id + " cannot be cut as it is used now: " + why);
}

// A copy takes as long as it takes; a cancel ends it.
CallOptions ToTheEnd(CallOptions call) {
  call.must_finish = true;
  return call;
}

}  // namespace

CutPart ImageBackend::PartOf(const CutWish& wish) const {
  return {.from = layout_.Image(IdOf(wish.source)),
          .expected = wish.source.object,
          .to = layout_.Image(IdOf(wish.cut))};
}

Result<bool> ImageBackend::HasDevice(const PoolId& id, const CallOptions& call) {
  ASSIGN_OR_RETURN(const LoopList list, kernel_.Call(ListLoops{layout_.Image(id)}, call));
  return std::any_of(list.loops.begin(), list.loops.end(),
                     [](const LoopEntry& loop) { return !loop.deleted; });
}

// Whoever has a raw device may write at any moment, and no freeze holds him up.
Status ImageBackend::CheckTogether(const std::vector<CutWish>& wishes, const CallOptions& call) {
  if (wishes.size() < 2) return OkStatus();
  for (const CutWish& wish : wishes) {
    const bool is_image = wish.source.backend == PoolBackendKind::kImage;
    if (!wish.source.is_block || !is_image) continue;
    ASSIGN_OR_RETURN(const bool has_device, HasDevice(IdOf(wish.source), call));
    if (!has_device) continue;
    return CannotBeCut(wish,
                       "it is a block volume that somebody has, and is to be cut at one "
                       "moment with others");
  }
  return OkStatus();
}

// Nothing is copied here: its source is not written to before it is.
Result<MadeCut> ImageBackend::PromiseCopy(const CutWish& wish, const CallOptions& call) {
  // Whoever has it cut has made sure that nobody can write to it.
  if (wish.source.backend == PoolBackendKind::kStatic) {
    return MadeCut{.artefact = WholeDevice(wish.source), .was_frozen = false, .is_copy = true};
  }
  const PoolId source = IdOf(wish.source);
  if (wish.mounted) {
    return CannotBeCut(wish,
                       "it is mounted for writing, and its content is to be copied, as the "
                       "pool's filesystem or the parameter \"snapshots\" has it: end its pods "
                       "first");
  }
  if (wish.source.is_block) {
    ASSIGN_OR_RETURN(const bool has_device, HasDevice(source, call));
    if (has_device) {
      return CannotBeCut(wish,
                         "somebody has its device, and its content is to be copied, as the "
                         "pool's filesystem or the parameter \"snapshots\" has it");
    }
  }
  RETURN_IF_ERROR(CheckObject(source, wish.source.object, call));
  ASSIGN_OR_RETURN(const auto measured, Measure({source}, OfDamaged::kError, call));
  const auto there = measured.find(source);
  if (there == measured.end()) return CannotBeCut(wish, "its file is not there");
  return MadeCut{.artefact = there->second, .was_frozen = false, .is_copy = true};
}

Result<MadeCut> ImageBackend::CutUnmounted(const CutWish& wish, const CallOptions& call) {
  if (wish.way == PoolCutWay::kCopy) return PromiseCopy(wish, call);
  const CutPart part = PartOf(wish);
  const CloneFile clone{.from = part.from, .expected = part.expected, .to = part.to};
  const Result<FileExtent> file = kernel_.Call(clone, call);
  if (!file.ok()) {
    const bool is_copied = wish.way == PoolCutWay::kAuto && CannotShare(file.error());
    if (is_copied) return PromiseCopy(wish, call);
    return file.error();
  }
  MadeCut made{.artefact = ArtefactOf(*file), .was_frozen = false, .is_copy = false};
  made.artefact.shares_blocks = true;
  return made;
}

// What may be frozen still is thawed.
Error ImageBackend::WhyNotCut(const std::vector<CutWish>& wishes, const CutFrozen& request,
                              const Error& error, const CallOptions& call) {
  if (!error.maybe_applied() && CannotShare(error)) {
    const auto mounted = std::find_if(wishes.begin(), wishes.end(),
                                      [](const CutWish& wish) { return wish.mounted.has_value(); });
    return CannotBeCut(*mounted, "it is mounted for writing, and " + error.message() +
                                     "; where files share no blocks, as on ext4, a volume is "
                                     "copied while nobody has it: end its pods first, or have it "
                                     "in a pool on xfs or btrfs");
  }
  if (!error.maybe_applied()) return error;
  for (const FreezePoint& point : request.freeze) {
    const Result<Changed> thawed = kernel_.Call(ThawFilesystem{point}, call);
    if (thawed.ok()) continue;
    return error.With("it may still be frozen at " + point.mount_point.Display() + " (" +
                      thawed.error().ToString() + ")");
  }
  return error;
}

// One moment for all: what is not mounted is cloned while the others are frozen.
Result<std::vector<MadeCut>> ImageBackend::CutWhileFrozen(const std::vector<CutWish>& wishes,
                                                          const CutLimits& limits,
                                                          const CallOptions& call) {
  CutFrozen request;
  request.never = limits.never_frozen;
  request.longest_us =
      std::chrono::duration_cast<std::chrono::microseconds>(limits.longest).count();
  for (const CutWish& wish : wishes) {
    if (wish.way == PoolCutWay::kCopy) continue;
    request.cuts.push_back(PartOf(wish));
    if (!wish.mounted) continue;
    request.freeze.push_back(
        {wish.mounted->place, wish.mounted->device_major, wish.mounted->device_minor});
  }
  const Result<FrozenCut> cut = kernel_.Call(request, call);
  if (!cut.ok()) return WhyNotCut(wishes, request, cut.error(), call);
  std::vector<MadeCut> made;
  size_t at = 0;
  for (const CutWish& wish : wishes) {
    if (wish.way == PoolCutWay::kCopy) {
      ASSIGN_OR_RETURN(MadeCut copy, PromiseCopy(wish, call));
      made.push_back(std::move(copy));
      continue;
    }
    if (at == cut->files.size()) {
      return Error::MaybeApplied(Code::kInternal, "fewer files were cut than were asked for");
    }
    MadeCut& one = made.emplace_back();
    one.artefact = ArtefactOf(cut->files[at++]);
    one.artefact.shares_blocks = true;
    one.was_frozen = wish.mounted.has_value();
  }
  return made;
}

Result<std::vector<MadeCut>> ImageBackend::CutAll(const std::vector<CutWish>& wishes,
                                                  const CutLimits& limits,
                                                  const CallOptions& call) {
  bool is_mounted = false;
  for (const CutWish& wish : wishes) {
    is_mounted = is_mounted || wish.mounted;
    if (wish.mounted && wish.way == PoolCutWay::kCopy) return PromiseCopy(wish, call).error();
  }
  if (is_mounted) return CutWhileFrozen(wishes, limits, call);
  std::vector<MadeCut> made;
  for (const CutWish& wish : wishes) {
    ASSIGN_OR_RETURN(MadeCut one, CutUnmounted(wish, call));
    made.push_back(std::move(one));
  }
  return made;
}

Result<std::vector<MadeCut>> ImageBackend::Cut(const std::vector<CutWish>& wishes,
                                               const CutLimits& limits, const CallOptions& call) {
  RETURN_IF_ERROR(CheckTogether(wishes, call));
  Begun begun;
  for (const CutWish& wish : wishes) {
    const Status made =
        MakeDirectoryOf(IdOf(wish.cut), DescriptionOf(wish.cut, pool_uuid_), begun, call);
    if (!made.ok()) return TakenBack(begun, made.error(), call);
  }
  Result<std::vector<MadeCut>> cuts = CutAll(wishes, limits, call);
  if (cuts.ok()) return cuts;
  return TakenBack(begun, cuts.error(), call);
}

Result<MadeArtefact> ImageBackend::CopyCut(const PoolCutRecord& cut, const PoolVolumeRecord& source,
                                           int64_t bytes_per_second, const CallOptions& call) {
  if (source.backend == PoolBackendKind::kStatic) {
    ASSIGN_OR_RETURN(const FileExtent file,
                     CopyStaticDevice(kernel_, source, cut, layout_.Image(IdOf(cut)),
                                      bytes_per_second, ToTheEnd(call)));
    return ArtefactOf(file);
  }
  const CopyFile copy{.from = layout_.Image(IdOf(source)),
                      .expected = source.object,
                      .to = layout_.Image(IdOf(cut)),
                      .from_offset = cut.copied_bytes,
                      .bytes_per_second = bytes_per_second};
  ASSIGN_OR_RETURN(const FileExtent file, kernel_.Call(copy, ToTheEnd(call)));
  return ArtefactOf(file);
}

// Whatever was made of a file that has lost its end would read as zero there.
Status CheckIsWholeCut(int64_t file_bytes, const PoolCutRecord& cut) {
  if (file_bytes >= cut.size_bytes) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           "the file of snapshot " + cut.id + " has " + BytesForPeople(file_bytes) +
                               ", and had " + BytesForPeople(cut.size_bytes) + " when it was cut");
}

// To a caller NotFound says that there is no such snapshot, and this one was found.
Error AboutFileOf(const PoolCutRecord& cut, const Error& error) {
  if (error.code() != Code::kNotFound) return error;
  return Error::FromParts(Code::kFailedPrecondition, error.outcome(), error.sys_errno(),
                          "the file of snapshot " + cut.id + " is missing: " + error.message());
}

// What is thick has blocks of its own, unless its class wants them shared.
Result<MadeArtefact> ImageBackend::Fill(const PoolVolumeRecord& volume,
                                        const PoolParameters& parameters, const PoolCutRecord& cut,
                                        const CallOptions& call) {
  const SafePath image = layout_.Image(IdOf(volume));
  const CloneFile clone{.from = layout_.Image(IdOf(cut)), .expected = cut.object, .to = image};
  PoolCutWay way = parameters.snapshots;
  if (way == PoolCutWay::kAuto && Allocates(parameters)) way = PoolCutWay::kCopy;
  std::optional<FileExtent> shared;
  if (way != PoolCutWay::kCopy) {
    const Result<FileExtent> cloned = kernel_.Call(clone, call);
    const bool is_copied = !cloned.ok() && way == PoolCutWay::kAuto && CannotShare(cloned.error());
    if (!cloned.ok() && !is_copied) return AboutFileOf(cut, cloned.error());
    if (cloned.ok()) shared = *cloned;
  }
  Result<FileExtent> filled = shared.value_or(FileExtent{});
  if (!shared) {
    const CopyFile copy{.from = clone.from, .expected = clone.expected, .to = image};
    filled = kernel_.Call(copy, ToTheEnd(call));
    if (!filled.ok()) return AboutFileOf(cut, filled.error());
  }
  RETURN_IF_ERROR(CheckIsWholeCut(filled->size_bytes, cut));
  ASSIGN_OR_RETURN(const FileExtent file,
                   kernel_.Call(SetFileSize{.path = image,
                                            .bytes = volume.capacity_bytes,
                                            .allocate = Allocates(parameters),
                                            .mode = kPoolImageMode},
                                call));
  MadeArtefact made = ArtefactOf(file);
  made.shares_blocks = shared.has_value();
  return made;
}

Result<MadeArtefact> ImageBackend::Materialize(const PoolVolumeRecord& volume,
                                               const PoolParameters& parameters,
                                               const PoolCutRecord& cut, const CallOptions& call) {
  const PoolId id = IdOf(volume);
  Begun begun;
  RETURN_IF_ERROR(MakeDirectoryOf(id, DescriptionOf(volume, pool_uuid_), begun, call));
  Result<MadeArtefact> filled = Fill(volume, parameters, cut, call);
  if (filled.ok()) return filled;
  return TakenBack(begun, filled.error(), call);
}

Result<ExtentList> ImageBackend::ListExtentsOfCut(const PoolCutRecord& cut, int64_t from_offset,
                                                  uint32_t most, const CallOptions& call) {
  Result<ExtentList> list = kernel_.Call(ListExtents{.path = layout_.Image(IdOf(cut)),
                                                     .expected = cut.object,
                                                     .from_offset = from_offset,
                                                     .most = most},
                                         call);
  if (!list.ok()) return AboutFileOf(cut, list.error());
  if (!list->done) return list;
  // What lies behind the last run is a hole only as far as there is a file.
  ASSIGN_OR_RETURN(const FileInfo file, kernel_.Call(Stat{layout_.Image(IdOf(cut))}, call));
  RETURN_IF_ERROR(CheckIsWholeCut(file.size_bytes, cut));
  return list;
}

}  // namespace volumed
