#include "agent/csi_serve_settings.h"

#include "base/peer_credentials.h"

namespace volumed {

CsiServerSettings CsiServerSettingsOf(const Config& config) {
  CsiServerSettings settings;
  settings.socket = config.csi_serve;
  settings.group = FindGroup(config.csi_serve_group);
  settings.limits.calls = static_cast<size_t>(config.csi_serve_calls);
  settings.limits.rate = config.csi_serve_rate;
  settings.most_message_bytes = static_cast<int>(config.csi_serve_message);
  return settings;
}

RegistrationServerSettings RegistrationSettingsOf(const Config& config) {
  RegistrationServerSettings settings;
  settings.directory = config.csi_registry;
  settings.driver = config.csi_driver_name;
  settings.endpoint =
      config.csi_registered_endpoint.empty() ? config.csi_serve : config.csi_registered_endpoint;
  return settings;
}

}  // namespace volumed
