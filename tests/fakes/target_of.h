// The target of a pod's volume, for tests that ask a plugin themselves.
#pragma once

#include <memory>
#include <utility>

#include "mounter/volume_target.h"
#include "pluginmgr/volume_plugin.h"

namespace volumed {

inline VolumeTarget TargetOf(const KubeletPaths& paths, const VolumePlugin& plugin,
                             const VolumeSpec& spec, Pod pod) {
  return PodVolumeTarget(paths, std::make_shared<const Pod>(std::move(pod)), plugin.GetPluginName(),
                         spec.name());
}

}  // namespace volumed
