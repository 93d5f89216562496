// What the configuration says of the agent as a CSI driver, as the parts take it.
#pragma once

#include <string>
#include <vector>

#include "agent/config.h"
#include "csidriver/csi_server.h"
#include "csidriver/registration_server.h"

namespace volumed {

// Directories in which callers of the driver may have volumes put.
inline constexpr char kCsiTargetRoots[] = "csi-target-roots";

// The problems that the values alone show, as ProblemsOfValues (agent/config_checks.h) has them;
// also if the agent is no driver. Pure; threads: any.
std::vector<std::string> ProblemsOfCsiDriver(const Config& config);

// REQUIRES, for all that follow: the agent is a driver (csi_serve); for a registration: it
// registers (csi_registry).
//
// Threads: any. Blocks: while the database of groups is asked.
CsiServerSettings CsiServerSettingsOf(const Config& config);
// Pure; threads: any.
RegistrationServerSettings RegistrationSettingsOf(const Config& config);

}  // namespace volumed
