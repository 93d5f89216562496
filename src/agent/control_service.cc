#include "agent/control_service.h"

#include "base/strings.h"

namespace volumed {
namespace {

const google::protobuf::ServiceDescriptor& Api() {
  return *v1::ApplyRequest::descriptor()->file()->FindServiceByName("VolumeAgent");
}

}  // namespace

grpc::Status ToGrpcStatus(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const Error& error = status.error();
  const std::string note = error.maybe_applied() ? " (maybe applied)" : "";
  // gRPC itself says UNAVAILABLE if nobody answers; the detail shows that the agent did.
  v1::ErrorDetail detail;
  detail.set_outcome(error.maybe_applied() ? "MaybeApplied" : "NotApplied");
  return {static_cast<grpc::StatusCode>(error.code()), error.message() + note,
          detail.SerializeAsString()};
}

ControlService::ControlService(ControlBackend& backend, PeerRole role)
    : ControlService(backend, role,
                     {AddObjectCalls, AddPodCalls, AddAgentCalls, AddDriverCalls, AddPoolCalls,
                      AddSnapshotCalls, AddImportCalls}) {}

ControlService::ControlService(ControlBackend& backend, PeerRole role,
                               const std::vector<AddRows>& groups)
    : backend_(backend), role_(role) {
  for (const AddRows add : groups) add(*this);
}

int ControlService::Claim(const std::string& name, const Descriptor* request,
                          const Descriptor* response, bool is_stream) {
  const google::protobuf::MethodDescriptor* method = Api().FindMethodByName(name);
  const bool fits = method != nullptr && method->input_type() == request &&
                    method->output_type() == response && !method->client_streaming() &&
                    method->server_streaming() == is_stream;
  if (!fits) {
    problems_.push_back("the row " + name + " fits no call of the API");
    return -1;
  }
  if (!claimed_.insert(method->index()).second) {
    problems_.push_back("the call " + name + " has two rows");
    return -1;
  }
  return method->index();
}

Status ControlService::Check() const {
  std::vector<std::string> problems = problems_;
  for (int i = 0; i < Api().method_count(); ++i) {
    if (!claimed_.contains(i))
      problems.push_back("the call " + Api().method(i)->name() + " has no row");
  }
  if (problems.empty()) return OkStatus();
  return Error::NotApplied(Code::kInternal, "control API: " + Join(problems, "; "));
}

grpc::Status ControlService::Admit(PeerRole needed) const {
  if (role_ >= needed) return grpc::Status::OK;
  return {grpc::StatusCode::PERMISSION_DENIED, "needs role " + std::string(PeerRoleName(needed)) +
                                                   "; this peer has role " +
                                                   std::string(PeerRoleName(role_))};
}

}  // namespace volumed
