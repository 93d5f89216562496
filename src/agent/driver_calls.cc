// The calls of the control API about CSI drivers.
#include <google/protobuf/message.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "agent/control_service.h"
#include "agent/driver_view.h"
#include "csi/rpc/csi_json.h"
#include "csi/rpc/csi_methods.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

// Whoever may only read could keep a driver busy otherwise.
constexpr int kMostOpenCalls = 8;
constexpr size_t kLongestRequest = size_t{1} << 20;

Error NoDrivers() {
  return Error::NotApplied(Code::kUnavailable, "this agent has no way to CSI drivers");
}

Error NoSuchDriver(const std::string& name) {
  return Error::NotApplied(Code::kNotFound, "there is no CSI driver " + name);
}

// ---- what there is ------------------------------------------------------------------------------

Status HandleGetDrivers(ControlBackend& backend, const v1::GetDriversRequest& request,
                        v1::GetDriversResponse* response) {
  if (backend.csi == nullptr) return NoDrivers();
  const std::map<std::string, int> waiting =
      backend.waiting_for_drivers ? backend.waiting_for_drivers() : std::map<std::string, int>();
  const auto is_asked_for = [&](const std::string& name) {
    return request.name().empty() || request.name() == name;
  };
  for (const DriverView& driver : backend.csi->drivers().List()) {
    if (!is_asked_for(driver.facts.name)) continue;
    const auto found = waiting.find(DriverDomain(driver.facts.name));
    EncodeDriver(driver, found == waiting.end() ? 0 : found->second, response->add_drivers());
  }
  for (const RegisteredSocket& socket : backend.csi->Sockets()) {
    if (!is_asked_for(socket.driver)) continue;
    EncodeSocket(socket, backend.scheduler.clock(), response->add_sockets());
  }
  const bool is_empty = response->drivers().empty() && response->sockets().empty();
  if (!request.name().empty() && is_empty) return NoSuchDriver(request.name());
  return OkStatus();
}

Status HandleGetDriverTrace(ControlBackend& backend, const v1::GetDriverTraceRequest& request,
                            v1::GetDriverTraceResponse* response) {
  if (backend.csi == nullptr) return NoDrivers();
  if (request.back_ms() < 0) {
    return Error::NotApplied(Code::kInvalidArgument, "back_ms must not be negative");
  }
  const std::vector<CsiCallReport> calls = backend.csi->trace().Of(request.driver());
  if (calls.empty() && backend.csi->drivers().Find(request.driver()) == nullptr) {
    return NoSuchDriver(request.driver());
  }
  const int64_t now = backend.scheduler.clock().WallUnixMillis();
  for (const CsiCallReport& call : calls) {
    const bool is_too_old = request.back_ms() > 0 && call.asked_unix_ms < now - request.back_ms();
    if (!is_too_old) EncodeTracedCall(call, response->add_calls());
  }
  return OkStatus();
}

// ---- calls by hand ------------------------------------------------------------------------------

// Those of the registration are none of csi.v1.
const CsiMethod* FindRpc(const std::string& name) {
  const CsiMethod* const method = FindCsiMethod(name);
  return method != nullptr && method->service.starts_with("csi.v1.") ? method : nullptr;
}

PeerRole RoleToCall(const v1::CallDriverRequest& request) {
  const CsiMethod* const method = FindRpc(request.method());
  const bool changes = method != nullptr && method->kind == CsiRpcKind::kMutating;
  return changes ? PeerRole::kAdmin : PeerRole::kRead;
}

// Errors, not applied: NotFound, Unimplemented, InvalidArgument.
Result<const CsiMethod*> AdmitCall(const v1::CallDriverRequest& request) {
  const CsiMethod* const method = FindRpc(request.method());
  if (method == nullptr) {
    return Error::NotApplied(Code::kNotFound, "csi.v1 has no RPC " + request.method());
  }
  if (method->kind == CsiRpcKind::kMutating) {
    return Error::NotApplied(Code::kUnimplemented,
                             method->name +
                                 " changes something, and an RPC by hand that does needs a record "
                                 "of it (csi-command), which this agent does not write: nothing "
                                 "would keep the agent's own operations from the same volume");
  }
  if (method->streaming) {
    return Error::NotApplied(Code::kUnimplemented,
                             method->name + " answers by a stream, which is not read here");
  }
  if (request.request_json().size() > kLongestRequest) {
    return Error::NotApplied(Code::kInvalidArgument, "the request is longer than a megabyte");
  }
  return method;
}

using DriverCall = UnaryCall<v1::CallDriverRequest, v1::CallDriverResponse>;

// Threads: an executor's.
Result<std::string> CallByHand(const DriverCall& call, CsiDriver& driver,
                               const google::protobuf::Message& request) {
  const Clock& clock = call.backend.scheduler.clock();
  Duration patience = call.backend.driver_call_patience;
  if (call.request.timeout_ms() > 0) {
    patience = std::min<Duration>(patience, std::chrono::milliseconds(call.request.timeout_ms()));
  }
  ASSIGN_OR_RETURN(const auto answer,
                   driver.Perform(request, {.deadline = Deadline::After(clock, patience)}));
  return CsiJsonOf(*answer);
}

// Threads: the control thread.
void BeginCall(const DriverCall& call) {
  ControlBackend& backend = call.backend;
  if (backend.csi == nullptr) return call.Finish(NoDrivers());
  const Result<const CsiMethod*> method = AdmitCall(call.request);
  if (!method.ok()) return call.Finish(method.error());
  Result<std::unique_ptr<google::protobuf::Message>> made =
      CsiRequestFromJson(**method, call.request.request_json());
  if (!made.ok()) return call.Finish(made.error());
  const std::shared_ptr<CsiDriver> driver = backend.csi->drivers().Find(call.request.driver());
  if (driver == nullptr) return call.Finish(NoSuchDriver(call.request.driver()));
  if (backend.open_driver_calls >= kMostOpenCalls) {
    return call.Finish(Error::NotApplied(Code::kResourceExhausted,
                                         "CSI drivers have " + std::to_string(kMostOpenCalls) +
                                             " calls by hand already; try it again later"));
  }
  ++backend.open_driver_calls;
  // A task is copied, and a request cannot be.
  const std::shared_ptr<const google::protobuf::Message> request = *std::move(made);
  backend.scheduler.RunBlocking([call, driver, request] {
    Result<std::string> answer = CallByHand(call, *driver, *request);
    // The last one to let go of the driver may be here: its destructor finds the control thread.
    call.backend.scheduler.Post([call, answer = std::move(answer)] {
      --call.backend.open_driver_calls;
      if (!answer.ok()) return call.Finish(answer.error());
      call.response->set_response_json(*answer);
      call.Finish(OkStatus());
    });
  });
}

void HandleCallDriver(const DriverCall& call) {
  call.backend.scheduler.Post([call] { BeginCall(call); });
}

}  // namespace

void AddDriverCalls(ControlService& service) {
  service.OnControl("GetDrivers", PeerRole::kRead, HandleGetDrivers);
  service.OnControl("GetDriverTrace", PeerRole::kRead, HandleGetDriverTrace);
  service.Unary("CallDriver", RoleToCall, HandleCallDriver);
}

}  // namespace volumed
