// What the configuration says of CSI drivers, as the parts take it.
#pragma once

#include <string>

#include "agent/config.h"
#include "agent/csi_client.h"
#include "csi/csi_settings.h"

namespace volumed {

// All are pure; threads: any.
//
// The directory in which drivers register.
std::string RegistryOf(const Config& config);
CsiDriverSettings CsiDriverSettingsOf(const Config& config);
// `named_root`: the root as it is configured, by which drivers may name it too, while that of
// `config` has no links.
CsiClientSettings CsiClientSettingsOf(const Config& config, const std::string& named_root);
CsiPluginSettings CsiPluginSettingsOf(const Config& config);

}  // namespace volumed
