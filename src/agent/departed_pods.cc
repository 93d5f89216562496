#include "agent/departed_pods.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "agent/pod_lookup.h"

namespace volumed {

DepartedPods::DepartedPods(VolumeManager& manager, size_t most) : manager_(manager), most_(most) {
  observer_ = manager_.observers().Add([this](const PodUid& pod) {
    if (!pod.empty()) Look(pod);
  });
}

DepartedPods::~DepartedPods() { manager_.observers().Remove(observer_); }

void DepartedPods::Look(const PodUid& pod) {
  const auto known = here_.find(pod);
  if (manager_.pods().Has(pod)) {
    // A pod keeps its name; that of one of an adopted root may be known later.
    if (known != here_.end() && !known->second.name.empty()) return;
    const std::optional<PodView> view = manager_.pods().Find(pod);
    if (view) here_.insert_or_assign(pod, PodName{view->ns, view->name, pod});
    return;
  }
  if (known == here_.end()) return;
  left_.push_back(std::move(known->second));
  here_.erase(known);
  if (left_.size() > most_) left_.pop_front();
}

bool DepartedPods::Knows(const v1::ObjectRef& ref, const NodeName& node) const {
  const std::string ns = ref.namespace_().empty() ? "default" : ref.namespace_();
  return std::any_of(left_.begin(), left_.end(), [&](const PodName& pod) {
    if (!ref.uid().empty()) return pod.uid.str() == ref.uid();
    return pod.uid.str() == ref.name() || (pod.ns == ns && IsPodName(pod, ref.name(), node));
  });
}

}  // namespace volumed
