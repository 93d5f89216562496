#include "volumemanager/claims/reclaim_check.h"

#include "pluginmgr/deletable_volume_plugin.h"
#include "pluginmgr/recyclable_volume_plugin.h"
#include "volume/csi_translation.h"

namespace volumed {

std::string WhyNotReclaimed(const VolumePluginMgr& plugins, const PersistentVolume& volume,
                            ReclaimAction action) {
  const VolumeSpec spec = AsUsed(VolumeSpec::FromPersistentVolume(volume, false));
  const auto why_not = [](const auto& found) {
    return found.ok() ? std::string() : found.error().message();
  };
  if (action == ReclaimAction::kNone) return "";
  if (action == ReclaimAction::kRecycle) {
    const auto plugin = plugins.FindRecyclablePluginBySpec(spec);
    return plugin.ok() ? why_not((*plugin)->CanRecycle(spec)) : why_not(plugin);
  }
  const auto plugin = plugins.FindDeletablePluginBySpec(spec);
  return plugin.ok() ? why_not((*plugin)->NewDeleter(spec)) : why_not(plugin);
}

}  // namespace volumed
