#include "csi/rpc/csi_stream.h"

#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/slice.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace volumed {
namespace {

// It deletes itself: gRPC says of nothing but its own end when it has let go of it.
class StreamReader final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  StreamReader(const CsiStreamCall& call, std::function<void(const grpc::Status&)> ended)
      : call_(call), ended_(std::move(ended)) {}

  void Begin() {
    StartWriteLast(&call_.request, {});
    StartRead(&message_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;  // the stream has ended: OnDone() says how
    CsiStream& stream = call_.stream;
    if (stream.messages >= stream.most_messages || bytes_ >= stream.most_bytes) {
      stream.is_cut = true;
      return call_.context.TryCancel();
    }
    // A message that cannot be read ends the call as one that was cancelled.
    if (!Keep()) return call_.context.TryCancel();
    StartRead(&message_);
  }

  void OnDone(const grpc::Status& status) override {
    const grpc::Status end = call_.stream.is_cut ? grpc::Status::OK : status;
    call_.answer = grpc::ByteBuffer(slices_.data(), slices_.size());
    const std::function<void(const grpc::Status&)> ended = std::move(ended_);
    delete this;
    ended(end);
  }

 private:
  bool Keep() {
    std::vector<grpc::Slice> slices;
    if (!message_.Dump(&slices).ok()) return false;
    bytes_ += message_.Length();
    ++call_.stream.messages;
    for (grpc::Slice& slice : slices) slices_.push_back(std::move(slice));
    message_.Clear();
    return true;
  }

  const CsiStreamCall call_;
  std::function<void(const grpc::Status&)> ended_;
  grpc::ByteBuffer message_;
  std::vector<grpc::Slice> slices_;
  size_t bytes_ = 0;
};

}  // namespace

void ReadCsiStream(grpc::GenericStub& stub, const std::string& path, const CsiStreamCall& call,
                   std::function<void(const grpc::Status&)> ended) {
  auto* const reader = new StreamReader(call, std::move(ended));
  stub.PrepareBidiStreamingCall(&call.context, path, {}, reader);
  reader->Begin();
}

}  // namespace volumed
