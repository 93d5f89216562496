#include "operation/block_plugins.h"

#include <optional>

#include "operation/recorded_volume.h"

namespace volumed {
namespace {

Result<BlockVolumePlugin*> NotNull(const Result<BlockVolumePlugin*>& found,
                                   const std::string& plugin) {
  if (!found.ok() || *found != nullptr) return found;
  return Error::NotApplied(Code::kUnimplemented,
                           "volume plugin " + plugin + " has no block volumes");
}

}  // namespace

Result<BlockVolumePlugin*> FindBlockVolumePlugin(const VolumePluginMgr& plugins,
                                                 const VolumeSpec& spec) {
  ASSIGN_OR_RETURN(const VolumePlugin* plugin, plugins.FindPluginBySpec(spec));
  return NotNull(plugins.FindMapperPluginBySpec(spec), plugin->GetPluginName());
}

Result<BlockVolumePlugin*> FindBlockVolumePlugin(const VolumePluginMgr& plugins,
                                                 const std::string& name) {
  return NotNull(plugins.FindMapperPluginByName(name), name);
}

Result<std::unique_ptr<BlockVolumeUnmapper>> MakeBlockVolumeUnmapper(
    BlockVolumePlugin& plugin, const SpecName& spec, const PodUid& pod,
    const std::string& volume_json) {
  const std::optional<VolumeSpec> recorded = ReadRecordedVolume(volume_json);
  if (recorded && recorded->name() == spec) return plugin.NewBlockVolumeUnmapperOf(*recorded, pod);
  return plugin.NewBlockVolumeUnmapper(spec, pod);
}

}  // namespace volumed
