// The cuts of volumes: made together at one moment, copied if that is needed, and discarded.
#include <algorithm>
#include <utility>

#include "base/printable_text.h"
#include "pool/artefact_directory.h"
#include "pool/pool_volumes_parts.h"
#include "pool/static_backend.h"

namespace volumed {
namespace {

constexpr size_t kShownCutBytes = 128;  // of an id that a caller gave, in a message

// By so much a copy of files may be more than what they have: directories are laid out anew in it.
constexpr int64_t kCopyOverhead = int64_t{64} << 20;
constexpr int64_t kLeastCopy = int64_t{1} << 20;

// A filesystem that is there and on nobody's record would be taken for a blank volume.
Status CheckFilesystemKnown(const PoolVolumeRecord& source) {
  const bool has_own = !source.is_block && !IsTree(source.backend) && !IsListed(source.backend);
  if (!has_own || !source.used || !source.filesystem.type.empty()) return OkStatus();
  return PoolRefusal("volume " + source.id +
                     " was opened, and it is not on record which filesystem it has: it can be cut "
                     "once it was mounted");
}

// The kernel has looked at whatever is no file of the pool.
Status CheckSourceHasItsEnd(const Pool& pool, const PoolVolumeRecord& source, int64_t bytes) {
  if (IsTree(source.backend) || IsListed(source.backend)) return OkStatus();
  if (source.backend == PoolBackendKind::kLvm) {
    return CheckHasItsEnd(source, "logical volume", bytes);
  }
  const SafePath image = pool.opened()->layout.Image(ParsePoolId(source.id).value());
  return CheckHasItsEnd(source, "file " + image.Display(), bytes);
}

// So much a cut may need, and its copy is given no more. What is known of a directory is where
// somebody writes to it meanwhile, or nobody counts it, no more than its size: whoever moves what
// is in it in front of the copy would have the same bytes copied again and again.
int64_t PromiseOfCut(const CutWish& wish, const MadeArtefact& there) {
  if (wish.source.backend != PoolBackendKind::kDirectory) return there.allocated_bytes;
  const int64_t size = std::max(wish.source.capacity_bytes, there.allocated_bytes);
  const int64_t most = size + size / 8 + kLeastCopy;
  const bool is_known =
      there.allocated_bytes > 0 && wish.consistency != PoolConsistency::kBestEffort;
  if (!is_known) return most;
  return std::min(there.allocated_bytes + there.allocated_bytes / 8 + kCopyOverhead, most);
}

// As the intent to cut it has it.
PoolCutRecord CutRecordOf(const CutWish& wish, const MadeArtefact& there, int64_t now_unix_ms) {
  const PoolVolumeRecord& source = wish.source;
  PoolCutRecord cut;
  cut.id = wish.cut.id;
  cut.source_writes = wish.cut.source_writes;
  cut.pool = source.pool;
  cut.volume = source.id;
  cut.state = PoolCutState::kCutting;
  cut.backend = CutBackendOf(source.backend);
  // What a directory may have at most can be less than its size, and a logical volume is made of
  // whole extents.
  const bool is_exact = !IsTree(source.backend) && source.backend != PoolBackendKind::kLvm;
  cut.size_bytes = is_exact ? there.size_bytes : source.capacity_bytes;
  cut.allocated_bytes = PromiseOfCut(wish, there);
  cut.is_block = source.is_block;
  cut.filesystem = source.filesystem;
  if (source.filesystem.type.empty()) cut.first_fs_type = PoolFilesystemOf(source);
  cut.family = source.family;
  cut.block_bytes = source.block_bytes;
  cut.cut_unix_ms = now_unix_ms;
  return cut;
}

}  // namespace

std::string PoolVolumes::NewCutId(const std::string& volume) const {
  if (!FindRow(volume)) return "";
  return NewPoolId(PoolObject::kCut, ParsePoolId(volume).value().pool_tag).ToString();
}

std::optional<PoolCutRecord> PoolVolumes::FindCutRow(const std::string& id) const {
  MutexLock lock(mu_);
  const auto row = cuts_.find(id);
  if (row == cuts_.end()) return std::nullopt;
  return row->second;
}

Result<PoolCutRecord> PoolVolumes::FindCut(const std::string& id) const {
  if (std::optional<PoolCutRecord> row = FindCutRow(id)) return *std::move(row);
  RETURN_IF_ERROR(WhyNotHere(id, PoolObject::kCut));
  return Error::NotApplied(Code::kAborted, "snapshot " + id + " is being made");
}

std::vector<std::string> PoolVolumes::Cuts() const {
  std::vector<std::string> ids;
  {
    MutexLock lock(mu_);
    for (const auto& [id, cut] : cuts_) ids.push_back(id);
    for (const auto& [id, reason] : unreadable_cuts_) {
      if (!cuts_.contains(id)) ids.push_back(id);
    }
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

Status PoolVolumes::CheckNotCopied(const std::string& volume) const {
  MutexLock lock(mu_);
  const std::string cut = tally_.CopiedFrom(volume);
  if (cut.empty()) return OkStatus();
  return PoolRefusal("volume " + volume + " is being copied for snapshot " + cut +
                     ", and is not to change before that is done");
}

Result<PoolVolumes::HeldCut> PoolVolumes::HoldCut(const std::string& id, const CallOptions& call) {
  RETURN_IF_ERROR(FindCut(id));
  ASSIGN_OR_RETURN(Taken taken, Take({id}));
  // It may have changed until it was taken.
  ASSIGN_OR_RETURN(ReachedCut cut, ReachCut(id, call));
  const Pool& pool = *PoolNamed(cut.record.pool);
  CallOptions in_pool = InPool(std::move(cut.call), pool, id);
  return HeldCut{std::move(taken), std::move(cut.record), cut.backend, std::move(in_pool)};
}

Result<PoolVolumes::ReachedCut> PoolVolumes::ReachCut(const std::string& id,
                                                      const CallOptions& call) const {
  ASSIGN_OR_RETURN(PoolCutRecord record, FindCut(id));
  const Pool* const pool = PoolNamed(record.pool);
  if (pool == nullptr) {
    // Like a pool that is away: what is going on waits for it, and does not fail for good.
    return Error::NotApplied(Code::kUnavailable, "the pool of snapshot " + id + ", " + record.pool +
                                                     ", is not configured any more");
  }
  ASSIGN_OR_RETURN(PoolBackend* const backend, BackendOf(*pool, record.backend));
  CallOptions in_pool = InPool(call, *pool);
  RETURN_IF_ERROR(pool->CheckThere(in_pool));
  return ReachedCut{std::move(record), backend, std::move(in_pool)};
}

// ---- to cut -------------------------------------------------------------------------------------

Status PoolVolumes::AddSource(const CutRequest& request, Cutting& cutting,
                              const CallOptions& call) {
  for (const CutWish& wish : cutting.wishes) {
    if (wish.source.id != request.volume) continue;
    return Error::NotApplied(Code::kInvalidArgument,
                             "volume " + request.volume + " is to be cut twice at one moment");
  }
  ASSIGN_OR_RETURN(Held held, HoldThere(request.volume, call));
  PoolVolumeRecord& source = held.record;
  RETURN_IF_ERROR(CheckUsable(source));
  RETURN_IF_ERROR(CheckNotInline(source));
  std::string writes;
  if (IsListed(source.backend)) {
    ASSIGN_OR_RETURN(writes, PrepareListed(request, source, call));
  }
  RETURN_IF_ERROR(CheckFilesystemKnown(source));
  const Pool* const pool = PoolNamed(source.pool);
  ASSIGN_OR_RETURN(PoolBackend* const backend, BackendOf(*pool, CutBackendOf(source.backend)));
  if (cutting.pool != nullptr && (cutting.pool != pool || cutting.backend != backend)) {
    return PoolRefusal("volumes " + cutting.wishes.front().source.id + " and " + source.id +
                       " are not of one pool and one backend, and cannot be cut at one moment");
  }
  const std::optional<PoolId> id = ParsePoolId(request.cut);
  if (!id || id->object != PoolObject::kCut || id->pool_tag != pool->tag()) {
    return Error::NotApplied(
        Code::kInvalidArgument,
        Quoted(request.cut, kShownCutBytes) + " is no id for a snapshot in pool " + pool->name());
  }
  ASSIGN_OR_RETURN(Taken taken, Take({request.cut}));
  if (const PoolIdMeaning meaning = MeaningOf(request.cut, PoolObject::kCut);
      meaning == PoolIdMeaning::kHere || meaning == PoolIdMeaning::kUnreadable) {
    return Error::NotApplied(Code::kAlreadyExists,
                             "there is a snapshot " + request.cut + " already");
  }
  if (cutting.pool == nullptr) {
    cutting.pool = pool;
    cutting.backend = backend;
    cutting.call = InPool(call, *pool);
  }
  cutting.call = InPool(InPool(cutting.call, *pool, source.id), *pool, request.cut);
  cutting.wishes.push_back(
      {.source = source,
       .cut = {},
       .mounted = request.mounted,
       .way = IsListed(source.backend) ? PoolCutWay::kCopy : held.parameters.snapshots,
       .consistency = held.parameters.consistency});
  cutting.wishes.back().cut.id = request.cut;
  cutting.wishes.back().cut.source_writes = writes;
  cutting.sources.push_back(std::move(held));
  cutting.cuts.push_back(std::move(taken));
  return OkStatus();
}

Result<PoolVolumes::Cutting> PoolVolumes::PrepareCut(const std::vector<CutRequest>& requests,
                                                     const CallOptions& call) {
  if (requests.empty()) {
    return Error::NotApplied(Code::kInvalidArgument, "no volume is named that is to be cut");
  }
  Cutting cutting;
  for (const CutRequest& request : requests) RETURN_IF_ERROR(AddSource(request, cutting, call));
  ASSIGN_OR_RETURN(const auto measured, MeasureSources(cutting));
  for (size_t at = 0; at < cutting.wishes.size(); ++at) {
    CutWish& wish = cutting.wishes[at];
    const auto there = measured.find(ParsePoolId(wish.source.id).value());
    if (there == measured.end() || there->second.size_bytes <= 0) {
      return PoolRefusal("the files of volume " + wish.source.id + " are not there");
    }
    RETURN_IF_ERROR(CheckSourceHasItsEnd(*cutting.pool, wish.source, there->second.size_bytes));
    // Otherwise nobody could tell which UUID the cut has.
    if (!wish.source.filesystem.new_uuid.empty()) {
      RETURN_IF_ERROR(NameCopy(cutting.sources[at], *cutting.pool));
      wish.source = cutting.sources[at].record;
    }
    wish.cut = CutRecordOf(wish, there->second, parts_.clock.WallUnixMillis());
  }
  return cutting;
}

// A copy of a device has no more than that, and nobody knows how much less before it is read.
Result<std::map<PoolId, MadeArtefact>> PoolVolumes::MeasureSources(const Cutting& cutting) {
  std::vector<PoolId> ids;
  std::map<PoolId, MadeArtefact> measured;
  for (const CutWish& wish : cutting.wishes) {
    const PoolId id = ParsePoolId(wish.source.id).value();
    if (IsListed(wish.source.backend)) {
      measured[id] = WholeDevice(wish.source);
    } else {
      ids.push_back(id);
    }
  }
  ASSIGN_OR_RETURN(auto files, cutting.backend->Measure(ids, OfDamaged::kError, cutting.call));
  measured.merge(files);
  return measured;
}

// Keeps the place in the pool until the rows say that it is promised.
Status PoolVolumes::WriteCutting(Cutting& cutting) {
  int64_t promise = 0;
  for (const CutWish& wish : cutting.wishes) promise += wish.cut.allocated_bytes;
  ASSIGN_OR_RETURN(const Reservation reserved,
                   Reserve(*cutting.pool, cutting.backend->kind(), cutting.wishes.front().cut.id,
                           promise, cutting.call));
  std::vector<PoolCutRecord> begun;
  for (const CutWish& wish : cutting.wishes) begun.push_back(wish.cut);
  for (const Status& written : WriteCuts(begun, kPoolRecordDurability)) {
    if (!written.ok()) return TakeBackCut(cutting, written.error());
  }
  return OkStatus();
}

Error PoolVolumes::TakeBackCut(Cutting& cutting, const Error& error) {
  for (const CutWish& wish : cutting.wishes) {
    if (!FindCutRow(wish.cut.id)) continue;
    Status gone;
    if (error.maybe_applied()) gone = cutting.backend->DiscardCut(wish.cut, cutting.call);
    if (gone.ok()) gone = CheckGone(wish.cut.id, cutting.call);
    if (gone.ok()) gone = RemoveCut(wish.cut);
    if (gone.ok()) continue;
    parts_.log.Warning("what is left of a cut that failed is not taken away yet",
                       {{"cut", wish.cut.id}, {"error", gone.error()}});
    return error.AsMaybeApplied();
  }
  return error;
}

Result<std::vector<PoolCutRecord>> PoolVolumes::WriteMade(Cutting& cutting,
                                                          const std::vector<MadeCut>& made) {
  std::vector<PoolCutRecord> records;
  for (size_t at = 0; at < made.size(); ++at) {
    PoolCutRecord& record = records.emplace_back(cutting.wishes[at].cut);
    record.state = PoolCutState::kCut;
    record.object = made[at].artefact.object;
    record.size_bytes = made[at].artefact.size_bytes;
    record.allocated_bytes = made[at].artefact.allocated_bytes;
    record.is_copy = made[at].is_copy;
    record.was_frozen = made[at].was_frozen;
    record.cut_unix_ms = parts_.clock.WallUnixMillis();
    if (record.is_copy) record.family = record.id;
  }
  for (const Status& written : WriteCuts(records, Durability::kProcess)) {
    if (!written.ok()) return written.error().AsMaybeApplied();
  }
  return records;
}

Result<std::vector<PoolCutRecord>> PoolVolumes::Cut(const std::vector<CutRequest>& requests,
                                                    const CutLimits& limits,
                                                    const CallOptions& call) {
  ASSIGN_OR_RETURN(Cutting cutting, PrepareCut(requests, call));
  RETURN_IF_ERROR(WriteCutting(cutting));
  const Result<std::vector<MadeCut>> made =
      cutting.backend->Cut(cutting.wishes, limits, cutting.call);
  if (!made.ok()) return TakeBackCut(cutting, made.error());
  Result<std::vector<PoolCutRecord>> records = WriteMade(cutting, *made);
  if (records.ok()) TellChanged();
  return records;
}

// ---- afterwards ---------------------------------------------------------------------------------

Status PoolVolumes::CopyCut(const std::string& id, int64_t bytes_per_second,
                            const CallOptions& call) {
  ASSIGN_OR_RETURN(HeldCut held, HoldCut(id, call));
  PoolCutRecord& cut = held.record;
  if (IsWhole(cut)) return OkStatus();
  if (cut.state != PoolCutState::kCut) {
    return PoolRefusal("snapshot " + id + " is " + std::string(PoolCutStateName(cut.state)));
  }
  ASSIGN_OR_RETURN(const PoolVolumeRecord source, Find(cut.volume));
  RETURN_IF_ERROR(CheckStillListed(source));
  CallOptions copying = held.call;
  PoolCutRecord seen = cut;
  copying.progress = [&](int64_t bytes) {
    // The last byte is told of below, with the file that it is in.
    if (bytes > seen.copied_bytes && bytes < seen.size_bytes) {
      seen.copied_bytes = bytes;
      const Status written = WriteCut(seen);
      if (!written.ok()) {
        parts_.log.Warning("how far a copy is cannot be put on record",
                           {{"cut", id}, {"error", written.error()}});
      }
    }
    if (call.progress) call.progress(bytes);
  };
  const Result<MadeArtefact> made = held.backend->CopyCut(cut, source, bytes_per_second, copying);
  if (!made.ok()) return AboutFilesOf(source.id, made.error());
  cut.object = made->object;
  cut.allocated_bytes = made->allocated_bytes;
  cut.copied_bytes = cut.size_bytes;
  if (made->shares_blocks) cut.family = source.family;
  const Status written = WriteCut(cut);
  return written.ok() ? written : Status(written.error().AsMaybeApplied());
}

// REQUIRES: the row says kDiscarding.
Status PoolVolumes::FinishDiscard(HeldCut& held) {
  Status gone = held.backend->DiscardCut(held.record, held.call);
  if (gone.ok()) gone = CheckGone(held.record.id, held.call);
  if (!gone.ok()) return gone.error().AsMaybeApplied();
  if (const Status removed = RemoveCut(held.record); !removed.ok()) {
    return removed.error().AsMaybeApplied();
  }
  TellChanged();
  return OkStatus();
}

Status PoolVolumes::PrepareDiscard(const std::string& id, const CallOptions& call) {
  if (!FindCutRow(id)) return OkStatus();
  ASSIGN_OR_RETURN(const HeldCut held, HoldCut(id, call));
  const Status ready =
      held.backend->PrepareDiscard(ParsePoolId(id).value(), held.record.object, held.call);
  return ready.ok() ? ready : Status(ready.error().With("snapshot " + id));
}

Status PoolVolumes::Discard(const std::string& id, const CallOptions& call) {
  const Status here = WhyNotHere(id, PoolObject::kCut);
  if (!here.ok() && here.error().code() == Code::kNotFound) {
    ASSIGN_OR_RETURN(const Taken taken, Take({id}));
    if (!FindCutRow(id)) return OkStatus();
    return Error::NotApplied(Code::kAborted, "snapshot " + id + " was just made");
  }
  ASSIGN_OR_RETURN(HeldCut held, HoldCut(id, call));
  RETURN_IF_ERROR(parts_.irreversible.Admit(IrreversibleStep::kDelete, id));
  held.record.state = PoolCutState::kDiscarding;
  RETURN_IF_ERROR(WriteCut(held.record));
  return FinishDiscard(held);
}

Result<ExtentList> PoolVolumes::ListCutExtents(const std::string& id, int64_t from_offset,
                                               uint32_t most, const CallOptions& call) const {
  ASSIGN_OR_RETURN(const ReachedCut cut, ReachCut(id, call));
  if (!IsWhole(cut.record)) return PoolRefusal("snapshot " + id + " is not whole");
  return cut.backend->ListExtentsOfCut(cut.record, from_offset, most, cut.call);
}

// Of a cut that was begun nobody knows whether it counts: the verdict went with the agent.
Status PoolVolumes::EndCuts(const Pool& pool, const CallOptions& call) {
  std::vector<std::string> begun;
  {
    MutexLock lock(mu_);
    for (const auto& [id, cut] : cuts_) {
      if (cut.pool == pool.name() && cut.state != PoolCutState::kCut) begun.push_back(id);
    }
  }
  Status first;
  for (const std::string& id : begun) {
    Status ended = Discard(id, call);
    // Somebody else is at it.
    if (ended.ok() || ended.error().code() == Code::kAborted) continue;
    parts_.log.Warning("cut is not discarded yet", {{"cut", id}, {"error", ended.error()}});
    if (first.ok()) first = std::move(ended);
  }
  return first;
}

}  // namespace volumed
