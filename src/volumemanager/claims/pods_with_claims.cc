#include "volumemanager/claims/pods_with_claims.h"

#include <utility>

#include "kube/ephemeral_claim.h"

namespace volumed {

void PodsWithClaims::Note(const PodUid& uid, const Pod& pod) {
  if (!ClaimsOfPod(pod).empty()) pods_.insert(uid);
}

std::vector<ClaimPod> PodsWithClaims::Pods() const {
  std::vector<ClaimPod> pods;
  for (const PodUid& uid : pods_) {
    const ActualPod* const found = actual_.FindPod(uid);
    if (found == nullptr || found->object == nullptr) continue;
    const ActualPod& pod = *found;
    ClaimPod of{pod.object, desired_.Find(uid) != nullptr, {}};
    for (const auto& [spec, volume] : pod.volumes) {
      if (!volume.unique_name.empty() && (volume.in_flight || MayBePresent(volume))) {
        of.present.insert(spec);
      }
    }
    pods.push_back(std::move(of));
  }
  return pods;
}

}  // namespace volumed
