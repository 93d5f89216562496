// Decides whether `volumectl apply` may have the objects that it is given. An object that another
// source has must be changed in that source.
#pragma once

#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "kube/object_catalog.h"
#include "kube/objects.h"

namespace volumed {

// Threads: the control thread. Blocks: never.
// Errors: FailedPrecondition, not applied, if another source has, or may have, an object of the
// same kind, namespace and name; the message is about the first such object, and names the file, or
// the source of an object that is in no file. A pod without a uid is looked up by the name that it
// would have on this node. An object that is Missing may be applied.
Status CheckNobodyElseHas(const ObjectCatalog& catalog, const NodeName& node,
                          const std::vector<Object>& objects);

}  // namespace volumed
