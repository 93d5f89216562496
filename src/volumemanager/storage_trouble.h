// What ails storage of the node on which volumes of pods lie.
#pragma once

#include <cstdint>
#include <string>

namespace volumed {

struct StorageTrouble {
  std::string step;  // a word for programs: "PoolShort"
  std::string text;  // for people
  int64_t since_unix_ms = 0;
  bool is_warning = false;  // it keeps nothing from being done
};

}  // namespace volumed
