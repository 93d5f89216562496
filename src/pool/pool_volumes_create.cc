#include <utility>

#include "base/printable_text.h"
#include "pool/pool_volumes_parts.h"

namespace volumed {
namespace {

// A name of Kubernetes' objects fits, and one of a CSI call.
constexpr size_t kMostNameBytes = 253;

Status CheckName(const std::string& name) {
  if (!name.empty() && name.size() <= kMostNameBytes && IsText(name)) return OkStatus();
  return Error::NotApplied(Code::kInvalidArgument,
                           "the name of a volume cannot be " + Quoted(name, kMostNameBytes));
}

Status CheckKeepsBlocks(const Pool& pool, const PoolParameters& parameters) {
  const bool is_thick = parameters.allocation == PoolAllocation::kThick;
  if (!is_thick || !pool.writes_elsewhere()) return OkStatus();
  return PoolRefusal("pool " + pool.name() +
                     " lies on a btrfs, which writes what is written anew to other blocks, so that "
                     "none can be kept for a volume: \"thick\" needs a pool on an ext4 or xfs");
}

}  // namespace

// The name of a volume whose row cannot be read may be the one that is asked for, whatever pool
// that is to be in: names are the node's.
Status PoolVolumes::CheckAllReadable(const CallOptions& call) {
  std::set<std::string> lost;
  {
    MutexLock lock(mu_);
    lost = lost_;
  }
  for (const std::string& id : lost) {
    if (!ForgetIfMoved(id, call)) break;
  }
  MutexLock lock(mu_);
  if (unreadable_.empty()) return OkStatus();
  return PoolRefusal("no volume is made in any pool of this node while the record of volume " +
                     unreadable_.begin()->first + ", whose name may be the same, cannot be read: " +
                     unreadable_.begin()->second);
}

Status PoolVolumes::CheckNamesKnown(const CallOptions& call) {
  if (const Status readable = CheckAllReadable(call); !readable.ok()) {
    return PoolRefusal("whether there is a volume of this name is not certain: " +
                       readable.error().message());
  }
  for (const std::unique_ptr<Pool>& pool : pools_) RETURN_IF_ERROR(CheckLookedThrough(*pool));
  if (!parts_.irreversible.InDoubt()) return OkStatus();
  return PoolRefusal("which volumes there are is not certain, as records are in doubt");
}

Result<std::string> PoolVolumes::NewIdFor(const PoolVolumeWish& wish, const Pool& pool) const {
  if (wish.id.empty()) return NewPoolId(PoolObject::kVolume, pool.tag()).ToString();
  const std::optional<PoolId> id = ParsePoolId(wish.id);
  if (!id || id->object != PoolObject::kVolume || id->pool_tag != pool.tag()) {
    return Error::NotApplied(
        Code::kInvalidArgument,
        Quoted(wish.id, kMostNameBytes) + " is no id for a volume of pool " + pool.name());
  }
  if (const std::optional<PoolVolumeRecord> row = FindRow(wish.id)) {
    return Error::NotApplied(Code::kAlreadyExists,
                             "volume " + wish.id + " was made by another name, " + row->name);
  }
  return wish.id;
}

// The volume that has the name, if it is what is asked for. Its source may be gone by now.
Result<PoolVolumeRecord> PoolVolumes::FindMade(const PoolVolumeWish& wish,
                                               PoolVolumeRecord row) const {
  if (row.state == PoolVolumeState::kDeleting) {
    return Error::NotApplied(Code::kAborted, "volume " + row.id + ", which was made by the name " +
                                                 wish.name + ", is being deleted");
  }
  ASSIGN_OR_RETURN(PoolParameters parameters, ParsePoolParameters(wish.parameters));
  const auto had = row.parameters.find(kPoolFsTypeParameter);
  const bool is_of_content = wish.content && !wish.parameters.contains(kPoolFsTypeParameter);
  if (is_of_content && had != row.parameters.end()) parameters.fs_type = had->second;
  std::string difference = DifferenceToWish(row, parameters, wish.size, wish.is_block);
  if (difference.empty()) difference = ContentDifference(row, wish.content);
  if (!wish.id.empty() && wish.id != row.id) difference = "its id is not " + wish.id;
  if (difference.empty()) return row;
  return Error::NotApplied(Code::kAlreadyExists, "volume " + row.id + " has the name " + wish.name +
                                                     " already, and " + difference);
}

Result<PoolVolumeRecord> PoolVolumes::FindOrPlan(const PoolVolumeWish& wish) const {
  ASSIGN_OR_RETURN(const PoolParameters wanted, ParsePoolParameters(wish.parameters));
  RETURN_IF_ERROR(CheckPoolMode(wanted, wish.is_block));
  ASSIGN_OR_RETURN(const PoolTuning tuning, ParsePoolTuning(wish.mutable_parameters));
  RETURN_IF_ERROR(CheckTuning(tuning, wanted.backend));
  RETURN_IF_ERROR(DecidePoolSize(wish.size, wanted, wish.is_block));
  if (std::optional<PoolVolumeRecord> row = FindByName(wish.name)) {
    return FindMade(wish, *std::move(row));
  }
  ASSIGN_OR_RETURN(Shape shape, ShapeOf(wish));
  RETURN_IF_ERROR(CheckQuotaFits(tuning, shape.bytes));
  ASSIGN_OR_RETURN(const Pool* pool, OpenPoolFor(shape.parameters));
  RETURN_IF_ERROR(CheckLookedThrough(*pool));
  RETURN_IF_ERROR(CheckKeepsBlocks(*pool, shape.parameters));
  shape.parameters.pool = pool->name();
  PoolVolumeRecord record;
  ASSIGN_OR_RETURN(record.id, NewIdFor(wish, *pool));
  record.pool = pool->name();
  record.name = wish.name;
  record.backend = shape.parameters.backend;
  record.capacity_bytes = shape.bytes;
  record.is_block = wish.is_block;
  record.parameters = shape.parameters.ToMap();
  record.mutable_parameters = wish.mutable_parameters;
  record.family = shape.family.empty() ? record.id : shape.family;
  record.created_unix_ms = parts_.clock.WallUnixMillis();
  record.block_bytes = shape.block_bytes;
  record.inline_use = wish.inline_use;
  if (wish.content) {
    (wish.content->is_snapshot ? record.from_snapshot : record.from_volume) = wish.content->handle;
  }
  return record;
}

Status PoolVolumes::SaveDoubted() {
  std::vector<std::string> made;
  {
    MutexLock lock(mu_);
    for (const auto& [id, record] : volumes_) {
      if (record.doubted && record.state == PoolVolumeState::kMaking) made.push_back(id);
    }
  }
  for (const std::string& id : made) {
    ASSIGN_OR_RETURN(const Taken taken, Take({id}));
    const std::optional<PoolVolumeRecord> row = FindRow(id);
    if (row && row->state == PoolVolumeState::kMaking) RETURN_IF_ERROR(Write(*row));
  }
  return OkStatus();
}

// What is made empty, or was moved, is found again. A content would be put over whatever is there.
Status PoolVolumes::CheckNotDoubted(const PoolVolumeRecord& record) const {
  const bool has_content = !record.from_snapshot.empty() || !record.from_volume.empty();
  const bool is_copied_import = record.used && record.source.empty();
  const bool is_put_over = has_content || is_copied_import;
  if (!record.doubted || record.state != PoolVolumeState::kMaking || !is_put_over) {
    return OkStatus();
  }
  const Pool* const pool = PoolNamed(record.pool);
  const Pool::Opened* const opened = pool != nullptr ? pool->opened() : nullptr;
  const std::string place =
      opened != nullptr
          ? ", at " + opened->layout.ArtefactDir(ParsePoolId(record.id).value()).Display()
          : "";
  return PoolRefusal("volume " + record.id +
                     " may have been made, and written to since: the records by which it is being "
                     "made were in doubt. What is there is left as it is" +
                     place + ": save it if it is needed, delete the volume, and make it again");
}

Result<PoolVolumeRecord> PoolVolumes::Create(const PoolVolumeWish& wish, const CallOptions& call) {
  RETURN_IF_ERROR(CheckName(wish.name));
  RETURN_IF_ERROR(CheckAllReadable(call));
  ASSIGN_OR_RETURN(const Taken name, Take({NameKey(wish.name)}));
  ASSIGN_OR_RETURN(PoolVolumeRecord record, FindOrPlan(wish));
  if (record.state == PoolVolumeState::kReady || record.state == PoolVolumeState::kExpanding) {
    return record;
  }
  RETURN_IF_ERROR(CheckNotDoubted(record));
  const std::optional<VolumeContent>& content = wish.content;
  const Fill fill = [this, &content](Making& making) {
    return content ? MakeFrom(*content, making)
                   : making.backend.Make(making.record, making.parameters, making.call);
  };
  return Make(std::move(record), fill, /*ends_if_lost=*/content.has_value(), call);
}

// Keeps the place in the pool until the row says that it is promised.
Status PoolVolumes::WriteIntent(PoolVolumeRecord& record, const PoolParameters& parameters,
                                const Pool& pool, const CallOptions& call) {
  const int64_t promise = parameters.overcommit ? 0 : record.capacity_bytes;
  ASSIGN_OR_RETURN(const Reservation reserved,
                   Reserve(pool, record.backend, record.id, promise, call));
  return Advance(record, PoolVolumeEvent::kMake);
}

Status PoolVolumes::Unmake(PoolVolumeRecord& record, PoolBackend& backend,
                           const CallOptions& call) {
  RETURN_IF_ERROR(parts_.irreversible.Admit(IrreversibleStep::kDelete, record.name));
  RETURN_IF_ERROR(Advance(record, PoolVolumeEvent::kDelete));
  RETURN_IF_ERROR(backend.Discard(record, call));
  RETURN_IF_ERROR(CheckGone(record.id, call));
  RETURN_IF_ERROR(Advance(record, PoolVolumeEvent::kDone));
  TellChanged();
  return OkStatus();
}

Result<PoolVolumeRecord> PoolVolumes::Make(PoolVolumeRecord record, const Fill& fill,
                                           bool ends_if_lost, const CallOptions& call) {
  const bool is_first = record.state == PoolVolumeState::kNotKnown;
  const std::string id = record.id;
  Result<PoolVolumeRecord> made = TryMake(std::move(record), fill, ends_if_lost, call);
  // What this call has certainly not applied says nothing of an earlier one, unless that has gone.
  if (!made.ok() && !is_first && FindRow(id)) return made.error().AsMaybeApplied();
  return made;
}

Result<PoolVolumeRecord> PoolVolumes::TryMake(PoolVolumeRecord record, const Fill& fill,
                                              bool ends_if_lost, const CallOptions& call) {
  ASSIGN_OR_RETURN(const Taken id, Take({record.id}));
  ASSIGN_OR_RETURN(const PoolParameters parameters, ParsePoolParameters(record.parameters));
  ASSIGN_OR_RETURN(const Pool* pool, OpenPoolFor(parameters));
  ASSIGN_OR_RETURN(PoolBackend* const backend, BackendOf(*pool, record.backend));
  RETURN_IF_ERROR(pool->CheckThere(InPool(call, *pool)));
  RETURN_IF_ERROR(parts_.irreversible.Admit(IrreversibleStep::kProvision, record.name));
  const bool is_first = record.state == PoolVolumeState::kNotKnown;
  if (is_first) RETURN_IF_ERROR(WriteIntent(record, parameters, *pool, call));
  // It holds the content until the row says that the volume is made.
  Making making{.record = record,
                .parameters = parameters,
                .backend = *backend,
                .call = InPool(call, *pool, record.id),
                .is_repeat = !is_first};
  const Result<MadeArtefact> made = fill(making);
  if (!made.ok()) {
    // Nothing can be made of it any more: who asks for it would never hear its id, and so could
    // never delete it.
    const Code code = made.error().code();
    const bool has_lost_content =
        ends_if_lost && (code == Code::kNotFound || code == Code::kFailedPrecondition);
    if (has_lost_content && !is_first && !made.error().maybe_applied()) {
      RETURN_IF_ERROR(Unmake(record, *backend, making.call));
      return made.error();
    }
    if (made.error().maybe_applied() || !is_first) return made.error();
    // What a pool that is away lacks is not what the request named.
    const Status gone = CheckGone(record.id, making.call);
    if (!gone.ok()) return gone.error().AsMaybeApplied();
    const Status removed = Advance(record, PoolVolumeEvent::kNotApplied);
    return removed.ok() ? made.error() : made.error().AsMaybeApplied();
  }
  record.object = made->object;
  record.project_id = made->project_id.value_or(0);
  if (const Status ready = Advance(record, PoolVolumeEvent::kDone); !ready.ok()) {
    return ready.error().AsMaybeApplied();
  }
  TellChanged();
  return record;
}

}  // namespace volumed
