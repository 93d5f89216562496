#include "agent/csi_settings_of_config.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace volumed {
namespace {

// Of one driver at a time. Operations are bounded by its lane, and as many may take volumes away;
// the rest is for questions, and for what people ask.
constexpr int kMostCallsUnderWay = 2 * kMostCsiCallsPerDriver + 64;

// Whoever wrote the path into the configuration trusts its directory.
SafePath TrustedPlace(const std::string& path) {
  const size_t slash = path.rfind('/');
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

// What the agent reads, and obeys, beside its root.
std::set<std::string> OwnPlacesOf(const Config& config) {
  std::vector<std::string> all = config.manifest_dirs;
  all.push_back(config.volume_plugin_dir);
  all.push_back(config.plugins_registry);
  all.push_back(config.host_path_recycler_template);
  std::set<std::string> places;
  for (const std::string& path : all) {
    std::string clean = std::filesystem::path(path).lexically_normal().string();
    if (clean.ends_with('/')) clean.pop_back();
    if (clean.starts_with('/')) places.insert(std::move(clean));
  }
  return places;
}

}  // namespace

std::string RegistryOf(const Config& config) {
  return config.plugins_registry.empty() ? config.root + "/plugins_registry"
                                         : config.plugins_registry;
}

CsiDriverSettings CsiDriverSettingsOf(const Config& config) {
  CsiDriverSettings settings;
  settings.most_calls = config.csi_calls_per_driver;
  settings.first_calls = std::min(settings.first_calls, settings.most_calls);
  settings.call = config.deadline_csi_call;
  settings.probe_period = config.csi_probe_period;
  return settings;
}

CsiClientSettings CsiClientSettingsOf(const Config& config, const std::string& named_root) {
  CsiClientSettings settings;
  settings.registry = RegistryOf(config);
  settings.owners = config.csi_socket_owners;
  settings.drivers.driver = CsiDriverSettingsOf(config);
  for (const auto& [driver, path] : config.csi_controller_endpoints) {
    settings.drivers.controllers[driver] = TrustedPlace(path);
  }
  settings.drivers.endpoint_directories = config.csi_endpoint_dirs;
  settings.drivers.endpoint_directories.push_back(config.root);
  if (named_root != config.root) settings.drivers.endpoint_directories.push_back(named_root);
  settings.drivers.endpoint_directories.push_back(settings.registry);
  settings.roots = std::make_shared<TrustedRoots>(std::map<std::string, std::string>{
      {config.root, config.root}, {named_root, config.root}, {settings.registry, ""}});
  settings.channel.width = kMostCallsUnderWay;
  settings.channel.longest_call = config.deadline_csi_call;
  settings.channel.connection.most_received_bytes = static_cast<int>(config.csi_max_message);
  return settings;
}

CsiPluginSettings CsiPluginSettingsOf(const Config& config) {
  CsiPluginSettings settings;
  settings.attach = config.csi_attach;
  settings.level = config.csi_level;
  settings.plain_directories = config.csi_plain_directories;
  settings.own_places = OwnPlacesOf(config);
  settings.republish_period = config.csi_republish_period;
  settings.absent_limit = config.driver_absent_limit;
  settings.deadline = config.deadline_csi_call;
  return settings;
}

}  // namespace volumed
