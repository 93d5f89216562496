#include "agent/csi_serve_settings.h"

#include <sys/un.h>

#include <algorithm>
#include <cstddef>

#include "base/peer_credentials.h"
#include "base/socket_file.h"

namespace volumed {
namespace {

constexpr size_t kLongestRegistration = sizeof(sockaddr_un::sun_path) - 1;

void CheckTargetRoots(std::vector<std::string> roots, std::vector<std::string>& problems) {
  std::sort(roots.begin(), roots.end());
  const auto twice = std::adjacent_find(roots.begin(), roots.end());
  if (twice == roots.end()) return;
  problems.push_back(std::string(kCsiTargetRoots) + ": " + *twice + " is given twice");
}

void CheckCsiSockets(const Config& config, std::vector<std::string>& problems) {
  if (config.csi_serve.empty()) {
    if (config.csi_only) {
      problems.push_back("csi-only: needs csi-serve, or CSI_ENDPOINT in the environment");
    }
    if (!config.csi_registry.empty()) problems.push_back("csi-registry: needs csi-serve");
  }
  if (!config.csi_nodes.empty() && config.csi_profile != CsiProfile::kCentral) {
    problems.push_back("csi-nodes: needs csi-profile: central");
  }
  if (config.csi_serve == config.socket) {
    problems.push_back("csi-serve: must not be the socket of the control API");
  }
  if (config.csi_registry.empty()) {
    if (!config.csi_registered_endpoint.empty()) {
      problems.push_back("csi-registered-endpoint: needs csi-registry");
    }
    return;
  }
  const size_t longest =
      HiddenSocketPath(RegistrationServer::SocketPath(RegistrationSettingsOf(config))).size();
  if (longest > kLongestRegistration) {
    problems.push_back("csi-registry: must be shorter by " +
                       std::to_string(longest - kLongestRegistration) +
                       " bytes, for the socket that is made in it");
  }
}

}  // namespace

std::vector<std::string> ProblemsOfCsiDriver(const Config& config) {
  std::vector<std::string> problems;
  CheckTargetRoots(config.csi_target_roots, problems);
  CheckCsiSockets(config, problems);
  return problems;
}

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
