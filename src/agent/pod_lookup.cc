#include "agent/pod_lookup.h"

namespace volumed {

std::string DisplayName(const v1::ObjectRef& ref) {
  if (!ref.uid().empty()) return ref.uid();
  return (ref.namespace_().empty() ? "default" : ref.namespace_()) + "/" + ref.name();
}

Result<PodUid> FindPodUid(const VolumeManager& manager, const v1::ObjectRef& ref) {
  if (ref.uid().empty() && ref.name().empty()) {
    return Error::NotApplied(Code::kInvalidArgument, "a pod's name or uid is needed");
  }
  const PodUid by_uid(ref.uid().empty() ? ref.name() : ref.uid());
  if (manager.FindPod(by_uid)) return by_uid;
  if (ref.uid().empty()) {
    const std::string ns = ref.namespace_().empty() ? "default" : ref.namespace_();
    for (const PodView& pod : manager.Pods()) {
      if (pod.ns == ns && pod.name == ref.name()) return pod.uid;
    }
  }
  return Error::NotApplied(Code::kNotFound, "no pod " + DisplayName(ref));
}

}  // namespace volumed
