#include "pluginmgr/recyclable_volume_plugin.h"

#include <utility>

#include "recycler/recycler_pod_template.h"

namespace volumed {

Status RecycleByPod(const VolumeConfig& config, RecyclerPodRunner* pods,
                    const PersistentVolume& volume, const std::string& pv_name, VolumeSource source,
                    const RecycleEventRecorder& recorder, const CallOptions& call) {
  if (pods == nullptr) {
    return Error::NotApplied(Code::kUnimplemented, "this node runs no recycler pods");
  }
  // A copy: kubelet's recycles share one template, and so one another's path.
  ASSIGN_OR_RETURN(Pod pod, config.recycler_pod_template
                                ? Result<Pod>(*config.recycler_pod_template)
                                : LoadRecyclerPodTemplate(config.recycler_pod_template_path));
  RETURN_IF_ERROR(ValidateRecyclerPodTemplate(pod).With("recycler pod template"));
  pod.spec.active_deadline_seconds =
      CalculateTimeoutForVolume(config.recycler_minimum_timeout_seconds,
                                config.recycler_timeout_increment_seconds, volume.spec.capacity);
  pod.spec.volumes[0].source = std::move(source);
  return RecycleVolumeByWatchingPodUntilCompletion(pv_name, std::move(pod), *pods, recorder, call);
}

}  // namespace volumed
