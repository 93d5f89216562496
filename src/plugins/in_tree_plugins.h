// The volume plugins that are part of the agent.
#pragma once

#include <memory>
#include <vector>

#include "pluginmgr/volume_plugin.h"
#include "plugins/fc.h"
#include "plugins/host_path.h"
#include "plugins/iscsi.h"
#include "plugins/local.h"
#include "plugins/nfs.h"
#include "volumehost/kubelet_paths.h"

namespace volumed {

struct InTreePluginSettings {
  HostPathSettings host_path = {};
  LocalVolumeSettings local = {};
  NfsSettings nfs = {};
  FcSettings fc = {};
  IscsiSettings iscsi = {};
};

// The plugins in kubelet's order of registration, for VolumePluginMgr::InitPlugins.
std::vector<std::unique_ptr<VolumePlugin>> MakeInTreePlugins(InTreePluginSettings settings = {});

// The layouts of plugins, probed ones too, whose devices lie in ways of their own. They hold
// whether or not the plugin is there: what lies below the root may be another run's.
std::vector<KubeletPaths::DeviceLayout> InTreeDeviceLayouts();

}  // namespace volumed
