#include "agent/pod_waiter.h"

#include "agent/departed_pods.h"
#include "agent/pod_lookup.h"
#include "agent/view_codec.h"

namespace volumed {

Status PodWaiter::Begin() {
  const std::string& condition = request_.for_();
  if (condition != "ready" && condition != "gone" && condition != "create") {
    return Error::NotApplied(Code::kInvalidArgument, "for must be 'ready', 'gone' or 'create'");
  }
  observer_ = backend().manager.observers().Add([this](const PodUid& pod) {
    if (!pod_ || *pod_ == pod) Send();
  });
  return OkStatus();
}

std::optional<PodView> PodWaiter::Look() {
  const VolumeManager& manager = backend().manager;
  std::optional<PodView> view = pod_ ? manager.pods().Find(*pod_) : std::nullopt;
  // Another pod of that name does not keep the pod that was seen from being gone.
  if (view || (pod_ && request_.for_() == "gone")) return view;
  const Result<PodUid> found = FindPodUid(manager, request_.pod(), backend().node);
  if (!found.ok()) {
    // The next pod that has the name is another one.
    if (request_.for_() != "gone") pod_.reset();
    return std::nullopt;
  }
  pod_ = *found;
  return manager.pods().Find(*pod_);
}

Result<PodWaiter::Next> PodWaiter::Fill(v1::WaitResponse* response) {
  if (request_.pod().name().empty() && request_.pod().uid().empty()) {
    return Error::NotApplied(Code::kInvalidArgument, "a pod's name or uid is needed");
  }
  const std::string& condition = request_.for_();
  const std::optional<PodView> view = Look();
  // As long as a source may still deliver the pod, or the pod waits for the end of the one that it
  // replaces, it is not certain that the pod does not exist.
  const bool none = !view && backend().manager.Ready() &&
                    FindWaitingPod(backend().catalog, request_.pod(), backend().node) == nullptr;
  if (none && condition == "ready") {
    return Error::NotApplied(Code::kNotFound, "no pod " + DisplayName(request_.pod()));
  }
  if (view) EncodePod(*view, backend().events.Snapshot(view->uid), response->mutable_pod());
  if (condition == "gone") {
    response->set_met(view ? IsDeletedByCommand(*view) : pod_ || none);
    const DepartedPods* const departed = backend().departed;
    const bool has_left =
        none && departed != nullptr && departed->Knows(request_.pod(), backend().node);
    response->set_has_left(has_left);
  } else {
    response->set_met(view && (condition == "create" || view->phase == "Ready"));
  }
  return response->met() ? Next::kLast : Next::kMore;
}

void PodWaiter::Unsubscribe() {
  if (observer_ != 0) backend().manager.observers().Remove(observer_);
}

}  // namespace volumed
