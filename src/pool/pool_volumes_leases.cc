// Which node has a volume, or was promised it, for whoever orders nodes.
#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "pool/pool_volumes_parts.h"

namespace volumed {
namespace {

// What a call that gives the node a volume has; an id has no slash.
std::string LeaseKey(const std::string& node, const std::string& id) {
  return "lease/" + node + "/" + id;
}

bool IsLeaseKeyOf(const std::string& node, const std::string& key) {
  const std::optional<std::string_view> id = StripPrefix(key, LeaseKey(node, ""));
  return id && id->find('/') == std::string_view::npos;
}

bool HasLeaseOf(const PoolVolumeRecord& record, const std::string& node) {
  return std::any_of(record.leases.begin(), record.leases.end(),
                     [&node](const PoolLease& lease) { return lease.node == node; });
}

// The lease that the volume is to have, after the one of the same node that it has, if any.
// Errors: as TakeLease().
Result<PoolLease> LeaseAfter(const PoolVolumeRecord& record, const PoolLease& wanted) {
  for (const PoolLease& there : record.leases) {
    if (there.node != wanted.node) continue;
    if (wanted.by_stage && !there.by_stage) return there;
    if (there.read_only == wanted.read_only && there.access_mode == wanted.access_mode) {
      return wanted;
    }
    return Error::NotApplied(Code::kAlreadyExists,
                             "the node has volume " + record.id +
                                 " already, with another access mode or another readonly");
  }
  for (const PoolLease& there : record.leases) {
    const std::string why_not = WhyNotBeside(there, wanted);
    if (!why_not.empty()) return PoolRefusal("volume " + record.id + ": " + why_not);
  }
  return wanted;
}

}  // namespace

// Whoever has kept a place counts as if he had the lease, so that two of them do not get the last
// one.
Result<PoolVolumes::Taken> PoolVolumes::TakeLeasePlace(const std::string& id,
                                                       const std::string& node,
                                                       int64_t node_limit) {
  MutexLock lock(mu_);
  const auto begun = std::count_if(taken_.begin(), taken_.end(), [&node](const std::string& key) {
    return IsLeaseKeyOf(node, key);
  });
  const auto had = std::count_if(volumes_.begin(), volumes_.end(), [&](const auto& row) {
    return HasLeaseOf(row.second, node) && !taken_.contains(LeaseKey(node, row.first));
  });
  if (node_limit > 0 && begun + had >= node_limit) {
    return Error::NotApplied(
        Code::kResourceExhausted,
        "the node has " + std::to_string(begun + had) + " volumes, and gets no more");
  }
  taken_.insert(LeaseKey(node, id));
  return Taken(*this, {LeaseKey(node, id)});
}

Status PoolVolumes::TakeLease(const std::string& id, const PoolLease& lease, int64_t node_limit) {
  ASSIGN_OR_RETURN(Held held, Hold(id, {}));
  PoolVolumeRecord& record = held.record;
  RETURN_IF_ERROR(CheckUsable(record));
  ASSIGN_OR_RETURN(const PoolLease after, LeaseAfter(record, lease));
  for (PoolLease& there : record.leases) {
    if (there.node != after.node) continue;
    if (there == after) return OkStatus();
    there = after;
    return Write(record);
  }
  ASSIGN_OR_RETURN(const Taken place, TakeLeasePlace(id, lease.node, node_limit));
  record.leases.push_back(after);
  return Write(record);
}

Status PoolVolumes::EndLease(const std::string& id, const std::string& node, bool by_stage) {
  Result<Held> held = Hold(id, {});
  if (!held.ok() && held.error().code() == Code::kNotFound) return OkStatus();
  if (!held.ok()) return held.error();
  const auto ended = std::erase_if(held->record.leases, [&](const PoolLease& lease) {
    return lease.by_stage == by_stage && (node.empty() || lease.node == node);
  });
  return ended == 0 ? OkStatus() : Write(held->record);
}

}  // namespace volumed
