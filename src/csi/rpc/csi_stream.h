// The call of an RPC that answers by a stream of messages, of which the beginning is read.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <functional>
#include <string>

#include "csi/rpc/csi_call.h"

namespace volumed {

// All outlive the call.
struct CsiStreamCall {
  grpc::ClientContext& context;
  const grpc::ByteBuffer& request;
  grpc::ByteBuffer& answer;  // the bytes of the messages that were read, one after the other
  CsiStream& stream;
};

// Begins the call, reads to the stream's end or to its bound, and calls `ended` once, on a thread
// of gRPC's, with how it ended: OK also if it was cut. Threads: any. Blocks: never. REQUIRES: no
// lock is held that `ended` needs.
void ReadCsiStream(grpc::GenericStub& stub, const std::string& path, const CsiStreamCall& call,
                   std::function<void(const grpc::Status&)> ended);

}  // namespace volumed
