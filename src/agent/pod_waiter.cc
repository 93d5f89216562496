#include "agent/pod_waiter.h"

#include "agent/pod_lookup.h"
#include "agent/view_codec.h"

namespace volumed {

grpc::ServerWriteReactor<v1::WaitResponse>* PodWaiter::Start(Scheduler& scheduler,
                                                             VolumeManager& manager,
                                                             const EventLog& events,
                                                             v1::WaitRequest request) {
  std::shared_ptr<PodWaiter> waiter(new PodWaiter(scheduler, manager, events, std::move(request)));
  waiter->self_ = waiter;
  scheduler.Post([waiter] { waiter->Begin(); });
  return waiter.get();
}

void PodWaiter::Begin() {
  if (request_.for_() != "ready" && request_.for_() != "gone") {
    End({grpc::StatusCode::INVALID_ARGUMENT, "for must be 'ready' or 'gone'"});
    return;
  }
  observer_ = manager_.AddObserver([this](const PodUid& pod) { Changed(pod); });
  Send();
}

void PodWaiter::Changed(const PodUid& pod) {
  if (pod_ && *pod_ != pod) return;
  Send();
}

void PodWaiter::Send() {
  if (ended_) return;
  if (writing_) {
    dirty_ = true;
    return;
  }
  if (!pod_) {
    if (Result<PodUid> found = FindPodUid(manager_, request_.pod()); found.ok()) {
      pod_ = *found;
    } else if (found.error().code() != Code::kNotFound) {
      End({grpc::StatusCode::INVALID_ARGUMENT, found.error().message()});
      return;
    }
  }
  response_.Clear();
  const std::optional<PodView> view = pod_ ? manager_.FindPod(*pod_) : std::nullopt;
  if (view) EncodePod(*view, events_.Snapshot(view->uid), response_.mutable_pod());
  response_.set_met(request_.for_() == "gone" ? !view : view && view->phase == "Ready");
  dirty_ = false;
  writing_ = true;
  StartWrite(&response_);
}

void PodWaiter::OnWriteDone(bool ok) {
  scheduler_.Post([self = shared_from_this(), ok] {
    self->writing_ = false;
    if (!ok) {
      self->End(grpc::Status::CANCELLED);
    } else if (self->response_.met()) {
      self->End(grpc::Status::OK);
    } else if (self->dirty_) {
      self->Send();
    }
  });
}

void PodWaiter::OnCancel() {
  scheduler_.Post([self = shared_from_this()] {
    // A write in flight comes back as failed, and ends the call then.
    if (!self->writing_) self->End(grpc::Status::CANCELLED);
  });
}

void PodWaiter::End(grpc::Status status) {
  if (ended_) return;
  ended_ = true;
  if (observer_ != 0) manager_.RemoveObserver(observer_);
  Finish(std::move(status));
}

void PodWaiter::OnDone() {
  scheduler_.Post([self = shared_from_this()] {
    if (!self->ended_ && self->observer_ != 0) self->manager_.RemoveObserver(self->observer_);
    self->self_.reset();
  });
}

}  // namespace volumed
