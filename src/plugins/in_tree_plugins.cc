#include "plugins/in_tree_plugins.h"

#include <utility>

#include "plugins/config_map.h"
#include "plugins/downward_api.h"
#include "plugins/empty_dir.h"
#include "plugins/fc_names.h"
#include "plugins/flex_volume_places.h"
#include "plugins/git_repo.h"
#include "plugins/host_path.h"
#include "plugins/iscsi_names.h"
#include "plugins/projected.h"
#include "plugins/secret.h"

namespace volumed {

std::vector<std::unique_ptr<VolumePlugin>> MakeInTreePlugins(InTreePluginSettings settings) {
  std::vector<std::unique_ptr<VolumePlugin>> plugins;
  plugins.push_back(std::make_unique<EmptyDirPlugin>());
  plugins.push_back(std::make_unique<GitRepoPlugin>());
  plugins.push_back(std::make_unique<HostPathPlugin>(std::move(settings.host_path)));
  plugins.push_back(std::make_unique<NfsPlugin>(std::move(settings.nfs)));
  plugins.push_back(std::make_unique<SecretPlugin>());
  plugins.push_back(std::make_unique<IscsiPlugin>(std::move(settings.iscsi)));
  plugins.push_back(std::make_unique<DownwardApiPlugin>());
  plugins.push_back(std::make_unique<FcPlugin>(std::move(settings.fc)));
  plugins.push_back(std::make_unique<ConfigMapPlugin>());
  plugins.push_back(std::make_unique<ProjectedPlugin>());
  plugins.push_back(std::make_unique<LocalVolumePlugin>(settings.local));
  return plugins;
}

std::vector<KubeletPaths::DeviceLayout> InTreeDeviceLayouts() {
  return {FlexDeviceAt, FcDeviceAt, IscsiDeviceAt};
}

}  // namespace volumed
