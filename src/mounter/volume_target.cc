#include "mounter/volume_target.h"

#include <utility>

#include "base/strings.h"
#include "kube/pod_facts.h"

namespace volumed {

VolumeTarget PodVolumeTarget(const KubeletPaths& paths, PodPtr pod, const std::string& plugin,
                             const SpecName& spec) {
  const PodSecurityContext& security = pod->spec.security_context;
  VolumeTarget target;
  target.key = {pod->uid(), spec};
  target.place = paths.GetPodVolumeDir(target.key.pod, plugin, spec);
  target.directory = paths.GetPodDir(target.key.pod);
  target.display_name = pod->metadata.name_space + "/" + pod->metadata.name;
  target.owner = {EffectiveFsUser(*pod), security.fs_group, security.fs_group_change_policy};
  target.pod = std::move(pod);
  return target;
}

SafePath MarksOf(const VolumeTarget& target, const std::string& plugin) {
  return target.directory.Below("plugins")
      .Below(EscapeQualifiedName(plugin))
      .Below(target.key.spec.str());
}

Error NoPod(const std::string& what, const VolumeTarget& target) {
  return Error::NotApplied(
      Code::kInvalidArgument,
      what + " is made from a pod, and " + target.place.Display() + " is a place without one");
}

}  // namespace volumed
