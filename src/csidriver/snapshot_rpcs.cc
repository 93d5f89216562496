#include "csidriver/snapshot_rpcs.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csidriver/csi_page_token.h"
#include "csidriver/csi_snapshot_wish.h"

namespace volumed {
namespace {

using ::csi::v1::CreateSnapshotRequest;
using ::csi::v1::CreateSnapshotResponse;
using ::csi::v1::DeleteSnapshotRequest;
using ::csi::v1::DeleteSnapshotResponse;
using ::csi::v1::GetSnapshotRequest;
using ::csi::v1::GetSnapshotResponse;
using ::csi::v1::ListSnapshotsRequest;
using ::csi::v1::ListSnapshotsResponse;

using CreateSnapshotRpc = CsiRpc<CreateSnapshotRequest, CreateSnapshotResponse>;
using DeleteSnapshotRpc = CsiRpc<DeleteSnapshotRequest, DeleteSnapshotResponse>;
using GetSnapshotRpc = CsiRpc<GetSnapshotRequest, GetSnapshotResponse>;
using ListSnapshotsRpc = CsiRpc<ListSnapshotsRequest, ListSnapshotsResponse>;

using SharedSnapshotParts = std::shared_ptr<const SnapshotRpcParts>;

// An answer has at most so many snapshots, whatever is asked for, as of volumes (controller_lists).
constexpr int32_t kMostSnapshotsOfPage = 1000;

void CreateOne(const SharedSnapshotParts& shared, const CreateSnapshotRpc& rpc) {
  const Result<SnapshotWish> wish = ParseCsiSnapshotWish(rpc.request(), shared->places);
  if (!wish.ok()) return rpc.Finish(wish.error());
  shared->snapshots.Create(*wish, [shared, rpc](const Result<SnapshotRecord>& made) {
    if (!made.ok()) return rpc.Finish(made.error());
    *rpc.response().mutable_snapshot() = CsiSnapshotOf(*made, shared->told_places);
    rpc.Finish(OkStatus());
  });
}

void DeleteOne(const SharedSnapshotParts& shared, const DeleteSnapshotRpc& rpc) {
  if (const Status may = shared->check_not_had(rpc.request().snapshot_id()); !may.ok()) {
    return rpc.Finish(may);
  }
  shared->snapshots.Delete(rpc.request().snapshot_id(),
                           [rpc](const Status& deleted) { rpc.Finish(deleted); });
}

// The snapshot that a caller can name. Errors, not applied: those of the engine's WhyNotFound();
// NotFound of one that has no point in time; Aborted while it is taken away; its own, if it has
// failed.
Result<SnapshotRecord> FindTold(const SnapshotRpcParts& parts, const std::string& id) {
  std::optional<SnapshotRecord> found = parts.snapshots.Find(id);
  if (!found) return parts.snapshots.WhyNotFound(id);
  if (IsCut(found->phase)) return *std::move(found);
  if (found->cut_unix_ms == 0 || found->phase == SnapshotPhase::kCancelled) {
    return Error::NotApplied(Code::kNotFound, "snapshot " + id + " has not been cut");
  }
  if (found->phase == SnapshotPhase::kFailed) {
    return Error::NotApplied(static_cast<Code>(found->error_code), found->error);
  }
  return Error::NotApplied(
      Code::kAborted, "snapshot " + id + " is " + std::string(SnapshotPhaseName(found->phase)));
}

void GetOne(const SharedSnapshotParts& shared, const GetSnapshotRpc& rpc) {
  const Result<SnapshotRecord> found = FindTold(*shared, rpc.request().snapshot_id());
  if (!found.ok()) return rpc.Finish(found.error());
  *rpc.response().mutable_snapshot() = CsiSnapshotOf(*found, shared->told_places);
  rpc.Finish(OkStatus());
}

// What the filters name may be of a pool that another node has. Then it is not known whether there
// is such a snapshot, and an empty list would say that there is none.
Status CheckFilters(const SnapshotRpcParts& parts, const ListSnapshotsRequest& request) {
  const std::string& id = request.snapshot_id();
  if (!id.empty() && !parts.snapshots.Find(id)) {
    const Result<PoolCutRecord> cut = parts.volumes.FindCut(id);
    if (!cut.ok() && cut.error().code() != Code::kNotFound) return cut.error();
  }
  const std::string& volume = request.source_volume_id();
  if (volume.empty() || parts.volumes.MeaningOf(volume) != PoolIdMeaning::kOfAnotherPool) {
    return OkStatus();
  }
  return parts.volumes.Find(volume).error();
}

void ListAll(const SharedSnapshotParts& shared, const ListSnapshotsRpc& rpc) {
  const ListSnapshotsRequest& request = rpc.request();
  Result<std::string> after = ParseCsiPageToken(request.starting_token(), PoolObject::kCut);
  if (!after.ok()) return rpc.Finish(after.error());
  const Status here = CheckFilters(*shared, request);
  if (!here.ok()) return rpc.Finish(here);
  const int32_t asked = request.max_entries();
  const auto most = static_cast<size_t>(asked == 0 ? kMostSnapshotsOfPage
                                                   : std::min(asked, kMostSnapshotsOfPage));
  // One more than is told says whether there are more.
  std::vector<SnapshotRecord> page = shared->snapshots.List({.id = request.snapshot_id(),
                                                             .volume = request.source_volume_id(),
                                                             .after = *std::move(after),
                                                             .most = most + 1});
  if (page.size() > most) {
    page.resize(most);
    rpc.response().set_next_token(CsiPageToken(page.back().id));
  }
  for (const SnapshotRecord& record : page) {
    *rpc.response().add_entries()->mutable_snapshot() = CsiSnapshotOf(record, shared->told_places);
  }
  rpc.Finish(OkStatus());
}

}  // namespace

void AddSnapshotRpcs(CsiHandlers& handlers, const SnapshotRpcParts& parts) {
  const auto shared = std::make_shared<const SnapshotRpcParts>(parts);
  handlers.Add<CreateSnapshotRequest, CreateSnapshotResponse>(
      [shared](const CreateSnapshotRpc& rpc) { CreateOne(shared, rpc); });
  handlers.Add<DeleteSnapshotRequest, DeleteSnapshotResponse>(
      [shared](const DeleteSnapshotRpc& rpc) { DeleteOne(shared, rpc); });
  handlers.Add<GetSnapshotRequest, GetSnapshotResponse>(
      [shared](const GetSnapshotRpc& rpc) { GetOne(shared, rpc); });
  handlers.Add<ListSnapshotsRequest, ListSnapshotsResponse>(
      [shared](const ListSnapshotsRpc& rpc) { ListAll(shared, rpc); });
  handlers.AddFeature(CsiFeature::kRestore);
  handlers.AddFeature(CsiFeature::kClone);
  handlers.AddFeature(CsiFeature::kSnapshotTopology);
}

}  // namespace volumed
