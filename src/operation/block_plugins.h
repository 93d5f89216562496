// What a plugin does for block volumes. Only the operations' own source files include this.
#pragma once

#include <memory>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "pluginmgr/block_volume_plugin.h"
#include "pluginmgr/volume_plugin_mgr.h"

namespace volumed {

// Threads: any. Blocks: never, unless the comment says otherwise.

// Never null. Errors: Unimplemented, not applied, if the volume's plugin has no block volumes;
// those of the look-up.
Result<BlockVolumePlugin*> FindBlockVolumePlugin(const VolumePluginMgr& plugins,
                                                 const VolumeSpec& spec);
Result<BlockVolumePlugin*> FindBlockVolumePlugin(const VolumePluginMgr& plugins,
                                                 const std::string& name);

// By what the record says of the volume, or else by what is on disk. Blocks and Errors: as
// BlockVolumePlugin::NewBlockVolumeUnmapper.
Result<std::unique_ptr<BlockVolumeUnmapper>> MakeBlockVolumeUnmapper(
    BlockVolumePlugin& plugin, const SpecName& spec, const PodUid& pod,
    const std::string& volume_json);

}  // namespace volumed
