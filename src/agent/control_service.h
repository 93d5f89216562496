// ControlService: the control API for peers of one role, as a table. Each call is one row: its name
// in agent.proto, the role that it needs, and its handler. The rows stand beside their handlers, in
// object_calls.cc, pod_calls.cc, agent_calls.cc, driver_calls.cc, pool_calls.cc,
// snapshot_calls.cc and import_calls.cc, so that a new call costs a handler and a row in one of
// these files. A call has no handler without a role, and an agent whose API has a call without a
// row does not start.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "agent.grpc.pb.h"
#include "agent/control_backend.h"
#include "agent/peer_role.h"
#include "base/result.h"

namespace volumed {

// A unary call under way, for its handler. Copies of it are the same call.
template <typename Request, typename Response>
struct UnaryCall {
  // It outlives every call.
  ControlBackend& backend;
  const Request& request;  // this and the response live until Finish is called
  Response* response;
  grpc::ServerUnaryReactor* reactor;
  PeerRole role;  // of the peer

  // Answers the call, with the response or with the error. To be called exactly once, on any
  // thread; request and response must not be touched afterwards.
  void Finish(const Status& status) const { reactor->Finish(ToGrpcStatus(status)); }
  // The same, for a call that needs a higher role than its row says; as ControlService refuses one.
  void Refuse(const std::string& why) const {
    reactor->Finish(grpc::Status(grpc::StatusCode::PERMISSION_DENIED, why));
  }
};

// The role that a call needs: always the same one, or one that depends on the request.
template <typename Request>
class NeededRole {
 public:
  NeededRole(PeerRole role)  // NOLINT: most rows name a role
      : of_([role](const Request&) { return role; }) {}
  NeededRole(PeerRole (*of)(const Request&)) : of_(of) {}  // NOLINT: likewise

  // Threads: any, since it is asked on gRPC's threads. Blocks: never.
  PeerRole Of(const Request& request) const { return of_(request); }

 private:
  std::function<PeerRole(const Request&)> of_;
};

// Threads: the rows are added by the constructor; the handlers run on gRPC's threads, or on the
// control thread if that is said. A peer whose role is too low gets PermissionDenied, which names
// the role that the call needs, and no handler runs. That error has no details (ToGrpcStatus): so a
// client tells it from a PermissionDenied that the agent got from the node.
class ControlService final : public v1::VolumeAgent::Service {
 public:
  using AddRows = void (*)(ControlService&);

  // The whole API, for peers of this role. The backend outlives the service.
  ControlService(ControlBackend& backend, PeerRole role);
  // A service with the rows of these groups alone.
  ControlService(ControlBackend& backend, PeerRole role, const std::vector<AddRows>& groups);

  // Whether the rows and the API fit. Errors: Internal, not applied, naming everything that does
  // not: a call of the API has no row, or two, or a row fits no call.
  Status Check() const;

  // Adds a call whose handler runs on gRPC's thread and must not block; it ends the call by
  // UnaryCall::Finish, now or later, on any thread.
  template <typename Request, typename Response>
  void Unary(const char* name, NeededRole<std::type_identity_t<Request>> role,
             std::function<void(const UnaryCall<Request, Response>&)> handler);
  template <typename Request, typename Response>
  void Unary(const char* name, NeededRole<std::type_identity_t<Request>> role,
             void (*handler)(const UnaryCall<Request, Response>&)) {
    Unary<Request, Response>(name, std::move(role),
                             std::function<void(const UnaryCall<Request, Response>&)>(handler));
  }
  // Adds a call that the control thread answers at once: `handler` runs there, must not block, and
  // its status is the answer.
  template <typename Request, typename Response>
  void OnControl(const char* name, NeededRole<std::type_identity_t<Request>> role,
                 Status (*handler)(ControlBackend&, const Request&, Response*));
  // Adds a call that answers again and again. `Stream` is a ControlStream, which is made of the
  // backend and the request.
  template <typename Request, typename Stream>
  void Streaming(const char* name, NeededRole<Request> role);

  ControlBackend& backend() { return backend_; }

 private:
  using Descriptor = google::protobuf::Descriptor;

  // The call that the row is for; -1, and a problem for Check(), if there is none of that form.
  int Claim(const std::string& name, const Descriptor* request, const Descriptor* response,
            bool is_stream);
  // OK if this peer's role suffices.
  grpc::Status Admit(PeerRole needed) const;

  ControlBackend& backend_;
  const PeerRole role_;
  std::set<int> claimed_;
  std::vector<std::string> problems_;
};

// These add the groups of rows.
void AddObjectCalls(ControlService& service);    // objects of any kind
void AddPodCalls(ControlService& service);       // one pod, or what happens to pods
void AddAgentCalls(ControlService& service);     // the agent, its sources and its records
void AddDriverCalls(ControlService& service);    // CSI drivers
void AddPoolCalls(ControlService& service);      // pools and their volumes
void AddSnapshotCalls(ControlService& service);  // snapshots
void AddImportCalls(ControlService& service);    // storage that was there before

// ---- details ------------------------------------------------------------------------------------

// A stream that ends before it begins.
template <typename Response>
class RefusedStream final : public grpc::ServerWriteReactor<Response> {
 public:
  explicit RefusedStream(grpc::Status status) { this->Finish(std::move(status)); }
  void OnDone() override { delete this; }
};

template <typename Request, typename Response>
void ControlService::Unary(const char* name, NeededRole<std::type_identity_t<Request>> role,
                           std::function<void(const UnaryCall<Request, Response>&)> handler) {
  const int index = Claim(name, Request::descriptor(), Response::descriptor(), false);
  if (index < 0) return;
  // What protoc's WithCallbackMethod_ classes do for one call each.
  MarkMethodCallback(
      index,
      new grpc::internal::CallbackUnaryHandler<Request, Response>(
          [this, role = std::move(role), handler = std::move(handler)](
              grpc::CallbackServerContext* context, const Request* request, Response* response) {
            grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
            if (grpc::Status admitted = Admit(role.Of(*request)); !admitted.ok()) {
              reactor->Finish(std::move(admitted));
            } else {
              handler({backend_, *request, response, reactor, role_});
            }
            return reactor;
          }));
}

template <typename Request, typename Response>
void ControlService::OnControl(const char* name, NeededRole<std::type_identity_t<Request>> role,
                               Status (*handler)(ControlBackend&, const Request&, Response*)) {
  Unary<Request, Response>(
      name, std::move(role), std::function([handler](const UnaryCall<Request, Response>& call) {
        call.backend.scheduler.Post(
            [call, handler] { call.Finish(handler(call.backend, call.request, call.response)); });
      }));
}

template <typename Request, typename Stream>
void ControlService::Streaming(const char* name, NeededRole<Request> role) {
  using Response = typename Stream::Message;
  const int index = Claim(name, Request::descriptor(), Response::descriptor(), true);
  if (index < 0) return;
  MarkMethodCallback(index,
                     new grpc::internal::CallbackServerStreamingHandler<Request, Response>(
                         [this, role = std::move(role)](
                             grpc::CallbackServerContext* /*context*/,
                             const Request* request) -> grpc::ServerWriteReactor<Response>* {
                           if (grpc::Status admitted = Admit(role.Of(*request)); !admitted.ok()) {
                             return new RefusedStream<Response>(std::move(admitted));
                           }
                           return Stream::Start(std::make_shared<Stream>(backend_, *request));
                         }));
}

}  // namespace volumed
