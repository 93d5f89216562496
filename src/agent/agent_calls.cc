// The calls of the control API about the agent itself, its sources and its records.
#include <optional>
#include <string>

#include "agent/control_service.h"
#include "agent/operations_stream.h"
#include "agent/records_view.h"
#include "agent/view_codec.h"

namespace volumed {
namespace {

Status HandleGetStatus(ControlBackend& backend, const v1::GetStatusRequest& /*request*/,
                       v1::GetStatusResponse* response) {
  *response = backend.status();
  return OkStatus();
}

Status HandleGetSources(ControlBackend& backend, const v1::GetSourcesRequest& /*request*/,
                        v1::GetSourcesResponse* response) {
  for (const SourceStatus& source : backend.catalog.Sources()) {
    v1::Source* const out = response->add_sources();
    EncodeSource(source, out);
    out->set_incomplete_because(backend.losses.IncompleteBecause(source.name));
    backend.losses.EncodeAbsent(source.name, out->mutable_absent());
    backend.losses.EncodeReplaced(source.name, out->mutable_replaced());
    backend.losses.EncodeMissing(source.name, out);
    EncodeUnreadFiles(backend.unread_files(source.name), out);
  }
  backend.losses.EncodeForgotten(response);
  backend.losses.EncodeAdoptedRoot(response);
  return OkStatus();
}

Status HandleForgetSource(ControlBackend& backend, const v1::ForgetSourceRequest& request,
                          v1::ForgetSourceResponse* response) {
  RETURN_IF_ERROR(backend.forget_source(request.name(), /*dry_run=*/true));
  backend.losses.EncodeAll(request.name(), response->mutable_goes());
  if (request.dry_run()) return OkStatus();
  RETURN_IF_ERROR(SourceLosses::CheckConfirmed(response->goes(), request.yes()));
  return backend.forget_source(request.name(), /*dry_run=*/false);
}

Status HandleAcceptSource(ControlBackend& backend, const v1::AcceptSourceRequest& request,
                          v1::AcceptSourceResponse* response) {
  RETURN_IF_ERROR(backend.accept_source(request.name(), /*dry_run=*/true));
  backend.losses.EncodeAccepted(request.name(), response->mutable_goes());
  if (request.dry_run()) return OkStatus();
  RETURN_IF_ERROR(SourceLosses::CheckConfirmed(response->goes(), request.yes()));
  return backend.accept_source(request.name(), /*dry_run=*/false);
}

Status HandleGetRecords(ControlBackend& backend, const v1::GetRecordsRequest& /*request*/,
                        v1::GetRecordsResponse* response) {
  *response->mutable_records() = DescribeRecords(backend.recovery);
  return OkStatus();
}

void HandleAcceptRecords(
    const UnaryCall<v1::AcceptRecordsRequest, v1::AcceptRecordsResponse>& call) {
  const RecordsRecovery before = call.backend.recovery.recovery();
  call.response->set_was_recovery(before.active);
  call.response->set_reason(before.reason);
  call.response->set_has_damage(before.has_damage);
  call.response->set_mounts(call.backend.recovery.MountsText());
  if (!before.active) return call.Finish(OkStatus());
  std::optional<std::string> volume;
  if (!call.request.volume().empty()) volume = call.request.volume();
  call.backend.accept_records(volume, [call](const Result<AcceptedSteps>& permitted) {
    if (!permitted.ok()) return call.Finish(permitted.error());
    for (const PendingStep& step : permitted->tried) {
      EncodePendingStep(step, call.response->add_permitted());
    }
    for (const PendingStep& step : permitted->gone) {
      EncodePendingStep(step, call.response->add_gone());
    }
    call.response->set_remains(call.backend.recovery.recovery().reason);
    call.Finish(OkStatus());
  });
}

void HandleAcceptVolume(const UnaryCall<v1::AcceptVolumeRequest, v1::AcceptVolumeResponse>& call) {
  call.backend.scheduler.Post([call] {
    call.backend.accept_volume(call.request.name(),
                               [call](const Result<AcceptedDirectory>& accepted) {
                                 if (!accepted.ok()) return call.Finish(accepted.error());
                                 call.response->set_path(accepted->path);
                                 call.response->set_before(accepted->before);
                                 call.response->set_now(accepted->now);
                                 call.response->set_was_other(accepted->was_other);
                                 call.Finish(OkStatus());
                               });
  });
}

}  // namespace

void AddAgentCalls(ControlService& service) {
  service.OnControl("GetStatus", PeerRole::kRead, HandleGetStatus);
  service.OnControl("GetSources", PeerRole::kRead, HandleGetSources);
  service.OnControl("ForgetSource", PeerRole::kAdmin, HandleForgetSource);
  service.OnControl("AcceptSource", PeerRole::kAdmin, HandleAcceptSource);
  service.OnControl("GetRecords", PeerRole::kRead, HandleGetRecords);
  service.Unary("AcceptRecords", PeerRole::kAdmin, HandleAcceptRecords);
  service.Unary("AcceptVolume", PeerRole::kAdmin, HandleAcceptVolume);
  service.Streaming<v1::WatchOperationsRequest, OperationsStream>("WatchOperations",
                                                                  PeerRole::kRead);
}

}  // namespace volumed
