// The kinds that `describe`, `delete` and completion know: a new kind is one row. The agent decides
// what a word means; a kind without a row works too, and is not offered.
#pragma once

#include <string_view>

namespace volumed {

struct CliKind {
  std::string_view name;   // as it is offered
  bool is_object = false;  // can be deleted: a volume is a part of a pod
};

inline constexpr CliKind kCliKinds[] = {
    {"pod", true},
    {"volume", false},
    {"secret", true},
    {"configmap", true},
    {"node", true},
    {"persistentvolume", true},
    {"persistentvolumeclaim", true},
    {"storageclass", true},
    {"csidriver", true},
};

}  // namespace volumed
