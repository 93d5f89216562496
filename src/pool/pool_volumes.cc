#include "pool/pool_volumes.h"

#include <algorithm>
#include <utility>

#include "base/printable_text.h"
#include "pool/known_pools.h"
#include "pool/pool_volumes_parts.h"
#include "pool/static_export.h"
#include "volume/nfs_export.h"

namespace volumed {
namespace {

constexpr size_t kShownBytes = 128;  // of an id that a caller gave, in a message

std::optional<PoolId> ParseIdOf(PoolObject object, const std::string& text) {
  std::optional<PoolId> id = ParsePoolId(text);
  if (id && id->object != object) id.reset();
  return id;
}

// Of an inline volume only its pod's kubelet knows.
bool IsListedToAll(const PoolVolumeRecord& record) {
  return record.inline_use.empty() &&
         (record.state == PoolVolumeState::kReady || record.state == PoolVolumeState::kExpanding);
}

std::set<std::string> NamesOf(const std::vector<std::unique_ptr<Pool>>& pools) {
  std::set<std::string> names;
  for (const std::unique_ptr<Pool>& pool : pools) names.insert(pool->name());
  return names;
}

}  // namespace

PoolVolumes::PoolVolumes(Parts parts, std::vector<std::unique_ptr<Pool>> pools)
    : parts_(parts),
      uuids_(NamesOf(pools), [this](const std::string& pool) { return MayHaveRows(pool); }),
      pools_(std::move(pools)) {
  for (const std::unique_ptr<Pool>& pool : pools_) {
    pool->SetUuids(&uuids_);
    pool->SetIsUsed([this, name = pool->name()] { return MayHaveRows(name); });
  }
}

PoolVolumes::~PoolVolumes() = default;

bool PoolVolumes::MayHaveRows(const std::string& pool) const {
  MutexLock lock(mu_);
  if (!unreadable_.empty() || !unreadable_cuts_.empty()) return true;
  const auto is_of_pool = [&pool](const auto& row) { return row.second.pool == pool; };
  return std::any_of(volumes_.begin(), volumes_.end(), is_of_pool) ||
         std::any_of(cuts_.begin(), cuts_.end(), is_of_pool);
}

Pool* PoolVolumes::PoolNamed(const std::string& name) const {
  for (const std::unique_ptr<Pool>& pool : pools_) {
    if (pool->name() == name) return pool.get();
  }
  return nullptr;
}

Pool* PoolVolumes::PoolOf(const PoolId& id) const {
  for (const std::unique_ptr<Pool>& pool : pools_) {
    if (pool->tag() == id.pool_tag) return pool.get();
  }
  return nullptr;
}

Pool* PoolVolumes::PoolFor(const PoolParameters& parameters) const {
  if (!parameters.pool.empty()) return PoolNamed(parameters.pool);
  return pools_.empty() ? nullptr : pools_.front().get();
}

Result<Pool*> PoolVolumes::OpenPoolFor(const PoolParameters& parameters) const {
  if (pools_.empty()) return NoSuchPool(pools_, "");
  Pool* const pool = PoolFor(parameters);
  if (pool == nullptr) return NoSuchPool(pools_, parameters.pool);
  RETURN_IF_ERROR(pool->state());
  return pool;
}

Result<PoolBackend*> PoolVolumes::BackendOf(const Pool& pool, PoolBackendKind kind) {
  RETURN_IF_ERROR(pool.state());
  return FindBackend(pool, kind);
}

Result<PoolBackend*> PoolVolumes::FindBackend(const Pool& pool, PoolBackendKind kind) {
  const Pool::Opened* opened = pool.opened();
  const auto backend = opened->backends.find(kind);
  if (backend != opened->backends.end()) return backend->second.get();
  const char* const why =
      kind == PoolBackendKind::kLvm ? ": pool-lvm names no thin pool of it" : "";
  return PoolRefusal("pool " + pool.name() + " has no volumes of the backend \"" +
                     std::string(PoolBackendName(kind)) + "\"" + why);
}

PoolIdMeaning PoolVolumes::MeaningOf(const std::string& id, PoolObject object) const {
  {
    const bool is_cut = object == PoolObject::kCut;
    MutexLock lock(mu_);
    if (is_cut ? cuts_.contains(id) : volumes_.contains(id)) return PoolIdMeaning::kHere;
    if ((is_cut ? unreadable_cuts_ : unreadable_).contains(id)) return PoolIdMeaning::kUnreadable;
  }
  const std::optional<PoolId> parsed = ParseIdOf(object, id);
  if (!parsed) return PoolIdMeaning::kNone;
  const Pool* const pool = PoolOf(*parsed);
  if (pool == nullptr) return PoolIdMeaning::kOfAnotherPool;
  MutexLock lock(mu_);
  // What was found meanwhile was found before the pool counted as looked through.
  const auto& unreadable = object == PoolObject::kCut ? unreadable_cuts_ : unreadable_;
  if (unreadable.contains(id)) return PoolIdMeaning::kUnreadable;
  return looked_through_.contains(pool->name()) ? PoolIdMeaning::kNone
                                                : PoolIdMeaning::kNotKnownYet;
}

Status PoolVolumes::WhyNotHere(const std::string& id, PoolObject object) const {
  const bool is_cut = object == PoolObject::kCut;
  const std::string shown = (is_cut ? "snapshot " : "volume ") + Quoted(id, kShownBytes);
  switch (MeaningOf(id, object)) {
    case PoolIdMeaning::kHere:
      return OkStatus();
    case PoolIdMeaning::kUnreadable: {
      MutexLock lock(mu_);
      const auto& unreadable = is_cut ? unreadable_cuts_ : unreadable_;
      const auto why = unreadable.find(id);
      const std::string reason = why == unreadable.end() ? "" : why->second;
      const char* const way_out =
          lost_.contains(id) ? "" : "; `volumectl records` says what can be done";
      return PoolRefusal("the record of " + shown + " cannot be read: " + reason + way_out);
    }
    case PoolIdMeaning::kNotKnownYet:
      return Error::NotApplied(
          Code::kUnavailable,
          "whether there is " + shown +
              " is not known yet: its pool was not looked through since the agent's start");
    case PoolIdMeaning::kOfAnotherPool:
      return PoolRefusal(shown + " is of a pool that this node does not have");
    case PoolIdMeaning::kNone:
      if (ParseIdOf(object, id) && parts_.irreversible.InDoubt()) {
        return PoolRefusal(shown + " has no record, but records are in doubt");
      }
      return Error::NotApplied(Code::kNotFound, "there is no " + shown);
  }
  __builtin_unreachable();
}

std::optional<PoolVolumeRecord> PoolVolumes::FindRow(const std::string& id) const {
  MutexLock lock(mu_);
  const auto row = volumes_.find(id);
  if (row == volumes_.end()) return std::nullopt;
  return row->second;
}

Result<PoolVolumeRecord> PoolVolumes::Find(const std::string& id) const {
  if (std::optional<PoolVolumeRecord> row = FindRow(id)) return *std::move(row);
  RETURN_IF_ERROR(WhyNotHere(id));
  return Error::NotApplied(Code::kAborted, "volume " + id + " is being made");
}

std::optional<PoolVolumeRecord> PoolVolumes::FindMovedFrom(const std::string& path) const {
  std::optional<PoolVolumeRecord> found;
  MutexLock lock(mu_);
  for (const auto& [id, record] : volumes_) {
    if (!IsTree(record.backend) || path.empty() || record.source != path) continue;
    found = record;
    if (record.state == PoolVolumeState::kMaking) break;
  }
  return found;
}

std::optional<PoolVolumeRecord> PoolVolumes::FindByName(const std::string& name) const {
  MutexLock lock(mu_);
  const auto id = names_.find(name);
  if (id == names_.end()) return std::nullopt;
  return volumes_.at(id->second);
}

int64_t PoolVolumes::CountOf(const std::string& pool) const {
  MutexLock lock(mu_);
  return std::count_if(volumes_.begin(), volumes_.end(), [&pool](const auto& row) {
    return row.second.pool == pool && IsListedToAll(row.second);
  });
}

PoolPage PoolVolumes::List(const std::string& after, size_t most) const {
  PoolPage page;
  MutexLock lock(mu_);
  for (auto row = volumes_.upper_bound(after); row != volumes_.end(); ++row) {
    if (!IsListedToAll(row->second)) continue;
    if (page.volumes.size() == most) {
      if (most > 0) page.next = page.volumes.back().id;
      break;
    }
    page.volumes.push_back(row->second);
  }
  return page;
}

std::vector<PoolVolumeRecord> PoolVolumes::All() const {
  std::vector<PoolVolumeRecord> all;
  MutexLock lock(mu_);
  all.reserve(volumes_.size());
  for (const auto& [id, record] : volumes_) all.push_back(record);
  return all;
}

std::vector<PoolVolumeRecord> PoolVolumes::InlineVolumes() const {
  std::vector<PoolVolumeRecord> found;
  MutexLock lock(mu_);
  for (const auto& [id, record] : volumes_) {
    if (!record.inline_use.empty()) found.push_back(record);
  }
  return found;
}

std::string PoolVolumes::DomainOf(const std::string& id) const {
  std::string name;
  if (const std::optional<PoolVolumeRecord> row = FindRow(id)) {
    if (row->backend == PoolBackendKind::kStatic) return row->source;
    if (row->backend == PoolBackendKind::kExport)
      return NfsFaultDomain(ServerOfExport(row->source));
    name = row->pool;
  }
  if (const std::optional<PoolCutRecord> row = FindCutRow(id)) name = row->pool;
  const Pool* const pool = PoolNamed(name);
  return pool == nullptr ? "" : pool->path();
}

std::string PoolVolumes::DomainFor(const StringMap& parameters) const {
  const Result<PoolParameters> parsed = ParsePoolParameters(parameters);
  const Pool* const pool = parsed.ok() ? PoolFor(*parsed) : nullptr;
  return pool == nullptr ? "" : pool->path();
}

Result<std::string> PoolVolumes::PlanId(const StringMap& parameters) const {
  ASSIGN_OR_RETURN(const PoolParameters parsed, ParsePoolParameters(parameters));
  ASSIGN_OR_RETURN(const Pool* pool, OpenPoolFor(parsed));
  return NewPoolId(PoolObject::kVolume, pool->tag()).ToString();
}

Result<PoolVolumes::Taken> PoolVolumes::Take(std::vector<std::string> keys) {
  MutexLock lock(mu_);
  for (const std::string& key : keys) {
    if (!taken_.contains(key)) continue;
    return Error::NotApplied(Code::kAborted, "another call has volume " + Quoted(key, kShownBytes));
  }
  taken_.insert(keys.begin(), keys.end());
  return Taken(*this, std::move(keys));
}

Result<PoolVolumes::Held> PoolVolumes::Hold(const std::string& id, const CallOptions& call) {
  return Hold(id, PoolNeed::kOpen, call);
}

Result<PoolVolumes::Held> PoolVolumes::Hold(const std::string& id, PoolNeed need,
                                            const CallOptions& call) {
  ASSIGN_OR_RETURN(const PoolVolumeRecord seen, Find(id));
  ASSIGN_OR_RETURN(Taken taken, Take({id, NameKey(seen.name)}));
  // It may have changed until it was taken.
  ASSIGN_OR_RETURN(PoolVolumeRecord record, Find(id));
  const Pool* const pool = PoolNamed(record.pool);
  if (pool == nullptr) {
    return PoolRefusal("the pool of volume " + id + ", " + record.pool +
                       ", is not configured any more");
  }
  if (need == PoolNeed::kOpen || pool->opened() == nullptr) RETURN_IF_ERROR(pool->state());
  ASSIGN_OR_RETURN(PoolBackend* const backend, FindBackend(*pool, record.backend));
  Result<PoolParameters> parameters = ParsePoolParameters(record.parameters);
  // A later program has made it in a way that this one does not know.
  if (!parameters.ok()) return PoolRefusal("volume " + id + ": " + parameters.error().message());
  return Held{std::move(taken), std::move(record), *std::move(parameters), backend,
              InPool(call, *pool, id)};
}

Result<PoolVolumes::Held> PoolVolumes::HoldThere(const std::string& id, const CallOptions& call) {
  ASSIGN_OR_RETURN(Held held, Hold(id, call));
  RETURN_IF_ERROR(PoolNamed(held.record.pool)->CheckThere(held.call));
  return held;
}

Result<PoolVolumes::Held> PoolVolumes::HoldToClose(const std::string& id, const CallOptions& call) {
  ASSIGN_OR_RETURN(Held held, Hold(id, PoolNeed::kOpenOnce, call));
  RETURN_IF_ERROR(CheckClosable(*PoolNamed(held.record.pool), held.call));
  return held;
}

// Another directory at the path is not asked: what is open of the pool's is not found by it.
Status PoolVolumes::CheckClosable(const Pool& pool, const CallOptions& call) {
  const Status there = pool.CheckThere(call);
  const bool has_failed = !there.ok() && SaysFilesystemFailed(there.error());
  return has_failed ? OkStatus() : there;
}

}  // namespace volumed
