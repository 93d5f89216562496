#include "volumemanager/found_volumes.h"

#include <memory>
#include <utility>

#include "pluginmgr/attachable_volume_plugin.h"
#include "pluginmgr/block_volume_plugin.h"
#include "pluginmgr/device_mountable_volume_plugin.h"
#include "volume/unique_name.h"

namespace volumed {
namespace {

Result<FoundVolume> ConstructBlock(BlockVolumePlugin& plugin, const KubeletPaths& paths,
                                   const KubeletPaths::PodVolume& found, const CallOptions& call) {
  const SafePath link =
      paths.GetPodVolumeDeviceDir(found.pod, found.plugin).Below(found.spec.str());
  ASSIGN_OR_RETURN(VolumeSpec spec,
                   plugin.ConstructBlockVolumeSpec(found.pod, found.spec, link, call));
  ASSIGN_OR_RETURN(const std::unique_ptr<BlockVolumeUnmapper> unmapper,
                   plugin.NewBlockVolumeUnmapper(found.spec, found.pod));
  ASSIGN_OR_RETURN(const SafePath place, unmapper->GetGlobalMapPath(spec));
  FoundVolume volume{.spec = std::move(spec)};
  volume.has_device = true;
  volume.global_map_path = place.Display();
  return volume;
}

Result<FoundVolume> ConstructMounted(VolumePlugin& plugin, const KubeletPaths& paths,
                                     const KubeletPaths::PodVolume& found,
                                     const CallOptions& call) {
  ASSIGN_OR_RETURN(
      ReconstructedVolume constructed,
      plugin.ConstructVolumeSpec(found.spec,
                                 paths.GetPodVolumeDir(found.pod, found.plugin, found.spec), call));
  FoundVolume volume{.spec = std::move(constructed.spec)};
  if (const DeviceMountableVolumePlugin* mountable = plugin.AsDeviceMountable()) {
    ASSIGN_OR_RETURN(volume.has_device, mountable->CanDeviceMount(volume.spec));
  }
  return volume;
}

// Source: reconstructVolume (needsNameFromSpec).
Result<bool> IsOfTheNode(VolumePlugin& plugin, const FoundVolume& volume) {
  AttachableVolumePlugin* attachable = plugin.AsAttachable();
  if (volume.has_device || attachable == nullptr) return volume.has_device;
  return attachable->CanAttach(volume.spec);
}

}  // namespace

Result<std::optional<FoundVolume>> ConstructFoundVolume(const VolumePluginMgr& plugins,
                                                        const KubeletPaths& paths,
                                                        const KubeletPaths::PodVolume& found,
                                                        const CallOptions& call) {
  ASSIGN_OR_RETURN(VolumePlugin * plugin, plugins.FindPluginForTeardown(found.plugin));
  BlockVolumePlugin* blocks = plugin->AsBlock();
  if (found.is_block && blocks == nullptr) {
    return Error::NotApplied(Code::kUnimplemented,
                             "volume plugin " + found.plugin + " has no block volumes");
  }
  if (!found.is_block && plugin->AsDeviceMountable() == nullptr &&
      plugin->AsAttachable() == nullptr) {
    return std::optional<FoundVolume>();
  }
  ASSIGN_OR_RETURN(FoundVolume volume, found.is_block
                                           ? ConstructBlock(*blocks, paths, found, call)
                                           : ConstructMounted(*plugin, paths, found, call));
  if (plugin->WorksInLane(volume.spec)) volume.driver_domain = plugin->FaultDomain(volume.spec);
  ASSIGN_OR_RETURN(const bool is_of_the_node, IsOfTheNode(*plugin, volume));
  if (is_of_the_node) {
    ASSIGN_OR_RETURN(const std::string name, plugin->GetVolumeName(volume.spec));
    volume.unique_name = GetUniqueVolumeName(plugin->GetPluginName(), name);
  }
  return std::optional<FoundVolume>(std::move(volume));
}

}  // namespace volumed
