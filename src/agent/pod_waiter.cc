#include "agent/pod_waiter.h"

#include "agent/pod_lookup.h"
#include "agent/view_codec.h"

namespace volumed {

Status PodWaiter::Begin() {
  if (request_.for_() != "ready" && request_.for_() != "gone") {
    return Error::NotApplied(Code::kInvalidArgument, "for must be 'ready' or 'gone'");
  }
  observer_ = backend().manager.AddObserver([this](const PodUid& pod) {
    if (!pod_ || *pod_ == pod) Send();
  });
  return OkStatus();
}

Result<PodWaiter::Next> PodWaiter::Fill(v1::WaitResponse* response) {
  const VolumeManager& manager = backend().manager;
  if (!pod_) {
    const Result<PodUid> found = FindPodUid(manager, request_.pod());
    if (found.ok()) {
      pod_ = *found;
    } else if (found.error().code() != Code::kNotFound) {
      return found.error();
    }
  }
  const std::optional<PodView> view = pod_ ? manager.FindPod(*pod_) : std::nullopt;
  if (view) EncodePod(*view, backend().events.Snapshot(view->uid), response->mutable_pod());
  response->set_met(request_.for_() == "gone" ? !view : view && view->phase == "Ready");
  return response->met() ? Next::kLast : Next::kMore;
}

void PodWaiter::Unsubscribe() {
  if (observer_ != 0) backend().manager.RemoveObserver(observer_);
}

}  // namespace volumed
