#include "agent/own_directories.h"

namespace volumed {

std::vector<OwnDirectory> OwnDirectoriesOf(const Config& config) {
  std::vector<OwnDirectory> own = {{"the agent's root", config.root}};
  for (const std::string& directory : config.manifest_dirs) {
    own.push_back({"the manifest directory", directory});
  }
  if (!config.volume_plugin_dir.empty()) {
    own.push_back({"the driver directory", config.volume_plugin_dir});
  }
  if (!config.plugins_registry.empty()) {
    own.push_back({"the directory of registrations", config.plugins_registry});
  }
  return own;
}

}  // namespace volumed
