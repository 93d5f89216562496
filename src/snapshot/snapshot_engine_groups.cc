// SnapshotEngine: groups of snapshots, which have one point in time or none.
#include <algorithm>
#include <utility>

#include "pool/pool_id.h"
#include "snapshot/snapshot_engine.h"
#include "snapshot/snapshot_operations.h"
#include "snapshot/snapshot_refusals.h"

namespace volumed {
namespace {

// Errors, not applied: InvalidArgument, unless each volume is named once.
Result<std::vector<std::string>> SortedVolumes(std::vector<std::string> volumes) {
  std::sort(volumes.begin(), volumes.end());
  const auto twice = std::adjacent_find(volumes.begin(), volumes.end());
  if (volumes.empty()) {
    return Error::NotApplied(Code::kInvalidArgument, "a group needs a volume");
  }
  if (twice != volumes.end()) {
    return Error::NotApplied(Code::kInvalidArgument, "volume " + *twice + " is named twice");
  }
  return volumes;
}

bool IsOnItsWayOut(SnapshotPhase phase) {
  return phase == SnapshotPhase::kCancelling || phase == SnapshotPhase::kCancelled ||
         phase == SnapshotPhase::kDeleting;
}

Status CheckNamesMembers(const SnapshotGroupRecord& group, std::vector<std::string> named) {
  if (named.empty()) return OkStatus();
  std::vector<std::string> members = group.snapshots;
  std::sort(named.begin(), named.end());
  std::sort(members.begin(), members.end());
  if (named == members) return OkStatus();
  return Error::NotApplied(Code::kInvalidArgument,
                           "the snapshots that are named are not those of group " + group.id);
}

// A group without a row may be one whose row is lost: with those of its snapshots, then. Errors,
// not applied: FailedPrecondition for that, and for a group of another pool; Unavailable, if it is
// not known yet.
Status CheckNoSuchGroup(const PoolVolumes& volumes, const std::string& id) {
  const std::optional<PoolId> group = ParsePoolId(id);
  if (!group || group->object != PoolObject::kGroup) return OkStatus();
  // What a snapshot of the same number would be told is so of the group.
  PoolId as_cut = *group;
  as_cut.object = PoolObject::kCut;
  const Result<PoolCutRecord> same = volumes.FindCut(as_cut.ToString());
  if (!same.ok() && same.error().code() != Code::kNotFound) {
    return same.error().With("group " + id);
  }
  for (const std::string& cut : volumes.Cuts()) {
    const std::optional<PoolId> other = ParsePoolId(cut);
    if (!other || other->pool_tag != group->pool_tag) continue;
    const Result<PoolCutRecord> row = volumes.FindCut(cut);
    if (row.ok() || row.error().code() != Code::kFailedPrecondition) continue;
    return row.error().With("group " + id + " has no record, and may have had this snapshot");
  }
  return OkStatus();
}

}  // namespace

std::optional<SnapshotGroupView> SnapshotEngine::ViewOf(const SnapshotGroupRecord& group) const {
  if (group.deleting) return std::nullopt;
  SnapshotGroupView view{group, {}};
  for (const std::string& id : group.snapshots) {
    const auto found = snapshots_.find(id);
    if (found == snapshots_.end()) return std::nullopt;
    const SnapshotPhase phase = found->second.phase;
    if (!IsCut(phase) && phase != SnapshotPhase::kFailed) return std::nullopt;
    view.snapshots.push_back(found->second);
  }
  return view;
}

Result<SnapshotGroupView> SnapshotEngine::FindGroup(
    const std::string& id, const std::vector<std::string>& snapshots) const {
  std::optional<SnapshotGroupView> view;
  bool is_deleting = false;
  {
    const MutexLock lock(mu_);
    const auto group = groups_.find(id);
    if (group != groups_.end()) {
      view = ViewOf(group->second);
      is_deleting = group->second.deleting;
    }
  }
  // It may stay yet.
  if (is_deleting) return Error::NotApplied(Code::kAborted, "group " + id + " is being deleted");
  if (!view) {
    RETURN_IF_ERROR(CheckNoSuchGroup(parts_.volumes, id));
    return Error::NotApplied(Code::kNotFound, "there is no such group of snapshots");
  }
  RETURN_IF_ERROR(CheckNamesMembers(view->group, snapshots));
  return *std::move(view);
}

void SnapshotEngine::CreateGroup(const GroupWish& asked, GroupMade done) {
  if (const Status may = CheckStarted(); !may.ok()) return done(may.error());
  const Result<std::vector<std::string>> volumes = SortedVolumes(asked.volumes);
  if (!volumes.ok()) return done(volumes.error());
  GroupWish wish = asked;
  wish.volumes = *volumes;
  std::optional<SnapshotGroupRecord> there;
  {
    const MutexLock lock(mu_);
    const auto named = group_names_.find(wish.name);
    if (named != group_names_.end()) there = groups_.at(named->second);
  }
  if (there) return CreateGroupAgain(*there, wish, std::move(done));
  BeginGroup(wish, done);
}

void SnapshotEngine::CreateGroupAgain(const SnapshotGroupRecord& there, const GroupWish& wish,
                                      GroupMade done) {
  const std::string what = "group " + there.id + " of this name ";
  if (there.volumes != wish.volumes || there.parameters != wish.parameters) {
    return done(Error::NotApplied(Code::kAlreadyExists,
                                  what + "is one of other volumes, or was asked for otherwise"));
  }
  std::optional<SnapshotGroupView> view;
  {
    const MutexLock lock(mu_);
    view = ViewOf(there);
  }
  if (!view || IsBusy(there.id)) {
    if (there.deleting) GoOnWithGroup(there.id);
    return done(SnapshotIsBusy(what + "is being made, or taken away"));
  }
  bool has_failed = false;
  for (const SnapshotRecord& member : view->snapshots) {
    if (member.phase != SnapshotPhase::kFailed) continue;
    has_failed = true;
    if (member.error_told) continue;
    return TellError(member, [done = std::move(done)](const Status& why) { done(why.error()); });
  }
  if (!has_failed) return done(*view);
  DeleteGroup(there.id, {}, [this, wish, done = std::move(done)](const Status& gone) {
    if (!gone.ok()) return done(gone.error());
    BeginGroup(wish, done);
  });
}

void SnapshotEngine::BeginGroup(const GroupWish& wish, const GroupMade& done) {
  Result<Cutting> cutting = PlanCut(wish.volumes);
  if (!cutting.ok()) return done(cutting.error());
  SnapshotGroupRecord group;
  const std::optional<PoolId> first = ParsePoolId(cutting->members.front().id);
  group.id = NewPoolId(PoolObject::kGroup, first.value().pool_tag).ToString();
  group.name = wish.name;
  group.volumes = wish.volumes;
  group.parameters = wish.parameters;
  group.started_unix_ms = Now();
  for (SnapshotRecord& member : cutting->members) {
    member.group = group.id;
    member.name = "group/" + group.id + "/" + member.volume;
    group.snapshots.push_back(member.id);
  }
  cutting->group = group;
  Begin(*cutting, [this, id = group.id, done](const Status& cut) {
    if (!cut.ok()) return done(cut.error());
    done(FindGroup(id, {}));
  });
}

void SnapshotEngine::MarkGroup(const std::string& id) {
  SnapshotGroupRecord& group = groups_.at(id);
  group.deleting = true;
  for (const std::string& member : group.snapshots) {
    const auto found = snapshots_.find(member);
    if (found != snapshots_.end()) found->second.delete_asked = true;
  }
}

Status SnapshotEngine::AskGroupDeletion(const SnapshotGroupRecord& group) {
  const MutexLock lock(mu_);
  for (const std::string& member : group.snapshots) RETURN_IF_ERROR(CheckNotHeld(member));
  if (groups_.contains(group.id)) MarkGroup(group.id);
  return OkStatus();
}

void SnapshotEngine::DeleteGroup(const std::string& id, const std::vector<std::string>& snapshots,
                                 Done done) {
  if (const Status may = CheckStarted(); !may.ok()) return done(may);
  const std::optional<SnapshotGroupRecord> group = GroupRow(id);
  if (!group) return done(CheckNoSuchGroup(parts_.volumes, id));
  Status asked = CheckNamesMembers(*group, snapshots);
  if (asked.ok()) asked = AskGroupDeletion(*group);
  if (!asked.ok()) return done(asked);
  waiting_[id].push_back(std::move(done));
  for (const std::string& member : group->snapshots) StopWork(member);
  parts_.operations.ResetBackoff(OperationKey(UniqueVolumeName("discard/" + id)));
  GoOnWithGroup(id);
}

// While something runs on a member it comes back here once that has ended.
void SnapshotEngine::GoOnWithGroup(const std::string& id) {
  const std::optional<SnapshotGroupRecord> group = GroupRow(id);
  if (!group) return TellWaiting(id, OkStatus());
  std::vector<std::string> taken = group->snapshots;
  taken.push_back(id);
  if (!group->deleting || !Take(taken)) return;
  DiscardCut operation(parts_.volumes, id, group->snapshots.front(),
                       [this, id](const CallOptions& call) { return TakeGroupAway(id, call); });
  const OperationKey key = operation.key();
  const auto ended = [this, id, key, taken,
                      watch = alive_.watch()](const OperationOutcome<Unit>& got) {
    if (!watch.alive()) return;
    GiveBack(taken);
    TellWaiting(id, got.failure ? Status(got.failure->error) : OkStatus());
    if (!got.failure) return;
    const std::optional<SnapshotGroupRecord> left = GroupRow(id);
    if (!left || left->deleting) return GoOnWhenDue(key, id);
    // It stays, and what was stopped of its members goes on.
    for (const std::string& member : left->snapshots) GoOn(member);
  };
  if (parts_.operations.Start(std::move(operation), ended) == StartResult::kStarted) return;
  GiveBack(taken);
  GoOnWhenDue(key, id);
}

// Once one of them goes all of them do. One that has failed, or is still copied, goes no more than
// one that is ready.
Status SnapshotEngine::CheckNobodyHasAny(const SnapshotGroupRecord& group,
                                         const CallOptions& call) {
  Status free;
  for (const std::string& member : group.snapshots) {
    const std::optional<SnapshotRecord> row = Row(member);
    if (!row || IsOnItsWayOut(row->phase)) return OkStatus();
    if (free.ok()) free = parts_.volumes.PrepareDiscard(member, call);
  }
  if (free.ok() || free.error().code() != Code::kFailedPrecondition) return free;
  SnapshotGroupRecord stays = group;
  stays.deleting = false;
  // An agent before this one may have put on record that it goes.
  RETURN_IF_ERROR(Save(AskDeletionNoMore(group.snapshots), stays));
  return free;
}

Status SnapshotEngine::TakeGroupAway(const std::string& id, const CallOptions& call) {
  const std::optional<SnapshotGroupRecord> group = GroupRow(id);
  if (!group) return OkStatus();
  RETURN_IF_ERROR(CheckNobodyHasAny(*group, call));
  RETURN_IF_ERROR(Save({}, group));
  for (const std::string& member : group->snapshots) RETURN_IF_ERROR(TakeAway(member, call));
  return RemoveGroup(id);
}

}  // namespace volumed
