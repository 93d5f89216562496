#include "csidriver/group_rpcs.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csidriver/csi_snapshot_wish.h"

namespace volumed {
namespace {

using ::csi::v1::CreateVolumeGroupSnapshotRequest;
using ::csi::v1::CreateVolumeGroupSnapshotResponse;
using ::csi::v1::DeleteVolumeGroupSnapshotRequest;
using ::csi::v1::DeleteVolumeGroupSnapshotResponse;
using ::csi::v1::GetVolumeGroupSnapshotRequest;
using ::csi::v1::GetVolumeGroupSnapshotResponse;

using CreateGroupRpc = CsiRpc<CreateVolumeGroupSnapshotRequest, CreateVolumeGroupSnapshotResponse>;
using DeleteGroupRpc = CsiRpc<DeleteVolumeGroupSnapshotRequest, DeleteVolumeGroupSnapshotResponse>;
using GetGroupRpc = CsiRpc<GetVolumeGroupSnapshotRequest, GetVolumeGroupSnapshotResponse>;

using SharedGroupParts = std::shared_ptr<const SnapshotRpcParts>;

template <typename Request>
std::vector<std::string> MembersIn(const Request& request) {
  return {request.snapshot_ids().begin(), request.snapshot_ids().end()};
}

void CreateGroup(const SharedGroupParts& shared, const CreateGroupRpc& rpc) {
  const Result<SnapshotEngine::GroupWish> wish = ParseCsiGroupWish(rpc.request());
  if (!wish.ok()) return rpc.Finish(wish.error());
  shared->snapshots.CreateGroup(*wish, [shared, rpc](const Result<SnapshotGroupView>& made) {
    if (!made.ok()) return rpc.Finish(made.error());
    *rpc.response().mutable_group_snapshot() = CsiGroupOf(*made, shared->told_places);
    rpc.Finish(OkStatus());
  });
}

void DeleteGroup(const SharedGroupParts& shared, const DeleteGroupRpc& rpc) {
  const auto group =
      shared->snapshots.FindGroup(rpc.request().group_snapshot_id(), MembersIn(rpc.request()));
  if (group.ok()) {
    for (const SnapshotRecord& member : group->snapshots) {
      if (const Status may = shared->check_not_had(member.id); !may.ok()) return rpc.Finish(may);
    }
  }
  shared->snapshots.DeleteGroup(rpc.request().group_snapshot_id(), MembersIn(rpc.request()),
                                [rpc](const Status& deleted) { rpc.Finish(deleted); });
}

// The group that a caller can name. Errors, not applied: those of SnapshotEngine::FindGroup;
// Aborted while it is made or deleted; its member's own, if one has failed.
Result<SnapshotGroupView> FindToldGroup(const SnapshotRpcParts& parts,
                                        const GetVolumeGroupSnapshotRequest& request) {
  const std::string& id = request.group_snapshot_id();
  ASSIGN_OR_RETURN(SnapshotGroupView view, parts.snapshots.FindGroup(id, MembersIn(request)));
  for (const SnapshotRecord& member : view.snapshots) {
    if (member.phase != SnapshotPhase::kFailed) continue;
    return Error::NotApplied(static_cast<Code>(member.error_code),
                             "snapshot " + member.id + " of group " + id + ": " + member.error);
  }
  const bool are_cut =
      std::all_of(view.snapshots.begin(), view.snapshots.end(),
                  [](const SnapshotRecord& member) { return IsCut(member.phase); });
  if (are_cut && !view.group.deleting) return view;
  return Error::NotApplied(
      Code::kAborted, "group " + id + " is being " + (view.group.deleting ? "deleted" : "made"));
}

void GetGroup(const SharedGroupParts& shared, const GetGroupRpc& rpc) {
  const Result<SnapshotGroupView> found = FindToldGroup(*shared, rpc.request());
  if (!found.ok()) return rpc.Finish(found.error());
  *rpc.response().mutable_group_snapshot() = CsiGroupOf(*found, shared->told_places);
  rpc.Finish(OkStatus());
}

}  // namespace

void AddGroupRpcs(CsiHandlers& handlers, const SnapshotRpcParts& parts) {
  const auto shared = std::make_shared<const SnapshotRpcParts>(parts);
  handlers.Add<CreateVolumeGroupSnapshotRequest, CreateVolumeGroupSnapshotResponse>(
      [shared](const CreateGroupRpc& rpc) { CreateGroup(shared, rpc); });
  handlers.Add<DeleteVolumeGroupSnapshotRequest, DeleteVolumeGroupSnapshotResponse>(
      [shared](const DeleteGroupRpc& rpc) { DeleteGroup(shared, rpc); });
  handlers.Add<GetVolumeGroupSnapshotRequest, GetVolumeGroupSnapshotResponse>(
      [shared](const GetGroupRpc& rpc) { GetGroup(shared, rpc); });
}

}  // namespace volumed
