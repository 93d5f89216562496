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
CsiClientSettings CsiClientSettingsOf(const Config& config);
CsiPluginSettings CsiPluginSettingsOf(const Config& config);

}  // namespace volumed
