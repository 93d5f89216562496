#include "csidriver/controller_rpcs.h"

#include <chrono>
#include <memory>
#include <utility>

#include "csidriver/controller_parts.h"
#include "csidriver/csi_inline_wish.h"
#include "csidriver/delete_volume.h"
#include "pool/pool_id.h"

namespace volumed {
namespace {

using ::csi::v1::CreateVolumeRequest;
using ::csi::v1::CreateVolumeResponse;
using ::csi::v1::DeleteVolumeRequest;
using ::csi::v1::DeleteVolumeResponse;

using CreateRpc = CsiRpc<CreateVolumeRequest, CreateVolumeResponse>;
using DeleteRpc = CsiRpc<DeleteVolumeRequest, DeleteVolumeResponse>;

// A content lies on the node that has its pool, and whoever has chosen this node may choose another
// one. The table of CreateVolume has RESOURCE_EXHAUSTED for that: an external-provisioner gives the
// claim back to the scheduler then, and with any other code it would ask this node for ever.
Status CheckContentIsHere(const PoolVolumes& volumes, const CreateVolumeRequest& request,
                          const PoolVolumeWish& wish) {
  if (!wish.content || !request.has_accessibility_requirements()) return OkStatus();
  const PoolObject object = wish.content->is_snapshot ? PoolObject::kCut : PoolObject::kVolume;
  if (volumes.MeaningOf(wish.content->handle, object) != PoolIdMeaning::kOfAnotherPool) {
    return OkStatus();
  }
  return Error::NotApplied(Code::kResourceExhausted,
                           "volume_content_source: it is of a pool that this node does not have; "
                           "on the node that has it the volume can be made");
}

// A caller repeats the call in any case; but one that gets its answer by the first try is served
// sooner, and that is what small volumes are copied in. Callers wait for ten seconds in general.
constexpr Duration kLongestWaitForCopy = std::chrono::seconds(7);

void CreateOf(const SharedControllerParts& shared, const PoolVolumeWish& wish,
              const CreateRpc& rpc) {
  StartForCall(*shared, CreatePoolVolume(shared->parts.pools, wish), rpc,
               [shared, rpc](const PoolVolumeRecord& made) {
                 *rpc.response().mutable_volume() = CsiVolumeOf(made, shared->places);
               });
}

// The first try cuts the volume that is to be cloned. If its bytes have to be copied then, they are
// waited for, and no thread is.
void CreateClone(const SharedControllerParts& shared, const PoolVolumeWish& wish,
                 const CreateRpc& rpc) {
  const CreatePoolVolume operation(shared->parts.pools, wish);
  shared->parts.operations.ResetBackoff(operation.key());
  const auto done = [shared, wish, rpc](const OperationOutcome<PoolVolumeRecord>& outcome) {
    const bool waits = outcome.failure && outcome.failure->error.code() == Code::kUnavailable;
    if (waits) {
      return shared->parts.when_copied(wish.content->handle, kLongestWaitForCopy,
                                       [shared, wish, rpc] { CreateOf(shared, wish, rpc); });
    }
    if (outcome.failure) return rpc.Finish(outcome.failure->error);
    *rpc.response().mutable_volume() = CsiVolumeOf(*outcome.value, shared->places);
    rpc.Finish(OkStatus());
  };
  const StartResult started =
      shared->parts.operations.Start(operation, VolumeOperations::Done<CreatePoolVolume>(done));
  if (started != StartResult::kStarted) rpc.Finish(BeingDone());
}

void Create(const SharedControllerParts& shared, const CreateRpc& rpc) {
  const Result<PoolVolumeWish> wish =
      ParseCsiVolumeWish(rpc.request(), shared->places, shared->parts.pools.driver);
  if (!wish.ok()) return rpc.Finish(wish.error());
  if (const Status here = CheckContentIsHere(shared->volumes(), rpc.request(), *wish); !here.ok()) {
    return rpc.Finish(here.error());
  }
  const bool is_clone = wish->content && !wish->content->is_snapshot;
  is_clone && shared->parts.when_copied ? CreateClone(shared, *wish, rpc)
                                        : CreateOf(shared, *wish, rpc);
}

void Delete(const SharedControllerParts& shared, const DeleteRpc& rpc) {
  if (std::string why = shared->parts.why_unseen(); !why.empty()) {
    return rpc.Finish(Error::NotApplied(Code::kUnavailable, std::move(why)));
  }
  const std::string& id = rpc.request().volume_id();
  const Status may = CheckNotInline(shared->volumes(), id);
  if (!may.ok()) return rpc.Finish(may);
  // What is no id at all has left nothing behind, and whoever asks for thousands fills no log.
  if (!ParsePoolId(id) && shared->volumes().MeaningOf(id) == PoolIdMeaning::kNone) {
    rpc.ChangesNothing();
    return rpc.Finish(OkStatus());
  }
  const auto start = [shared, rpc](const Status& answers) {
    if (!answers.ok()) return rpc.Finish(answers);
    StartForCall(*shared, DeleteServedVolume(shared->parts.pools, rpc.request().volume_id()), rpc,
                 [](const Unit&) {});
  };
  const std::optional<SafePath> staged = StagedByRow(shared->parts.devices, id);
  if (!staged) return start(OkStatus());
  shared->looks->Ask(WayOnto(*staged).looks, start);
}

}  // namespace

Result<PoolVolumeRecord> FindServedVolume(const ControllerParts& shared, const std::string& id) {
  RETURN_IF_ERROR(CheckNotInline(shared.volumes(), id));
  ASSIGN_OR_RETURN(PoolVolumeRecord record, shared.volumes().Find(id));
  if (record.state == PoolVolumeState::kReady || record.state == PoolVolumeState::kExpanding) {
    return record;
  }
  return Error::NotApplied(
      Code::kAborted, "volume " + id + " is " + std::string(PoolVolumeStateName(record.state)));
}

void AddMakingRpcs(CsiHandlers& handlers, const SharedControllerParts& shared) {
  handlers.Add<CreateVolumeRequest, CreateVolumeResponse>(
      [shared](const CreateRpc& rpc) { Create(shared, rpc); });
  handlers.Add<DeleteVolumeRequest, DeleteVolumeResponse>(
      [shared](const DeleteRpc& rpc) { Delete(shared, rpc); });
}

void AddControllerRpcs(CsiHandlers& handlers, const ControllerRpcParts& parts,
                       const ControllerRpcSettings& settings) {
  const auto shared = std::make_shared<const ControllerParts>(ControllerParts{
      parts, settings, CsiPlacesOf(parts.pools.driver, settings.node, settings.other_nodes),
      std::make_shared<PlaceLooks>(parts.looks, settings.look_deadline)});
  AddMakingRpcs(handlers, shared);
  AddAskingRpcs(handlers, shared);
  AddPublishingRpcs(handlers, shared);
  AddChangingRpcs(handlers, shared);
  AddHealthRpcs(handlers, shared);
}

}  // namespace volumed
