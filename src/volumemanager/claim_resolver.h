// ClaimResolver: finds the persistent volume behind a pod's volume that names a claim.
#pragma once

#include <memory>
#include <optional>
#include <set>

#include "kube/object_catalog.h"
#include "kube/objects.h"
#include "volumemanager/wanted_problem.h"

namespace volumed {

// Either the volume that the claim has, or the problem that keeps the pod from it: exactly one of
// `volume` and `problem` is set.
struct ResolvedClaim {
  ObjectKey claim;
  // Null if there is none yet; `problem` then says why.
  std::shared_ptr<const PersistentVolume> volume;
  // The uid of the claim to which the volume is bound, also if a problem keeps this pod from it; ""
  // if none is bound.
  std::string claim_uid = {};
  std::optional<WantedProblem> problem = {};
  // Objects whose change may change the answer; the claim is one of them.
  std::set<ObjectKey> objects;
};

// Threads: the control thread. Blocks: never. Errors: none; what is wrong is a problem, with code
// Unavailable if it passes by itself.
class ClaimResolver {
 public:
  virtual ~ClaimResolver() = default;
  // REQUIRES: the volume's source is a persistentVolumeClaim or ephemeral.
  virtual ResolvedClaim Resolve(const Pod& pod, const PodVolume& volume) = 0;
};

}  // namespace volumed
