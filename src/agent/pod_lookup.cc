#include "agent/pod_lookup.h"

#include <algorithm>
#include <vector>

#include "kube/static_pod.h"

namespace volumed {

std::string DisplayName(const v1::ObjectRef& ref) {
  if (!ref.uid().empty()) return ref.uid();
  return (ref.namespace_().empty() ? "default" : ref.namespace_()) + "/" + ref.name();
}

bool IsPodName(const PodName& pod, const std::string& name, const NodeName& node) {
  return pod.name == name || pod.uid.str() == name || pod.name == StaticPodName(name, node);
}

Result<PodUid> FindPodUid(const VolumeManager& manager, const v1::ObjectRef& ref,
                          const NodeName& node) {
  if (ref.uid().empty() && ref.name().empty()) {
    return Error::NotApplied(Code::kInvalidArgument, "a pod's name or uid is needed");
  }
  const PodUid by_uid(ref.uid().empty() ? ref.name() : ref.uid());
  if (manager.pods().Has(by_uid)) return by_uid;
  if (ref.uid().empty()) {
    const std::string ns = ref.namespace_().empty() ? "default" : ref.namespace_();
    for (const std::string& name : {ref.name(), StaticPodName(ref.name(), node)}) {
      const PodView* found = nullptr;
      const std::vector<PodView> pods = manager.pods().Named(ns, name);
      for (const PodView& pod : pods) {
        // If two pods have one name, a person means the one that goes on.
        if (found == nullptr || found->phase == "Terminating" || found->phase == "Held") {
          found = &pod;
        }
      }
      if (found != nullptr) return found->uid;
    }
  }
  // The records may have the pod: a caller must not take the answer for its end.
  if (const Status loaded = manager.pods().CheckLoaded(); !loaded.ok()) {
    return Error::NotApplied(
        loaded.error().code(),
        "no pod " + DisplayName(ref) + " is known yet: " + loaded.error().message());
  }
  return Error::NotApplied(Code::kNotFound, "no pod " + DisplayName(ref));
}

const WaitingPod* FindWaitingPod(const ObjectCatalog& catalog, const v1::ObjectRef& ref,
                                 const NodeName& node) {
  const std::string ns = ref.namespace_().empty() ? "default" : ref.namespace_();
  const PodUid by_uid(ref.uid().empty() ? ref.name() : ref.uid());
  for (const auto& [key, pod] : catalog.Waiting()) {
    const bool by_name = ref.uid().empty() && key.name_space == ns &&
                         (key.name == ref.name() || key.name == StaticPodName(ref.name(), node));
    if (by_name || (!by_uid.empty() && pod.uid == by_uid)) return &pod;
  }
  return nullptr;
}

Result<PodUid> FindPodOrSuccessor(const VolumeManager& manager, const ObjectCatalog& catalog,
                                  const v1::ObjectRef& ref, const NodeName& node) {
  Result<PodUid> found = FindPodUid(manager, ref, node);
  if (found.ok() || found.error().code() != Code::kNotFound) return found;
  const WaitingPod* waiting = FindWaitingPod(catalog, ref, node);
  return waiting == nullptr || waiting->uid.empty() ? found : waiting->uid;
}

const VolumeView* FindVolumeByName(const PodView& pod, const std::string& name) {
  for (const VolumeView& volume : pod.volumes) {
    if (volume.spec.str() == name) return &volume;
  }
  for (const VolumeView& volume : pod.volumes) {
    const std::vector<std::string>& names = volume.pod_volumes;
    if (std::find(names.begin(), names.end(), name) != names.end()) return &volume;
  }
  return nullptr;
}

}  // namespace volumed
