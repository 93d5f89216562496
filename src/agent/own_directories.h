// The directories that are the agent's own, which it never gives away, empties or imports.
#pragma once

#include <string>
#include <vector>

#include "agent/config.h"

namespace volumed {

struct OwnDirectory {
  std::string what;  // for people: "the manifest directory"
  std::string path;
};
// All but those of the pools. Pure.
std::vector<OwnDirectory> OwnDirectoriesOf(const Config& config);

}  // namespace volumed
