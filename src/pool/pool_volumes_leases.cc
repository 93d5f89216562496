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

// The volume that the key is about; nullopt: it is not about this node.
std::optional<std::string> VolumeOfLeaseKey(const std::string& node, const std::string& key) {
  const std::optional<std::string_view> id = StripPrefix(key, LeaseKey(node, ""));
  if (!id || id->find('/') != std::string_view::npos) return std::nullopt;
  return std::string(*id);
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
    PoolLease after = wanted.by_stage && !there.by_stage ? there : wanted;
    if (!after.by_stage) after.is_staged = wanted.by_stage || there.by_stage || there.is_staged;
    if (there.read_only == after.read_only && there.access_mode == after.access_mode) return after;
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

// What is left of the lease once the one or the other gives it back. As long as the node has the
// volume staged, no other node gets it, whatever a controller says.
std::optional<PoolLease> LeaseWithout(PoolLease lease, bool by_stage) {
  if (by_stage) {
    if (lease.by_stage) return std::nullopt;
    lease.is_staged = false;
    return lease;
  }
  if (!lease.by_stage && !lease.is_staged) return std::nullopt;
  lease.by_stage = true;
  lease.is_staged = false;
  return lease;
}

}  // namespace

// Whoever has kept a place counts as if he had the lease, so that two of them do not get the last
// one.
Result<PoolVolumes::Taken> PoolVolumes::TakeLeasePlace(const std::string& id,
                                                       const std::string& node,
                                                       int64_t node_limit) {
  MutexLock lock(mu_);
  int64_t count = tally_.LeasesOf(node);
  for (const std::string& key : taken_) {
    const std::optional<std::string> of = VolumeOfLeaseKey(node, key);
    if (!of) continue;
    const auto row = volumes_.find(*of);
    if (row == volumes_.end() || !HasLeaseOf(row->second, node)) ++count;
  }
  if (node_limit > 0 && count >= node_limit) {
    return Error::NotApplied(Code::kResourceExhausted,
                             "the node has " + std::to_string(count) +
                                 " volumes, and gets no more: csi-max-volumes is " +
                                 std::to_string(node_limit));
  }
  taken_.insert(LeaseKey(node, id));
  return Taken(*this, {LeaseKey(node, id)});
}

Status PoolVolumes::TakeLease(const std::string& id, const PoolLease& lease, int64_t node_limit) {
  ASSIGN_OR_RETURN(Held held, Hold(id, {}));
  PoolVolumeRecord& record = held.record;
  RETURN_IF_ERROR(CheckUsable(record));
  // This node had another name then: nobody else stages by these records.
  if (lease.by_stage) {
    std::erase_if(record.leases, [&lease](const PoolLease& there) {
      return there.by_stage && there.node != lease.node;
    });
  }
  ASSIGN_OR_RETURN(const PoolLease after, LeaseAfter(record, lease));
  const Durability durability = lease.by_stage ? Durability::kProcess : kPoolRecordDurability;
  for (PoolLease& there : record.leases) {
    if (there.node != after.node) continue;
    if (there == after) return OkStatus();
    there = after;
    return Write(record, durability);
  }
  ASSIGN_OR_RETURN(const Taken place, TakeLeasePlace(id, lease.node, node_limit));
  record.leases.push_back(after);
  return Write(record, durability);
}

Status PoolVolumes::EndLease(const std::string& id, const std::string& node, bool by_stage) {
  // The lease is lost with the row, and what the node has unstaged it does not have any more.
  if (by_stage && IsLost(id)) return OkStatus();
  Result<Held> held = Hold(id, {});
  if (!held.ok() && held.error().code() == Code::kNotFound) return OkStatus();
  if (!held.ok()) return held.error();
  std::vector<PoolLease> left;
  for (const PoolLease& lease : held->record.leases) {
    const bool is_meant = node.empty() || lease.node == node;
    const std::optional<PoolLease> after = is_meant ? LeaseWithout(lease, by_stage) : lease;
    if (after) left.push_back(*after);
  }
  if (left == held->record.leases) return OkStatus();
  held->record.leases = std::move(left);
  return Write(held->record);
}

}  // namespace volumed
