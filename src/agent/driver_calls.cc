// The calls of the control API about CSI drivers.
#include <map>
#include <string>
#include <utility>

#include "agent/control_service.h"
#include "agent/driver_questions.h"

namespace volumed {
namespace {

Error NoDrivers() {
  return Error::NotApplied(Code::kUnavailable, "this agent has no way to CSI drivers");
}

Status HandleGetDrivers(ControlBackend& backend, const v1::GetDriversRequest& request,
                        v1::GetDriversResponse* response) {
  if (backend.csi == nullptr) return NoDrivers();
  const std::map<std::string, int> waiting =
      backend.waiting_for_drivers ? backend.waiting_for_drivers() : std::map<std::string, int>();
  return DescribeDrivers(*backend.csi, waiting, backend.scheduler.clock(), request, response);
}

Status HandleGetDriverTrace(ControlBackend& backend, const v1::GetDriverTraceRequest& request,
                            v1::GetDriverTraceResponse* response) {
  if (backend.csi == nullptr) return NoDrivers();
  return DescribeTrace(*backend.csi, backend.scheduler.clock(), request, response);
}

using DriverCall = UnaryCall<v1::CallDriverRequest, v1::CallDriverResponse>;

void HandleCallDriver(const DriverCall& call) {
  call.backend.scheduler.Post([call] {
    ControlBackend& backend = call.backend;
    if (backend.csi == nullptr) return call.Finish(NoDrivers());
    AskDriver(
        {backend.scheduler, *backend.csi, backend.driver_call_patience, backend.open_driver_calls},
        call.request, [call](const Result<std::string>& answer) {
          if (!answer.ok()) return call.Finish(answer.error());
          call.response->set_response_json(*answer);
          call.Finish(OkStatus());
        });
  });
}

}  // namespace

void AddDriverCalls(ControlService& service) {
  service.OnControl("GetDrivers", PeerRole::kRead, HandleGetDrivers);
  service.OnControl("GetDriverTrace", PeerRole::kRead, HandleGetDriverTrace);
  service.Unary("CallDriver", RoleToAskDriver, HandleCallDriver);
}

}  // namespace volumed
