// The names of what a driver can do, for people.
#pragma once

#include <string>
#include <vector>

#include "csi/csi_driver_record.h"

namespace volumed {

// In the words of csi.proto, "STAGE_UNSTAGE_VOLUME"; of one that this program does not know the
// number. Pure.
std::vector<std::string> PluginCapabilityNames(const CsiDriverFacts& facts);  // with the expansion
std::vector<std::string> NodeCapabilityNames(const CsiDriverFacts& facts);
std::vector<std::string> ControllerCapabilityNames(const CsiDriverFacts& facts);

}  // namespace volumed
