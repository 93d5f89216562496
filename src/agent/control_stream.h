// ControlStream: what the streaming calls of the control API have in common: one answer in flight,
// everything else on the control thread, and an end that waits for gRPC.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <utility>

#include "agent/control_service.h"
#include "base/result.h"
#include "base/scheduler.h"

namespace volumed {

// Threads: gRPC's callbacks only post; the virtual methods are called on the control thread. Owns
// itself until gRPC says that the call is done.
template <typename Response>
class ControlStream : public grpc::ServerWriteReactor<Response>,
                      public std::enable_shared_from_this<ControlStream<Response>> {
 public:
  // Takes the new stream over. REQUIRES: made by std::make_shared or the like.
  static grpc::ServerWriteReactor<Response>* Start(std::shared_ptr<ControlStream> stream) {
    ControlStream* const raw = stream.get();
    raw->self_ = stream;
    raw->backend_.scheduler.Post([stream = std::move(stream)] { stream->Open(); });
    return raw;
  }

  void OnWriteDone(bool ok) final {
    backend_.scheduler.Post([self = this->shared_from_this(), ok] {
      self->writing_ = false;
      if (!ok) {
        self->End(grpc::Status::CANCELLED);
      } else if (self->last_) {
        self->End(grpc::Status::OK);
      } else if (self->dirty_) {
        self->Send();
      }
    });
  }
  void OnCancel() final {
    backend_.scheduler.Post([self = this->shared_from_this()] {
      // A write in flight comes back as failed, and ends the call then.
      if (!self->writing_) self->End(grpc::Status::CANCELLED);
    });
  }
  void OnDone() final {
    backend_.scheduler.Post([self = this->shared_from_this()] {
      self->Close();
      self->self_.reset();
    });
  }

 protected:
  enum class Next {
    kNothing,
    kMore,
    kLast
  };  // of an answer: not to be sent; sent; sent as the last

  explicit ControlStream(ControlBackend& backend) : backend_(backend) {}

  // Subscribes; an error ends the call. Then Fill is called.
  virtual Status Begin() = 0;
  // Makes the next answer of what is so now; an error ends the call.
  virtual Result<Next> Fill(Response* response) = 0;
  // The opposite of Begin, also after one that failed.
  virtual void Unsubscribe() = 0;

  // Sends what is so now, after the answer that is in flight. To be called after each change.
  void Send() {
    if (ended_) return;
    dirty_ = writing_;
    if (writing_) return;
    response_.Clear();
    const Result<Next> next = Fill(&response_);
    if (!next.ok()) return End(ToGrpcStatus(next.error()));
    if (*next == Next::kNothing) return;
    last_ = *next == Next::kLast;
    writing_ = true;
    this->StartWrite(&response_);
  }
  bool ended() const { return ended_; }
  ControlBackend& backend() { return backend_; }

 private:
  // More callers than this are no people.
  static constexpr int kMaxStreams = 512;

  void Open() {
    opened_ = true;
    if (++backend_.open_streams > kMaxStreams) {
      return End({grpc::StatusCode::RESOURCE_EXHAUSTED,
                  std::to_string(kMaxStreams) + " streams are open already"});
    }
    if (const Status begun = Begin(); !begun.ok()) return End(ToGrpcStatus(begun));
    Send();
  }
  void End(grpc::Status status) {
    if (std::exchange(ended_, true)) return;
    Close();
    this->Finish(std::move(status));
  }
  void Close() {
    ended_ = true;
    if (!std::exchange(opened_, false)) return;
    --backend_.open_streams;
    Unsubscribe();
  }

  ControlBackend& backend_;
  std::shared_ptr<ControlStream> self_;  // while gRPC may call
  Response response_;                    // untouched while a write is in flight
  bool opened_ = false;
  bool writing_ = false;
  bool dirty_ = false;
  bool last_ = false;
  bool ended_ = false;
};

}  // namespace volumed
