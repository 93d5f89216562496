#include "agent/pod_list.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "agent/page_token.h"
#include "agent/pod_lookup.h"
#include "agent/view_codec.h"

namespace volumed {
namespace {

// The cost of a pod depends on its volumes, so a task is limited by time as well.
constexpr size_t kAll = std::numeric_limits<size_t>::max();
constexpr size_t kMostInATask = 100;
constexpr Duration kLongestTask = std::chrono::milliseconds(4);

bool IsAskedFor(const PodName& pod, const v1::GetPodsRequest& request, const NodeName& node) {
  return (request.namespace_().empty() || pod.ns == request.namespace_()) &&
         (request.name().empty() || IsPodName(pod, request.name(), node));
}

}  // namespace

Result<PodName> PodList::LastBefore(const Parts& parts, const v1::GetPodsRequest& request) {
  if (const Status loaded = parts.manager.pods().CheckLoaded(); !loaded.ok()) {
    return Error::NotApplied(loaded.error().code(),
                             "the pods are not known yet: " + loaded.error().message());
  }
  if (request.page().empty()) return PodName();
  ASSIGN_OR_RETURN(PodName last, ParsePodPageToken(request.page()));
  if (IsAskedFor(last, request, parts.node)) return last;
  return Error::NotApplied(Code::kInvalidArgument,
                           "the page is of a list of other pods than this request asks for");
}

PodList::PodList(Parts parts, v1::GetPodsRequest request, const PodName& last_before,
                 v1::GetPodsResponse* response)
    : parts_(std::move(parts)), request_(std::move(request)), response_(response) {
  const bool is_filtered = !request_.namespace_().empty() || !request_.name().empty();
  const size_t page = request_.page_size() > 0 ? request_.page_size() : kAll;
  // One name more than a page tells whether there is another page.
  names_ = parts_.manager.pods().Names(last_before, is_filtered || page == kAll ? kAll : page + 1);
  if (is_filtered) {
    std::erase_if(names_,
                  [this](const PodName& pod) { return !IsAskedFor(pod, request_, parts_.node); });
  }
  if (names_.size() > page) {
    names_.resize(page);
    response_->set_next_page(PodPageToken(names_.back()));
  }
}

bool PodList::Continue() {
  const TimePoint end = parts_.clock.Now() + kLongestTask;
  for (size_t count = 0; count < kMostInATask && next_ < names_.size(); ++count) {
    Add(names_[next_++]);
    if (parts_.clock.Now() >= end) break;
  }
  return next_ >= names_.size();
}

void PodList::Add(const PodName& pod) {
  const std::optional<PodView> view = parts_.manager.pods().Find(pod.uid);
  if (!view) return;  // it has gone since the names were taken
  if (request_.summary()) {
    EncodePodSummary(*view, response_->add_pods());
  } else {
    EncodePod(*view, parts_.events.Snapshot(pod.uid), response_->add_pods());
  }
}

}  // namespace volumed
