// ClaimResolver: which persistent volume stands behind a volume of a pod that names a claim.
#pragma once

#include <memory>
#include <optional>
#include <set>

#include "kube/object_catalog.h"
#include "kube/objects.h"
#include "volumemanager/wanted_problem.h"

namespace volumed {

struct ResolvedClaim {
  ObjectKey claim;
  // Null: there is none yet, and `problem` says why.
  std::shared_ptr<const PersistentVolume> volume;
  std::string claim_uid = {};  // that it was bound with
  std::optional<WantedProblem> problem = {};
  // Objects whose change may change the answer, the claim among them.
  std::set<ObjectKey> objects;
};

// Threads: the control thread. Blocks: never.
class ClaimResolver {
 public:
  virtual ~ClaimResolver() = default;
  // REQUIRES: the volume's source is a persistentVolumeClaim or ephemeral.
  virtual ResolvedClaim Resolve(const Pod& pod, const PodVolume& volume) = 0;
};

}  // namespace volumed
