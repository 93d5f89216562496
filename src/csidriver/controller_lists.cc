// The Controller service: what is told of volumes, and of the room for more. Nothing is changed.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "csidriver/controller_parts.h"
#include "csidriver/csi_page_token.h"
#include "pool/pool_parameters.h"

namespace volumed {
namespace {

using ::csi::v1::ControllerGetVolumeRequest;
using ::csi::v1::ControllerGetVolumeResponse;
using ::csi::v1::GetCapacityRequest;
using ::csi::v1::GetCapacityResponse;
using ::csi::v1::ListVolumesRequest;
using ::csi::v1::ListVolumesResponse;
using ::csi::v1::ValidateVolumeCapabilitiesRequest;
using ::csi::v1::ValidateVolumeCapabilitiesResponse;

using ValidateRpc = CsiRpc<ValidateVolumeCapabilitiesRequest, ValidateVolumeCapabilitiesResponse>;
using ListRpc = CsiRpc<ListVolumesRequest, ListVolumesResponse>;
using GetRpc = CsiRpc<ControllerGetVolumeRequest, ControllerGetVolumeResponse>;
using CapacityRpc = CsiRpc<GetCapacityRequest, GetCapacityResponse>;

// An answer has at most so many volumes, whatever is asked for: each has a few hundred bytes, and a
// client takes 4 MiB. Source: grpc-go v1.82 (defaultClientMaxReceiveMessageSize).
constexpr int32_t kMostOfPage = 1000;

template <typename VolumeStatus>
void TellNodes(const PoolVolumeRecord& record, VolumeStatus& status) {
  for (const PoolLease& lease : record.leases) status.add_published_node_ids(lease.node);
}

// ---- ValidateVolumeCapabilities -----------------------------------------------------------------

// Why not all that was asked about holds, for people; empty if it does.
std::string WhyNotConfirmed(const ControllerParts& shared, const PoolVolumeRecord& volume,
                            const ValidateVolumeCapabilitiesRequest& request) {
  if (!request.volume_context().empty()) return "the volume has no volume_context";
  std::string difference = TuningDifference(
      volume, {request.mutable_parameters().begin(), request.mutable_parameters().end()});
  if (!difference.empty()) return difference;
  const auto wishes = ParseCsiCapabilities(request.volume_capabilities());
  if (!wishes.ok()) return wishes.error().message();
  for (const CsiCapabilityWish& wish : *wishes) {
    std::string why_not = WhyNotUsableSo(volume, wish);
    if (why_not.empty()) why_not = WhyNotInMode(volume, wish.access_mode, shared.places);
    if (!why_not.empty()) return why_not;
  }
  if (request.parameters().empty()) return "";
  const auto given = CsiPoolParameters(request.parameters(), *wishes);
  if (!given.ok()) return given.error().message();
  const auto parameters = ParsePoolParameters(*given);
  if (!parameters.ok()) return parameters.error().message();
  return DifferenceToWish(volume, *parameters, PoolSize{}, volume.is_block);
}

void Validate(const SharedControllerParts& shared, const ValidateRpc& rpc) {
  const ValidateVolumeCapabilitiesRequest& request = rpc.request();
  const auto volume = FindServedVolume(*shared, request.volume_id());
  if (!volume.ok()) return rpc.Finish(volume.error());
  const std::string why_not = WhyNotConfirmed(*shared, *volume, request);
  rpc.response().set_message(why_not);
  if (why_not.empty()) {
    auto& confirmed = *rpc.response().mutable_confirmed();
    *confirmed.mutable_volume_capabilities() = request.volume_capabilities();
    *confirmed.mutable_parameters() = request.parameters();
    *confirmed.mutable_mutable_parameters() = request.mutable_parameters();
  }
  rpc.Finish(OkStatus());
}

// ---- ListVolumes, ControllerGetVolume -----------------------------------------------------------

void List(const SharedControllerParts& shared, const ListRpc& rpc) {
  const auto after = ParseCsiPageToken(rpc.request().starting_token(), PoolObject::kVolume);
  if (!after.ok()) return rpc.Finish(after.error());
  const int32_t asked = rpc.request().max_entries();
  const int32_t most = asked == 0 ? kMostOfPage : std::min(asked, kMostOfPage);
  const PoolPage page = shared->volumes().List(*after, static_cast<size_t>(most));
  for (const PoolVolumeRecord& record : page.volumes) {
    auto& entry = *rpc.response().add_entries();
    *entry.mutable_volume() = CsiVolumeOf(record, shared->places);
    TellNodes(record, *entry.mutable_status());
  }
  if (!page.next.empty()) rpc.response().set_next_token(CsiPageToken(page.next));
  rpc.Finish(OkStatus());
}

void Get(const SharedControllerParts& shared, const GetRpc& rpc) {
  const auto volume = FindServedVolume(*shared, rpc.request().volume_id());
  if (!volume.ok()) return rpc.Finish(volume.error());
  *rpc.response().mutable_volume() = CsiVolumeOf(*volume, shared->places);
  TellNodes(*volume, *rpc.response().mutable_status());
  rpc.Finish(OkStatus());
}

// ---- GetCapacity --------------------------------------------------------------------------------

// A pool that is not configured here has no room.
Result<int64_t> FreeBytes(const ControllerParts& shared, const StringMap& parameters) {
  CallOptions call;
  call.deadline =
      Deadline::After(shared.parts.scheduler.clock(), shared.settings.capacity_deadline);
  const Result<PoolAccount> account = shared.volumes().Capacity(parameters, call);
  // A volume has whole blocks: one of just this size is made.
  if (account.ok()) return account->free_bytes - account->free_bytes % kPoolBlockBytes;
  if (account.error().code() == Code::kNotFound) return 0;
  return account.error();
}

void Capacity(const SharedControllerParts& shared, const CapacityRpc& rpc) {
  const GetCapacityRequest& request = rpc.request();
  const auto wishes = ParseCsiCapabilities(request.volume_capabilities());
  if (!wishes.ok()) return rpc.Finish(wishes.error());
  auto parameters = CsiPoolParameters(request.parameters(), *wishes);
  if (!parameters.ok()) return rpc.Finish(parameters.error());
  const bool can_be_had =
      IsReachable(shared->places, request.accessible_topology()) &&
      std::all_of(wishes->begin(), wishes->end(), [&](const CsiCapabilityWish& wish) {
        return WhyNotInMode(wish.access_mode, shared->places).empty();
      });
  if (!can_be_had) return rpc.Finish(OkStatus());  // no bytes
  RunForCall(*shared, rpc, [shared, rpc, parameters = *std::move(parameters)]() -> Status {
    ASSIGN_OR_RETURN(const int64_t bytes, FreeBytes(*shared, parameters));
    rpc.response().set_available_capacity(bytes);
    return OkStatus();
  });
}

}  // namespace

void AddAskingRpcs(CsiHandlers& handlers, const SharedControllerParts& shared) {
  handlers.Add<ValidateVolumeCapabilitiesRequest, ValidateVolumeCapabilitiesResponse>(
      [shared](const ValidateRpc& rpc) { Validate(shared, rpc); });
  handlers.Add<ListVolumesRequest, ListVolumesResponse>(
      [shared](const ListRpc& rpc) { List(shared, rpc); });
  handlers.Add<ControllerGetVolumeRequest, ControllerGetVolumeResponse>(
      [shared](const GetRpc& rpc) { Get(shared, rpc); });
  handlers.Add<GetCapacityRequest, GetCapacityResponse>(
      [shared](const CapacityRpc& rpc) { Capacity(shared, rpc); });
  handlers.AddFeature(CsiFeature::kPublishedNodes);
}

}  // namespace volumed
