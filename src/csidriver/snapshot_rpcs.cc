#include "csidriver/snapshot_rpcs.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csidriver/csi_page_token.h"
#include "csidriver/csi_snapshot_ids.h"
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
    *rpc.response().mutable_snapshot() = CsiSnapshotOf(*made, shared->places);
    rpc.Finish(OkStatus());
  });
}

void DeleteOne(const SharedSnapshotParts& shared, const DeleteSnapshotRpc& rpc) {
  const std::string& id = rpc.request().snapshot_id();
  const Status here = CheckSnapshotId(shared->volumes, id, PoolObject::kCut);
  if (!here.ok()) return rpc.Finish(SuccessIfNone(here));
  if (const auto there = shared->snapshots.Find(id); there && !there->for_volume.empty()) {
    return rpc.Finish(Error::NotApplied(
        Code::kFailedPrecondition, "snapshot " + id + " is that of a clone: it goes by itself"));
  }
  shared->snapshots.Delete(id, [rpc](const Status& deleted) { rpc.Finish(deleted); });
}

// The snapshot that a caller can name. Errors, not applied: NotFound of one that has no point in
// time; Aborted while it is deleted; its own, if it has failed.
Result<SnapshotRecord> FindTold(const SnapshotRpcParts& parts, const std::string& id) {
  RETURN_IF_ERROR(CheckSnapshotId(parts.volumes, id, PoolObject::kCut));
  std::optional<SnapshotRecord> found = parts.snapshots.Find(id);
  if (!found || !found->for_volume.empty() || found->cut_unix_ms == 0) {
    return Error::NotApplied(Code::kNotFound, "there is no snapshot " + id);
  }
  if (IsCut(found->phase)) return *std::move(found);
  if (found->phase == SnapshotPhase::kFailed) {
    return Error::NotApplied(static_cast<Code>(found->error_code), found->error);
  }
  return Error::NotApplied(Code::kAborted, "snapshot " + id + " is " +
                                               std::string(SnapshotPhaseName(found->phase)));
}

void GetOne(const SharedSnapshotParts& shared, const GetSnapshotRpc& rpc) {
  const Result<SnapshotRecord> found = FindTold(*shared, rpc.request().snapshot_id());
  if (!found.ok()) return rpc.Finish(found.error());
  *rpc.response().mutable_snapshot() = CsiSnapshotOf(*found, shared->places);
  rpc.Finish(OkStatus());
}

// Up to `most` of those that the filter finds, and one more if there are more.
std::vector<SnapshotRecord> FindListed(const SnapshotEngine& snapshots, SnapshotFilter filter,
                                       size_t most) {
  std::vector<SnapshotRecord> listed;
  filter.most = most + 1;
  while (listed.size() <= most) {
    const std::vector<SnapshotRecord> some = snapshots.List(filter);
    std::copy_if(some.begin(), some.end(), std::back_inserter(listed),
                 [](const SnapshotRecord& record) { return record.for_volume.empty(); });
    if (some.size() < filter.most) break;
    filter.after = some.back().id;
  }
  if (listed.size() > most + 1) listed.resize(most + 1);
  return listed;
}

// What the filters name may be of a pool that another node has: then it is not known whether there
// is such a snapshot, and an empty list would say that there is none.
Status CheckFilters(const SnapshotRpcParts& parts, const ListSnapshotsRequest& request) {
  for (const auto& [id, object] : {std::pair(&request.snapshot_id(), PoolObject::kCut),
                                   std::pair(&request.source_volume_id(), PoolObject::kVolume)}) {
    const Status here = id->empty() ? OkStatus() : CheckSnapshotId(parts.volumes, *id, object);
    if (!here.ok()) return here;
  }
  return OkStatus();
}

void ListAll(const SharedSnapshotParts& shared, const ListSnapshotsRpc& rpc) {
  const ListSnapshotsRequest& request = rpc.request();
  Result<std::string> after = ParseCsiPageToken(request.starting_token(), PoolObject::kCut);
  if (!after.ok()) return rpc.Finish(after.error());
  const Status here = CheckFilters(*shared, request);
  if (!here.ok()) return rpc.Finish(SuccessIfNone(here));
  const int32_t asked = request.max_entries();
  const auto most = static_cast<size_t>(asked == 0 ? kMostSnapshotsOfPage
                                                   : std::min(asked, kMostSnapshotsOfPage));
  SnapshotFilter filter;
  filter.id = request.snapshot_id();
  filter.volume = request.source_volume_id();
  filter.after = *std::move(after);
  std::vector<SnapshotRecord> page = FindListed(shared->snapshots, std::move(filter), most);
  if (page.size() > most) {
    page.pop_back();
    rpc.response().set_next_token(CsiPageToken(page.back().id));
  }
  for (const SnapshotRecord& record : page) {
    *rpc.response().add_entries()->mutable_snapshot() = CsiSnapshotOf(record, shared->places);
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
