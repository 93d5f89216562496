#include "cli/object_kinds.h"

#include <vector>

#include "base/strings.h"

namespace volumed {

std::string KindNames(bool objects_alone) {
  std::vector<std::string_view> names;
  for (const CliKind& kind : kCliKinds) {
    if (kind.is_object || !objects_alone) names.push_back(kind.name);
  }
  return Join(names, ", ");
}

}  // namespace volumed
