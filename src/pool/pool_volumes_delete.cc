// The end of volumes, and what a new agent does about what the one before it has begun.
#include <utility>

#include "base/printable_text.h"
#include "pool/pool_volumes_parts.h"

namespace volumed {
namespace {

constexpr size_t kShownHolder = 256;  // bytes of a node's id in a message

}  // namespace

// REQUIRES: the row says kDeleting.
Status PoolVolumes::FinishDelete(Held& held) {
  if (const Status gone = held.backend->Discard(held.record, held.call); !gone.ok()) {
    return gone.error().AsMaybeApplied();
  }
  if (const Status removed = Advance(held.record, PoolVolumeEvent::kDone); !removed.ok()) {
    return removed.error().AsMaybeApplied();
  }
  TellChanged();
  return OkStatus();
}

// A volume of this id may be about to get its row.
Status PoolVolumes::DeleteNothing(const std::string& id) {
  ASSIGN_OR_RETURN(const Taken taken, Take({id}));
  if (!FindRow(id)) return OkStatus();
  return Error::NotApplied(Code::kAborted, "volume " + id + " was just made");
}

Status PoolVolumes::Delete(const std::string& id, bool only_unused, const CallOptions& call) {
  const Status here = WhyNotHere(id);
  if (!here.ok() && here.error().code() == Code::kNotFound) return DeleteNothing(id);
  ASSIGN_OR_RETURN(Held held, HoldThere(id, call));
  if (only_unused && held.record.used) {
    return PoolRefusal("volume " + id + " was used: its content may be somebody's");
  }
  if (!held.record.leases.empty()) {
    return PoolRefusal("volume " + id + " is published on node " +
                       Quoted(held.record.leases.front().node, kShownHolder));
  }
  RETURN_IF_ERROR(CheckNotCopied(id));
  RETURN_IF_ERROR(parts_.irreversible.Admit(IrreversibleStep::kDelete, held.record.name));
  RETURN_IF_ERROR(Advance(held.record, PoolVolumeEvent::kDelete));
  return FinishDelete(held);
}

Status PoolVolumes::Recover(const IsUsed& is_used, const CallOptions& call) {
  Status first;
  for (const std::unique_ptr<Pool>& pool : pools_) {
    Status recovered = Recover(*pool, is_used, call);
    if (first.ok()) first = std::move(recovered);
  }
  return first;
}

Status PoolVolumes::Recover(Pool& pool, const IsUsed& is_used, const CallOptions& call) {
  RETURN_IF_ERROR(pool.Open(!parts_.irreversible.InDoubt(), InPool(call, pool)));
  RETURN_IF_ERROR(FindLost(pool, PoolObject::kVolume, call));
  RETURN_IF_ERROR(FindLost(pool, PoolObject::kCut, call));
  const Status discarded = EndCuts(pool, call);
  const Status ended = EndDeletions(pool, call);
  const Status closed = CloseUnused(pool, is_used, call);
  if (!discarded.ok()) return discarded;
  return ended.ok() ? closed : ended;
}

// A volume whose record was lost, with a root that was made anew, is not one that there is not: who
// asks for its end, or for its name, would get the wrong answer, and what it was promised somebody
// else. So it is with a cut, of which somebody may know.
Status PoolVolumes::FindLost(const Pool& pool, PoolObject object, const CallOptions& call) {
  const CallOptions in_pool = InPool(call, pool);
  const PoolLayout& layout = pool.opened()->layout;
  const bool is_cut = object == PoolObject::kCut;
  ASSIGN_OR_RETURN(
      const DirectoryListing listing,
      parts_.kernel.Call(ListDirectory{is_cut ? layout.Cuts() : layout.Volumes()}, in_pool));
  for (const DirectoryEntry& entry : listing.entries) {
    const std::optional<PoolId> id = ParsePoolId(entry.name);
    if (!id || id->object != object || id->pool_tag != pool.tag()) continue;
    // Whoever makes or deletes it has it, and it has a row as long as it has files.
    const Result<Taken> taken = Take({entry.name});
    if (!taken.ok() || Meaning(entry.name, object) == PoolIdMeaning::kHere) continue;
    ASSIGN_OR_RETURN(const FileInfo info,
                     parts_.kernel.Call(Stat{layout.ArtefactDir(*id)}, in_pool));
    if (info.type == FileType::kMissing) continue;
    const std::string place = layout.ArtefactDir(*id).Display();
    MutexLock lock(mu_);
    auto& unreadable = is_cut ? unreadable_cuts_ : unreadable_;
    if (!unreadable.emplace(entry.name, "it is lost, and its files are at " + place).second) {
      continue;
    }
    parts_.log.Warning(
        is_cut ? "a cut has files and no record: it is left as it is"
               : "a volume has files and no record: it is left as it is, and no volume is made in "
                 "its pool until they are moved away and the agent is started again",
        {{is_cut ? "cut" : "volume", entry.name}, {"path", place}});
  }
  return OkStatus();
}

Status PoolVolumes::EndDeletions(const Pool& pool, const CallOptions& call) {
  std::vector<std::string> begun;
  {
    MutexLock lock(mu_);
    for (const auto& [id, record] : volumes_) {
      const bool is_deleting = record.state == PoolVolumeState::kDeleting;
      if (is_deleting && record.pool == pool.name()) begun.push_back(id);
    }
  }
  Status first;
  for (const std::string& id : begun) {
    Result<Held> held = HoldThere(id, call);
    // Somebody else is at it, or was.
    if (!held.ok()) continue;
    Status ended = parts_.irreversible.Admit(IrreversibleStep::kDelete, held->record.name);
    if (ended.ok()) ended = FinishDelete(*held);
    if (ended.ok()) continue;
    parts_.log.Warning("volume is not deleted yet", {{"volume", id}, {"error", ended.error()}});
    if (first.ok()) first = std::move(ended);
  }
  return first;
}

Status PoolVolumes::CloseUnused(const Pool& pool, const IsUsed& is_used, const CallOptions& call) {
  Status first;
  for (const auto& [kind, backend] : pool.opened()->backends) {
    ASSIGN_OR_RETURN(const std::vector<PoolId> open, backend->ListOpen(InPool(call, pool)));
    for (const PoolId& id : open) {
      const Result<Held> held = HoldThere(id.ToString(), call);
      if (!held.ok()) {
        parts_.log.Warning("device of a volume is left as it is",
                           {{"volume", id.ToString()}, {"error", held.error()}});
        continue;
      }
      // Asked while nobody else can open it: whoever does says so before.
      if (is_used(id.ToString())) continue;
      Status closed = backend->Close(id, held->call);
      if (!closed.ok() && first.ok()) first = std::move(closed);
    }
  }
  return first;
}

}  // namespace volumed
