// The calls of the control API about snapshots.
#include <string>
#include <utility>
#include <vector>

#include "agent/control_service.h"
#include "agent/pool_volume_lookup.h"
#include "agent/snapshot_backend.h"
#include "agent/snapshot_stream.h"
#include "agent/snapshot_view.h"
#include "kube/decode.h"
#include "kube/field_rules.h"
#include "pool/pool_parameters.h"

namespace volumed {
namespace {

Error NoSnapshots() {
  return Error::NotApplied(Code::kUnavailable, "this agent has no pools and no snapshots");
}

Status CheckHandName(const std::string& name) {
  if (name.empty()) return Error::NotApplied(Code::kInvalidArgument, "a name is missing");
  const auto reason = rules::kDnsSubdomain.broken(name);
  return reason ? Status(Error::NotApplied(Code::kInvalidArgument, "the name " + *reason))
                : OkStatus();
}

// ---- snapshots ----------------------------------------------------------------------------------

using CreateCall = UnaryCall<v1::CreateSnapshotRequest, v1::CreateSnapshotResponse>;
using DeleteSnapshotCall = UnaryCall<v1::DeleteSnapshotRequest, v1::DeleteSnapshotResponse>;
using CancelCall = UnaryCall<v1::CancelSnapshotRequest, v1::CancelSnapshotResponse>;
using RestoreCall = UnaryCall<v1::RestoreSnapshotRequest, v1::RestoreSnapshotResponse>;

void HandleCreateSnapshot(const CreateCall& call) {
  call.backend.scheduler.Post([call] {
    if (call.backend.snapshots == nullptr) return call.Finish(NoSnapshots());
    if (const Status named = CheckHandName(call.request.name()); !named.ok()) {
      return call.Finish(named);
    }
    const Result<std::string> volume =
        FindPoolVolume(call.backend, call.request.namespace_(), call.request.volume());
    if (!volume.ok()) return call.Finish(volume.error());
    call.backend.snapshots->maker.Create({kByHand + call.request.name(), *volume, {}},
                                         [call](const Result<SnapshotRecord>& made) {
                                           if (!made.ok()) return call.Finish(made.error());
                                           EncodeSnapshot(*made, call.response->mutable_snapshot());
                                           call.Finish(OkStatus());
                                         });
  });
}

Status HandleGetSnapshots(ControlBackend& backend, const v1::GetSnapshotsRequest& request,
                          v1::GetSnapshotsResponse* response) {
  if (backend.snapshots == nullptr) return OkStatus();
  SnapshotFilter filter;
  if (!request.volume().empty()) {
    ASSIGN_OR_RETURN(filter.volume,
                     FindPoolVolume(backend, request.namespace_(), request.volume()));
  }
  std::vector<SnapshotRecord> found;
  if (request.id().empty()) {
    found = backend.snapshots->maker.List(filter);
  } else if (const auto one = backend.snapshots->maker.Find(request.id())) {
    found.push_back(*one);
  }
  for (const SnapshotRecord& record : found) {
    if (!filter.volume.empty() && record.volume != filter.volume) continue;
    EncodeSnapshot(record, response->add_snapshots());
  }
  return OkStatus();
}

void HandleDeleteSnapshot(const DeleteSnapshotCall& call) {
  call.backend.scheduler.Post([call] {
    if (call.backend.snapshots == nullptr) return call.Finish(NoSnapshots());
    DeleteSnapshotByHand(*call.backend.snapshots, call.request.id(), call.request.abandoned(),
                         [call](const Status& done) { call.Finish(done); });
  });
}

void HandleCancelSnapshot(const CancelCall& call) {
  call.backend.scheduler.Post([call] {
    if (call.backend.snapshots == nullptr) return call.Finish(NoSnapshots());
    SnapshotMaker& maker = call.backend.snapshots->maker;
    maker.Cancel(call.request.id(), [call, &maker](const Status& done) {
      const bool is_unknown = !done.ok() && done.error().code() == Code::kNotFound;
      call.Finish(is_unknown ? NoSuchSnapshot(maker, call.request.id()) : done);
    });
  });
}

// ---- a new volume of a snapshot -----------------------------------------------------------------

Result<PoolVolumeWish> RestoreWish(const SnapshotBackend& snapshots,
                                   const v1::RestoreSnapshotRequest& request) {
  RETURN_IF_ERROR(CheckHandName(request.name()));
  const PoolServed& pools = snapshots.pools;
  const Result<PoolCutRecord> found = pools.volumes.FindCut(request.id());
  if (!found.ok() && found.error().code() == Code::kNotFound) {
    return NoSuchSnapshot(snapshots.maker, request.id());
  }
  if (!found.ok()) return found.error();
  const PoolCutRecord& cut = *found;
  if (request.size_bytes() > 0) RETURN_IF_ERROR(CheckHoldsCut(cut, request.size_bytes()));
  PoolVolumeWish wish;
  wish.name = kByHand + request.name();
  wish.size.required_bytes = request.size_bytes() > 0 ? request.size_bytes() : cut.size_bytes;
  wish.is_block = cut.is_block;
  wish.parameters = {{"pool", cut.pool}, {"backend", std::string(PoolBackendName(cut.backend))}};
  VolumeContent content;
  content.is_snapshot = true;
  content.driver = pools.driver;
  content.handle = request.id();
  content.volume_mode = cut.is_block ? VolumeMode::kBlock : VolumeMode::kFilesystem;
  content.size = Quantity::FromBytes(cut.size_bytes);
  wish.content = std::move(content);
  return wish;
}

void AnswerRestored(const RestoreCall& call, const PoolVolumeRecord& made) {
  call.response->set_volume(made.id);
  call.response->set_size_bytes(made.capacity_bytes);
  PersistentVolume volume =
      PoolPvOf(made, call.backend.snapshots->pools.driver, call.backend.node.str());
  volume.metadata.name = call.request.name();
  call.response->set_manifest(EncodeObjectJson(Object(std::move(volume))));
  call.Finish(OkStatus());
}

void HandleRestoreSnapshot(const RestoreCall& call) {
  call.backend.scheduler.Post([call] {
    if (call.backend.snapshots == nullptr) return call.Finish(NoSnapshots());
    SnapshotBackend& snapshots = *call.backend.snapshots;
    Result<PoolVolumeWish> wish = RestoreWish(snapshots, call.request);
    if (!wish.ok()) return call.Finish(wish.error());
    CreatePoolVolume create(snapshots.pools, *std::move(wish));
    // What it has waited for is over: a person asks.
    snapshots.operations.ResetBackoff(create.key());
    const StartResult started = snapshots.operations.Start(
        std::move(create), VolumeOperations::Done<CreatePoolVolume>(
                               [call](const OperationOutcome<PoolVolumeRecord>& outcome) {
                                 if (outcome.failure) return call.Finish(outcome.failure->error);
                                 AnswerRestored(call, *outcome.value);
                               }));
    if (started == StartResult::kStarted) return;
    call.Finish(Error::NotApplied(Code::kAborted, "the same is being done for somebody else"));
  });
}

}  // namespace

void AddSnapshotCalls(ControlService& service) {
  service.Unary("CreateSnapshot", PeerRole::kOperate, HandleCreateSnapshot);
  service.OnControl("GetSnapshots", PeerRole::kRead, HandleGetSnapshots);
  service.Unary("DeleteSnapshot", PeerRole::kOperate, HandleDeleteSnapshot);
  service.Unary("CancelSnapshot", PeerRole::kOperate, HandleCancelSnapshot);
  service.Unary("RestoreSnapshot", PeerRole::kOperate, HandleRestoreSnapshot);
  service.Streaming<v1::WatchSnapshotRequest, SnapshotStream>("WatchSnapshot", PeerRole::kRead);
}

}  // namespace volumed
