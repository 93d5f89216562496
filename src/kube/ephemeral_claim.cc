#include "kube/ephemeral_claim.h"

#include <algorithm>

#include "kube/digest.h"

namespace volumed {

std::string EphemeralClaimName(const Pod& pod, const PodVolume& volume) {
  return pod.metadata.name + "-" + volume.name;
}

PersistentVolumeClaim EphemeralClaimOf(const Pod& pod, const PodVolume& volume) {
  const PersistentVolumeClaimTemplate& made_from =
      std::get<EphemeralVolumeSource>(volume.source).volume_claim_template;
  PersistentVolumeClaim claim;
  claim.metadata.name = EphemeralClaimName(pod, volume);
  claim.metadata.name_space = pod.metadata.name_space;
  claim.metadata.uid = HalfSha256Hex("ephemeral claim/" + pod.metadata.uid + "/" + volume.name);
  claim.metadata.labels = made_from.labels;
  claim.metadata.annotations = made_from.annotations;
  claim.metadata.creation_unix_millis = pod.metadata.creation_unix_millis;
  claim.metadata.finalizers = {std::string(kPersistentVolumeClaimProtection)};
  claim.metadata.owner_references = {{std::string(ApiVersionOf(ObjectKind::kPod)),
                                      std::string(ObjectKindName(ObjectKind::kPod)),
                                      pod.metadata.name, pod.metadata.uid, /*controller=*/true}};
  claim.spec = made_from.spec;
  return claim;
}

std::string ShownUid(const PersistentVolumeClaim& ephemeral_claim) {
  std::string shown = ephemeral_claim.metadata.uid;
  // Source: RFC 4122, section 3: groups of 8, 4, 4, 4 and 12 digits. From the back, so that no dash
  // moves the next one's place.
  for (const size_t at : {20U, 16U, 12U, 8U}) shown.insert(at, "-");
  return shown;
}

Status CheckEphemeralClaimOwner(const Pod& pod, const PersistentVolumeClaim& claim) {
  const std::vector<OwnerReference>& owners = claim.metadata.owner_references;
  const bool owned = std::any_of(owners.begin(), owners.end(), [&pod](const OwnerReference& o) {
    return o.controller && o.uid == pod.metadata.uid;
  });
  if (owned && claim.metadata.name_space == pod.metadata.name_space) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           "PVC " + claim.metadata.name_space + "/" + claim.metadata.name +
                               " was not created for pod " + pod.metadata.name_space + "/" +
                               pod.metadata.name + " (pod is not owner)");
}

std::vector<PodClaim> ClaimsOfPod(const Pod& pod) {
  std::vector<PodClaim> claims;
  for (const PodVolume& volume : pod.spec.volumes) {
    if (const auto* of = std::get_if<PersistentVolumeClaimVolumeSource>(&volume.source)) {
      claims.push_back({volume.name, of->claim_name, false});
    } else if (std::holds_alternative<EphemeralVolumeSource>(volume.source)) {
      claims.push_back({volume.name, EphemeralClaimName(pod, volume), true});
    }
  }
  return claims;
}

}  // namespace volumed
