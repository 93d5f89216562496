// ControlStream: what the streaming calls of the control API have in common. One answer is in
// flight at a time, everything else runs on the control thread, and the object lives until gRPC is
// done with it.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <utility>

#include "agent/control_backend.h"
#include "base/result.h"
#include "base/scheduler.h"

namespace volumed {

// Threads: gRPC's callbacks only post tasks; the virtual methods are called on the control thread.
// The object owns itself until gRPC says that the call is done. What calls it later, such as a
// timer, holds a weak_ptr. If too many streams are open, the call ends with ResourceExhausted,
// without Begin.
template <typename Response>
class ControlStream : public grpc::ServerWriteReactor<Response>,
                      public std::enable_shared_from_this<ControlStream<Response>> {
 public:
  using Message = Response;

  // Takes over the new stream, and begins it by a task of the control thread. Threads: any.
  // REQUIRES: `stream` is the only owner, made by std::make_shared or the like.
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
      // A write in flight comes back as failed; that ends the call.
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
  };  // what Fill made: no answer; an answer; the last answer

  explicit ControlStream(ControlBackend& backend) : backend_(backend) {}

  // Subscribes to changes; an error ends the call. Fill is called next.
  virtual Status Begin() = 0;
  // Makes the next answer, in a response that is empty, from the present state; an error ends the
  // call. It is not called while an answer is in flight, so changes that come meanwhile share one
  // answer.
  virtual Result<Next> Fill(Response* response) = 0;
  // Undoes Begin, also a Begin that failed or was never called. It is called once.
  virtual void Unsubscribe() = 0;

  // Sends the present state, after the answer that is in flight. To be called after each change, on
  // the control thread; has no effect once the call has ended.
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
  // Whether the call has ended, by the peer or by this side.
  bool ended() const { return ended_; }
  ControlBackend& backend() { return backend_; }

 private:
  // A node has few human users: more streams than this are a mistake of some program.
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
  std::shared_ptr<ControlStream> self_;  // keeps this object alive while gRPC may call it
  Response response_;                    // gRPC reads it while a write is in flight
  bool opened_ = false;
  bool writing_ = false;
  bool dirty_ = false;
  bool last_ = false;
  bool ended_ = false;
};

}  // namespace volumed
