#include "csidriver/csi_answer_stream.h"

#include <grpcpp/server_context.h>

#include <utility>

namespace volumed {

std::shared_ptr<CsiAnswerStream> CsiAnswerStream::Make(grpc::CallbackServerContext& context) {
  std::shared_ptr<CsiAnswerStream> stream(new CsiAnswerStream(context));
  stream->self_ = stream;
  return stream;
}

void CsiAnswerStream::Send(grpc::ByteBuffer message, CsiSent sent) {
  bool has_ended = false;
  {
    MutexLock lock(mu_);
    has_ended = end_.has_value();
    if (!has_ended) {
      is_sending_ = true;
      message_.Swap(&message);
      sent_ = std::move(sent);
    }
  }
  if (has_ended) return sent(false);
  StartWrite(&message_);
}

// A call is finished once, after its last message has come back; and the context, by which that is
// hurried, must not go before it has done so.
void CsiAnswerStream::End(const grpc::Status& status) {
  bool finishes = false;
  {
    MutexLock lock(mu_);
    end_ = status;
    is_cancelling_ = is_sending_;
    finishes = !is_sending_;
  }
  if (!finishes) {
    context_.TryCancel();
    MutexLock lock(mu_);
    is_cancelling_ = false;
    finishes = !is_sending_;
  }
  if (finishes) Finish(status);
}

void CsiAnswerStream::OnWriteDone(bool ok) {
  CsiSent sent;
  std::optional<grpc::Status> end;
  bool finishes = false;
  {
    MutexLock lock(mu_);
    is_sending_ = false;
    sent = std::exchange(sent_, nullptr);
    end = end_;
    finishes = end && !is_cancelling_;
  }
  // Afterwards this may be gone.
  if (finishes) Finish(*end);
  sent(ok && !end);
}

void CsiAnswerStream::OnDone() { const std::shared_ptr<CsiAnswerStream> kept = std::move(self_); }

}  // namespace volumed
