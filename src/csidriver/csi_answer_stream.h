// CsiAnswerStream: the answer of one call of the CSI driver as a stream of messages, as gRPC's
// server takes it. One message is on its way at a time, so that a client that does not read has one
// in memory.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "csidriver/csi_call.h"

namespace volumed {

// Threads: any. Blocks: never. It lives until gRPC is done with it and nobody else has it.
class CsiAnswerStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  // To be given to gRPC by the handler of the call that has this context.
  static std::shared_ptr<CsiAnswerStream> Make(grpc::CallbackServerContext& context);

  // REQUIRES: the message before was taken.
  void Send(grpc::ByteBuffer message, CsiSent sent) EXCLUDES(mu_);
  // Ends the call, also while a message is on its way: that is given up then, and the client sees
  // that the call was cancelled. Called once.
  void End(const grpc::Status& status) EXCLUDES(mu_);
  // The client has cancelled the call, or its connection has ended.
  bool is_gone() const { return gone_.load(); }

  void OnWriteDone(bool ok) override EXCLUDES(mu_);
  // A message that is on its way comes back by itself.
  void OnCancel() override { gone_ = true; }
  void OnDone() override;

 private:
  explicit CsiAnswerStream(grpc::CallbackServerContext& context) : context_(context) {}

  grpc::CallbackServerContext& context_;   // it goes once Finish() was called
  std::shared_ptr<CsiAnswerStream> self_;  // until OnDone()
  std::atomic<bool> gone_{false};
  grpc::ByteBuffer message_;  // gRPC reads it while it is on its way
  Mutex mu_;
  CsiSent sent_ GUARDED_BY(mu_);
  bool is_sending_ GUARDED_BY(mu_) = false;
  bool is_cancelling_ GUARDED_BY(mu_) = false;
  std::optional<grpc::Status> end_ GUARDED_BY(mu_);
};

}  // namespace volumed
