#include "pluginmgr/recyclable_volume_plugin.h"

#include <utility>

#include "recycler/recycler_pod_template.h"

namespace volumed {
namespace {

Result<Pod> TemplateOf(const VolumeConfig& config) {
  if (config.recycler_pod_template) return *config.recycler_pod_template;
  const auto manifest = config.other_attributes.find(kRecyclerTemplateAttribute);
  return LoadRecyclerPodTemplate(manifest == config.other_attributes.end() ? "" : manifest->second);
}

}  // namespace

Status RecycleByPod(const VolumeConfig& config, RecyclerPodRunner* pods,
                    const PersistentVolume& volume, const std::string& pv_name, VolumeSource source,
                    const RecycleEventRecorder& recorder, const CallOptions& call) {
  if (pods == nullptr) {
    return Error::NotApplied(Code::kUnimplemented, "this node runs no recycler pods");
  }
  // A copy: kubelet's recycles share one template, and so one another's path.
  ASSIGN_OR_RETURN(Pod pod, TemplateOf(config));
  RETURN_IF_ERROR(ValidateRecyclerPodTemplate(pod).With("recycler pod template"));
  pod.spec.active_deadline_seconds =
      CalculateTimeoutForVolume(config.recycler_minimum_timeout_seconds,
                                config.recycler_timeout_increment_seconds, volume.spec.capacity);
  pod.spec.volumes[0].source = std::move(source);
  return RecycleVolumeByWatchingPodUntilCompletion(pv_name, std::move(pod), *pods, recorder, call);
}

}  // namespace volumed
