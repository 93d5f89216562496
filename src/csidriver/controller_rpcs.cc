#include "csidriver/controller_rpcs.h"

#include <memory>
#include <utility>

#include "csidriver/controller_parts.h"

namespace volumed {
namespace {

using ::csi::v1::CreateVolumeRequest;
using ::csi::v1::CreateVolumeResponse;
using ::csi::v1::DeleteVolumeRequest;
using ::csi::v1::DeleteVolumeResponse;

using CreateRpc = CsiRpc<CreateVolumeRequest, CreateVolumeResponse>;
using DeleteRpc = CsiRpc<DeleteVolumeRequest, DeleteVolumeResponse>;

void Create(const SharedControllerParts& shared, const CreateRpc& rpc) {
  Result<PoolVolumeWish> wish =
      ParseCsiVolumeWish(rpc.request(), shared->places, shared->parts.pools.driver);
  if (!wish.ok()) return rpc.Finish(wish.error());
  StartForCall(*shared, CreatePoolVolume(shared->parts.pools, *std::move(wish)), rpc,
               [shared, rpc](const PoolVolumeRecord& made) {
                 *rpc.response().mutable_volume() = CsiVolumeOf(made, shared->places);
               });
}

void Delete(const SharedControllerParts& shared, const DeleteRpc& rpc) {
  if (std::string why = shared->parts.why_unseen(); !why.empty()) {
    return rpc.Finish(Error::NotApplied(Code::kUnavailable, std::move(why)));
  }
  StartForCall(*shared, DeletePoolVolume(shared->parts.pools, rpc.request().volume_id()), rpc,
               [](const Unit&) {});
}

}  // namespace

Result<PoolVolumeRecord> FindServedVolume(const ControllerParts& shared, const std::string& id) {
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
      parts, settings, CsiPlacesOf(parts.pools.driver, settings.node, settings.other_nodes)});
  AddMakingRpcs(handlers, shared);
  AddAskingRpcs(handlers, shared);
  AddPublishingRpcs(handlers, shared);
  AddChangingRpcs(handlers, shared);
  AddHealthRpcs(handlers, shared);
}

}  // namespace volumed
