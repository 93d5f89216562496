// PodsWithClaims: the pods of the node that name claims, as decisions about claims read them.
#pragma once

#include <set>
#include <vector>

#include "base/ids.h"
#include "kube/objects.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/claims/claims.h"
#include "volumemanager/desired_state_of_world.h"

namespace volumed {

// Threads: the control thread. Blocks: never. Both states outlive this object.
class PodsWithClaims {
 public:
  PodsWithClaims(const ActualStateOfWorld& actual, const DesiredStateOfWorld& desired)
      : actual_(actual), desired_(desired) {}

  // Notes, for a pod on the node, whether decisions about claims read it. A pod that was noted
  // stays so until Forget(), also if its object names no claim any more.
  void Note(const PodUid& uid, const Pod& pod);
  void Forget(const PodUid& uid) { pods_.erase(uid); }
  // Whether the pod was noted. Decisions about claims read nothing about a pod without claims.
  bool Contains(const PodUid& uid) const { return pods_.contains(uid); }
  // Those of the noted pods whose objects are known, with the persistent volumes that they may
  // have.
  std::vector<ClaimPod> Pods() const;

 private:
  const ActualStateOfWorld& actual_;
  const DesiredStateOfWorld& desired_;
  std::set<PodUid> pods_;
};

}  // namespace volumed
