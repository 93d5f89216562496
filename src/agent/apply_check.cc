#include "agent/apply_check.h"

#include <optional>
#include <string>

#include "kube/object_directory.h"
#include "kube/static_pod.h"

namespace volumed {

Status CheckNobodyElseHas(const ObjectCatalog& catalog, const NodeName& node,
                          const std::vector<Object>& objects) {
  for (const Object& object : objects) {
    const ObjectKey key = KeyOnNode(object, node);
    const std::optional<ObjectOrigin> named_by = catalog.NamedBy(key);
    if (!named_by || named_by->source == ObjectDirectory::kSourceName) continue;
    const std::string where = named_by->file.empty()
                                  ? "source " + named_by->source
                                  : named_by->file + " (source " + named_by->source + ")";
    return Error::NotApplied(Code::kFailedPrecondition, ToString(key) + " is in " + where +
                                                            ": change it there, or remove it "
                                                            "there first");
  }
  return OkStatus();
}

}  // namespace volumed
