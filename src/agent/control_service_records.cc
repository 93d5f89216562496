// ControlService: the calls about the records.
#include <optional>
#include <string>
#include <vector>

#include "agent/control_service.h"
#include "agent/records_view.h"

namespace volumed {

grpc::ServerUnaryReactor* ControlService::GetRecords(grpc::CallbackServerContext* context,
                                                     const v1::GetRecordsRequest* /*request*/,
                                                     v1::GetRecordsResponse* response) {
  return OnControl(context, PeerRole::kRead, [this, response]() -> Status {
    *response->mutable_records() = DescribeRecords(backend_.recovery);
    return OkStatus();
  });
}

grpc::ServerUnaryReactor* ControlService::AcceptRecords(grpc::CallbackServerContext* context,
                                                        const v1::AcceptRecordsRequest* request,
                                                        v1::AcceptRecordsResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (Refuse(reactor, PeerRole::kAdmin)) return reactor;
  const RecordsRecovery before = backend_.recovery.recovery();
  response->set_was_recovery(before.active);
  response->set_reason(before.reason);
  if (!before.active) {
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  std::optional<std::string> volume;
  if (!request->volume().empty()) volume = request->volume();
  backend_.accept_records(volume, [this, reactor, response](const auto& permitted) {
    if (permitted.ok()) {
      for (const HeldStep& step : *permitted) EncodeHeldStep(step, response->add_permitted());
      response->set_remains(backend_.recovery.recovery().reason);
    }
    reactor->Finish(permitted.ok() ? grpc::Status::OK : ToGrpcStatus(permitted.error()));
  });
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::AcceptVolume(grpc::CallbackServerContext* context,
                                                       const v1::AcceptVolumeRequest* request,
                                                       v1::AcceptVolumeResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (Refuse(reactor, PeerRole::kAdmin)) return reactor;
  backend_.scheduler.Post([this, reactor, response, name = request->name()] {
    backend_.accept_volume(name, [reactor, response](const Result<AcceptedDirectory>& accepted) {
      if (accepted.ok()) {
        response->set_path(accepted->path);
        response->set_before(accepted->before);
        response->set_now(accepted->now);
        response->set_was_other(accepted->was_other);
      }
      reactor->Finish(accepted.ok() ? grpc::Status::OK : ToGrpcStatus(accepted.error()));
    });
  });
  return reactor;
}

}  // namespace volumed
