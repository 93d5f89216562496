// What the configuration says of the agent as a CSI driver, as the parts take it.
#pragma once

#include "agent/config.h"
#include "csidriver/csi_server.h"
#include "csidriver/registration_server.h"

namespace volumed {

// REQUIRES, for all: the agent is a driver (csi_serve); for a registration: it registers
// (csi_registry).
//
// Threads: any. Blocks: while the database of groups is asked.
CsiServerSettings CsiServerSettingsOf(const Config& config);
// Pure; threads: any.
RegistrationServerSettings RegistrationSettingsOf(const Config& config);

}  // namespace volumed
