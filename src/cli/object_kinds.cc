#include "cli/object_kinds.h"

#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace volumed {

std::string KindNames(bool to_delete) {
  std::vector<std::string_view> names;
  for (const CliKind& kind : kCliKinds) {
    if (kind.can_be_deleted || !to_delete) names.push_back(kind.name);
  }
  return Join(names, ", ");
}

std::string NounNames() {
  std::vector<std::string> names;
  for (const CliNoun& noun : kGetNouns) {
    std::string name(noun.plural);
    if (noun.short_name != noun.singular) name += " (" + std::string(noun.short_name) + ")";
    names.push_back(std::move(name));
  }
  return Join(names, ", ");
}

}  // namespace volumed
