// The end of volumes, and what a new agent does about what the one before it has begun.
#include <utility>

#include "base/printable_text.h"
#include "pool/pool_volumes_parts.h"

namespace volumed {
namespace {

constexpr size_t kShownNode = 256;  // bytes of a node's id in a message

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
  ASSIGN_OR_RETURN(Held held, Hold(id, call));
  if (only_unused && held.record.used) {
    return PoolRefusal("volume " + id + " was used: its content may be somebody's");
  }
  if (!held.record.leases.empty()) {
    return PoolRefusal("volume " + id + " is published on node " +
                       Quoted(held.record.leases.front().node, kShownNode));
  }
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
  const Status ended = EndDeletions(pool, call);
  const Status closed = CloseUnused(pool, is_used, call);
  return ended.ok() ? closed : ended;
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
    Result<Held> held = Hold(id, call);
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
      const Result<Held> held = Hold(id.ToString(), call);
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
