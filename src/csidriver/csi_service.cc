#include "csidriver/csi_service.h"

#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/server_callback.h>

#include <algorithm>

#include "base/strings.h"
#include "csidriver/csi_answer_stream.h"
#include "csidriver/csi_codes.h"

namespace volumed {
namespace {

using google::protobuf::Message;

// The registration of a plugin is no part of it.
constexpr std::string_view kPackage = "csi.v1.";

bool IsOfCsi(const CsiMethod& method) { return method.service.starts_with(kPackage); }

bool ReadMessage(const grpc::ByteBuffer& bytes, Message& message) {
  grpc::ByteBuffer buffer(bytes);
  grpc::ProtoBufferReader reader(&buffer);
  return reader.status().ok() && message.ParseFromZeroCopyStream(&reader) && reader.status().ok();
}

grpc::ByteBuffer BytesOf(const Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

}  // namespace

// ---- CsiHandlers --------------------------------------------------------------------------------

void CsiHandlers::AddRow(const google::protobuf::Descriptor& request,
                         const google::protobuf::Descriptor& response, CsiRow row) {
  const CsiMethod* const method = CsiMethodOf(&request);
  if (method == nullptr || !IsOfCsi(*method)) {
    problems_.push_back(request.name() + " is the request of no RPC");
  } else if (method->streaming != row.streams || method->response != &response) {
    problems_.push_back(method->name + " does not answer with " +
                        (row.streams ? "a stream of " : "one ") + response.name());
  } else if (!rows_.emplace(method, std::move(row)).second) {
    problems_.push_back(method->name + " has two handlers");
  }
}

Status CsiHandlers::Check() const {
  if (problems_.empty()) return OkStatus();
  return Error::NotApplied(Code::kInternal, "CSI driver: " + Join(problems_, "; "));
}

bool CsiHandlers::MayServe(const CsiMethod& method) const {
  return CsiMayServe(profile_, level_, method.name);
}

const CsiRow* CsiHandlers::Find(const CsiMethod& method) const {
  const auto found = rows_.find(&method);
  return found == rows_.end() || !MayServe(method) ? nullptr : &found->second;
}

std::string CsiHandlers::WhyNot(const CsiMethod& method) const {
  if (MayServe(method)) return "this driver does not have it";
  return "a driver of csi-profile " + std::string(CsiProfileName(profile_)) +
         " and csi-serve-level " + std::string(CsiServeLevelName(level_)) + " does not have it";
}

CsiCapabilities CsiHandlers::Capabilities() const {
  CsiServed served;
  for (const auto& [method, row] : rows_) {
    if (MayServe(*method)) served.rpcs.insert(method->name);
  }
  served.features = features_;
  return CsiCapabilitiesOf(profile_, level_, served);
}

// ---- CsiService ---------------------------------------------------------------------------------

CsiService::CsiService(const std::string& name, const CsiHandlers& handlers,
                       std::shared_ptr<CsiCalls> calls, PeerOf peer_of)
    : handlers_(handlers), calls_(std::move(calls)), peer_of_(std::move(peer_of)) {
  for (const CsiMethod& method : CsiMethods()) {
    if (method.service != name) continue;
    if (method.streaming) {
      AddStreamingRpc(method);
    } else {
      AddRpc(method);
    }
  }
}

std::vector<std::string> CsiService::Names() {
  std::vector<std::string> names;
  for (const CsiMethod& method : CsiMethods()) {
    if (IsOfCsi(method) && (names.empty() || names.back() != method.service)) {
      names.push_back(method.service);
    }
  }
  return names;
}

void CsiService::TakeOn(const CsiMethod& method, const grpc::ByteBuffer& request,
                        CsiArrival arrival) {
  const CsiRow* const row = handlers_.Find(method);
  if (row == nullptr) {
    calls_->Refuse(CsiNotServed(method.path, handlers_.WhyNot(method)), std::move(arrival));
  } else if (!request.Valid()) {
    // gRPC hands such a call on without a message; an empty message is another thing.
    calls_->Refuse({grpc::StatusCode::CANCELLED, "the caller has gone before its request came"},
                   std::move(arrival));
  } else {
    calls_->Begin(*row, std::move(arrival));
  }
}

// What protoc's WithRawCallbackMethod_ classes do for one RPC each. The bytes are read here and not
// by gRPC, which would answer what is no message with Unimplemented.
void CsiService::AddRpc(const CsiMethod& method) {
  AddMethod(new grpc::internal::RpcServiceMethod(method.path.c_str(),
                                                 grpc::internal::RpcMethod::NORMAL_RPC, nullptr));
  MarkMethodRawCallback(
      count_++,
      new grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
          [this, &method](grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                          grpc::ByteBuffer* response) -> grpc::ServerUnaryReactor* {
            grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
            CsiArrival arrival;
            arrival.method = &method;
            arrival.peer = peer_of_(context->peer());
            arrival.read = [request](Message& message) { return ReadMessage(*request, message); };
            arrival.answer = [reactor, response](const grpc::Status& status, const Message& said) {
              if (status.ok()) *response = BytesOf(said);
              reactor->Finish(status);
            };
            TakeOn(method, *request, std::move(arrival));
            return reactor;
          }));
}

void CsiService::AddStreamingRpc(const CsiMethod& method) {
  AddMethod(new grpc::internal::RpcServiceMethod(
      method.path.c_str(), grpc::internal::RpcMethod::SERVER_STREAMING, nullptr));
  MarkMethodRawCallback(
      count_++,
      new grpc::internal::CallbackServerStreamingHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
          [this, &method](grpc::CallbackServerContext* context, const grpc::ByteBuffer* request)
              -> grpc::ServerWriteReactor<grpc::ByteBuffer>* {
            const std::shared_ptr<CsiAnswerStream> stream = CsiAnswerStream::Make(*context);
            CsiArrival arrival;
            arrival.method = &method;
            arrival.peer = peer_of_(context->peer());
            arrival.read = [request](Message& message) { return ReadMessage(*request, message); };
            arrival.send = [stream](const Message& said, CsiSent sent) {
              stream->Send(BytesOf(said), std::move(sent));
            };
            arrival.is_gone = [stream] { return stream->is_gone(); };
            arrival.answer = [stream](const grpc::Status& status, const Message&) {
              stream->End(status);
            };
            TakeOn(method, *request, std::move(arrival));
            return stream.get();
          }));
}

}  // namespace volumed
