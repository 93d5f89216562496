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

// The plugins that are not here (emptyDir, secret, configMap, downwardAPI, projected, gitRepo) have
// no settings. Pointers in the settings outlive the plugins.
struct InTreePluginSettings {
  HostPathSettings host_path = {};
  LocalVolumeSettings local = {};
  NfsSettings nfs = {};
  FcSettings fc = {};
  IscsiSettings iscsi = {};
};

// The plugins in kubelet's order of registration, for VolumePluginMgr::InitPlugins, which has to be
// called before any is used. Those of flexVolume drivers are not among them: FlexVolumeProber finds
// these.
std::vector<std::unique_ptr<VolumePlugin>> MakeInTreePlugins(InTreePluginSettings settings = {});

// The layouts of plugins, probed ones too, whose devices lie in ways of their own. They hold
// whether or not the plugin is there: what lies below the root may be another run's. They are asked
// in this order. Pure.
std::vector<KubeletPaths::DeviceLayout> InTreeDeviceLayouts();

}  // namespace volumed
