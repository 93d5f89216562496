#include "agent/pod_list.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "agent/pod_lookup.h"
#include "agent/view_codec.h"

namespace volumed {
namespace {

// The cost of a pod depends on its volumes, so a task is limited by time as well.
constexpr size_t kAll = std::numeric_limits<size_t>::max();
constexpr size_t kMostInATask = 100;
constexpr Duration kLongestTask = std::chrono::milliseconds(4);

// A page names the last pod of the one before it; names of namespaces and pods contain no slash.
std::string PageAfter(const PodName& pod) { return pod.ns + "/" + pod.name + "/" + pod.uid.str(); }

PodName LastOf(const std::string& page) {
  const size_t name = std::min(page.find('/'), page.size());
  const size_t uid = std::min(page.find('/', name + 1), page.size());
  const auto part = [&](size_t from, size_t to) {
    return from < page.size() ? page.substr(from, to - from) : std::string();
  };
  return {page.substr(0, name), part(name + 1, uid), PodUid(part(uid + 1, page.size()))};
}

}  // namespace

PodList::PodList(Parts parts, v1::GetPodsRequest request, v1::GetPodsResponse* response)
    : parts_(std::move(parts)), request_(std::move(request)), response_(response) {
  const PodName after = request_.page().empty() ? PodName() : LastOf(request_.page());
  const std::string& ns = request_.namespace_();
  const std::string& name = request_.name();
  const bool is_filtered = !ns.empty() || !name.empty();
  const size_t page = request_.page_size() > 0 ? request_.page_size() : kAll;
  // One name more than a page tells whether there is another page.
  names_ = parts_.manager.pods().Names(after, is_filtered || page == kAll ? kAll : page + 1);
  if (is_filtered) {
    std::erase_if(names_, [&](const PodName& pod) {
      return (!ns.empty() && pod.ns != ns) || (!name.empty() && !IsPodName(pod, name, parts_.node));
    });
  }
  if (names_.size() > page) {
    names_.resize(page);
    response_->set_next_page(PageAfter(names_.back()));
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
