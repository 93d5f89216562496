// Snapshots and groups of them, as random clients make and delete them.
#include <algorithm>
#include <utility>

#include "integration/csi/random/random_client.h"

namespace volumed::random_clients {
namespace {

using ::csi::v1::Controller;
using ::csi::v1::GroupController;

ToldSnapshot ToldOf(const ::csi::v1::Snapshot& snapshot) {
  return {snapshot.snapshot_id(), snapshot.source_volume_id(), snapshot.group_snapshot_id()};
}

}  // namespace

// One of which it is known what it has, as what is made of it is held against that. Null: the slots
// that were looked at have none.
SharedVolume Client::VolumeWithContent() {
  constexpr int kLooks = 4;
  for (int look = 0; look < kLooks; ++look) {
    SharedVolume volume = world_.VolumeAt(Dice(world_.volume_slots())).volume;
    if (volume && volume->history->knows_base()) return volume;
  }
  return nullptr;
}

// Null: there is nothing to be cut.
SharedSnapshotPlan Client::FreshSnapshotPlan(bool is_group) {
  SnapshotPlan plan;
  plan.name = Name(is_group ? "group" : "snapshot");
  plan.is_group = is_group;
  const size_t members = is_group ? 2 + Dice(2) : 1;
  while (plan.of.size() < members) {
    const SharedVolume volume = VolumeWithContent();
    const bool is_there = std::find(plan.of.begin(), plan.of.end(), volume) != plan.of.end();
    if (!volume || is_there) break;
    plan.of.push_back(volume);
    plan.least.push_back(volume->history->acknowledged());
  }
  return plan.of.empty() ? nullptr : std::make_shared<const SnapshotPlan>(plan);
}

void Client::ActOnSnapshots() {
  const size_t slot = Dice(world_.snapshot_slots());
  const SnapshotSlot there = world_.SnapshotAt(slot);
  const size_t draw = Dice(10);
  if (draw < 2) return ListSnapshots();
  if (draw < 5 && !there.made.empty()) {
    // A member of a group alone does not go.
    const bool is_part = !there.made.front()->group.empty() && OneIn(4);
    if (!is_part) return (void)DeleteSnapshots(slot, there.made);
    return DeleteMember(*there.made.front());
  }
  const SharedSnapshotPlan plan =
      world_.PlanSnapshot(slot, FreshSnapshotPlan(world_.IsGroupSlot(slot)));
  if (!plan) return;
  if (plan->is_group) return Group(slot, plan);
  Snapshot(slot, plan);
}

// ---- making -------------------------------------------------------------------------------------

// `note` watches, in their order, the volumes and then what the slot had made before.
void Client::HoldSnapshotMade(const std::string& rpc, size_t slot, const SharedSnapshotPlan& plan,
                              const grpc::Status& status, const CallNote& note,
                              const std::vector<ToldSnapshot>& told, const SnapshotSlot& before) {
  Hold(rpc, plan->name, status, {Code::NOT_FOUND, Code::FAILED_PRECONDITION});
  if (!status.ok()) {
    bool are_there = true;
    for (size_t i = 0; i < plan->of.size(); ++i) {
      are_there = are_there && note.Stayed(i, CsiState::kThere);
    }
    if (status.error_code() == Code::NOT_FOUND && are_there) {
      Violate(rpc + " of " + plan->name + " does not find its volume: " + status.error_message());
    }
    if (EndOf(status) == CsiEnd::kRefused && status.error_code() != Code::ABORTED) {
      world_.GiveUp(slot, plan);
    }
    return;
  }
  for (size_t i = 0; before.plan == plan && i < before.made.size(); ++i) {
    const bool is_same = std::any_of(told.begin(), told.end(), [&](const ToldSnapshot& one) {
      return one.id == before.made[i]->id;
    });
    if (!is_same && note.Stayed(plan->of.size() + i, CsiState::kThere)) {
      Violate(rpc + " of " + plan->name + " answered another one than " + before.made[i]->id +
              ", which is there");
    }
  }
  world_.MadeSnapshots(slot, plan, told, note.begun());
}

void Client::Snapshot(size_t slot, const SharedSnapshotPlan& plan) {
  const SnapshotSlot before = world_.SnapshotAt(slot);
  ::csi::v1::CreateSnapshotRequest request;
  request.set_name(plan->name);
  request.set_source_volume_id(plan->of.front()->id);
  CallNote note(world_);
  (void)note.Watch(plan->of.front()->exists);
  for (const SharedSnapshot& made : before.made) (void)note.Watch(made->exists);
  note.Begin();
  ::csi::v1::CreateSnapshotResponse response;
  const grpc::Status status =
      Send<Controller>(&Controller::Stub::CreateSnapshot, request, &response);
  note.End(status);
  world_.NoteMaking(&World::Doubts::snapshots, request, status);
  HoldSnapshotMade("CreateSnapshot", slot, plan, status, note, {ToldOf(response.snapshot())},
                   before);
}

void Client::Group(size_t slot, const SharedSnapshotPlan& plan) {
  const SnapshotSlot before = world_.SnapshotAt(slot);
  ::csi::v1::CreateVolumeGroupSnapshotRequest request;
  request.set_name(plan->name);
  CallNote note(world_);
  for (const SharedVolume& volume : plan->of) {
    request.add_source_volume_ids(volume->id);
    (void)note.Watch(volume->exists);
  }
  for (const SharedSnapshot& made : before.made) (void)note.Watch(made->exists);
  note.Begin();
  ::csi::v1::CreateVolumeGroupSnapshotResponse response;
  const grpc::Status status =
      Send<GroupController>(&GroupController::Stub::CreateVolumeGroupSnapshot, request, &response);
  note.End(status);
  world_.NoteMaking(&World::Doubts::groups, request, status);
  std::vector<ToldSnapshot> told;
  for (const auto& snapshot : response.group_snapshot().snapshots()) {
    told.push_back(ToldOf(snapshot));
    if (told.back().group != response.group_snapshot().group_snapshot_id()) {
      Violate("snapshot " + told.back().id + " is told to be of another group");
    }
  }
  HoldSnapshotMade("CreateVolumeGroupSnapshot", slot, plan, status, note, told, before);
}

// ---- deleting -----------------------------------------------------------------------------------

grpc::Status Client::DeleteOne(const SnapshotTruth& snapshot) {
  ::csi::v1::DeleteSnapshotRequest request;
  request.set_snapshot_id(snapshot.id);
  ::csi::v1::DeleteSnapshotResponse response;
  const grpc::Status status =
      Send<Controller>(&Controller::Stub::DeleteSnapshot, request, &response);
  if (snapshot.group.empty()) {
    Hold("DeleteSnapshot", snapshot.id, status, {Code::FAILED_PRECONDITION});
  } else {
    Hold("DeleteSnapshot of a member", snapshot.id, status,
         {Code::FAILED_PRECONDITION, Code::INVALID_ARGUMENT});
  }
  return status;
}

// One that went with its group meanwhile is success, as one that never was is.
void Client::DeleteMember(const SnapshotTruth& snapshot) {
  CallNote note(world_);
  const size_t it = note.Watch(snapshot.exists);
  note.Begin();
  const grpc::Status status = DeleteOne(snapshot);
  note.End(status);
  if (status.ok() && note.Stayed(it, CsiState::kThere)) {
    Violate("a member of group " + snapshot.group + " was deleted");
  }
}

grpc::Status Client::DeleteGroup(const std::vector<SharedSnapshot>& members) {
  ::csi::v1::DeleteVolumeGroupSnapshotRequest request;
  request.set_group_snapshot_id(members.front()->group);
  for (const SharedSnapshot& member : members) request.add_snapshot_ids(member->id);
  ::csi::v1::DeleteVolumeGroupSnapshotResponse response;
  const grpc::Status status =
      Send<GroupController>(&GroupController::Stub::DeleteVolumeGroupSnapshot, request, &response);
  Hold("DeleteVolumeGroupSnapshot", members.front()->group, status, {Code::FAILED_PRECONDITION});
  return status;
}

grpc::Status Client::DeleteSnapshots(size_t slot, const std::vector<SharedSnapshot>& snapshots) {
  CallNote note(world_);
  for (const SharedSnapshot& snapshot : snapshots) note.Ends(snapshot->exists);
  note.Begin();
  const grpc::Status status =
      snapshots.front()->group.empty() ? DeleteOne(*snapshots.front()) : DeleteGroup(snapshots);
  note.End(status);
  if (status.ok()) world_.Gone(slot, snapshots);
  return status;
}

}  // namespace volumed::random_clients
