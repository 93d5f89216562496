// The claims that a pod uses, among them those that its generic ephemeral volumes make. Source:
// kubernetes component-helpers storage/ephemeral/ephemeral.go@v1.36.2.
//
// Threads: any. Blocks: no.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "kube/objects.h"

namespace volumed {

// The name "<pod>-<volume>". It is a valid name if the pod was decoded with all rules.
std::string EphemeralClaimName(const Pod& pod, const PodVolume& volume);

// The claim of a generic ephemeral volume: in the pod's namespace, owned by the pod, with a uid
// that depends on the pod's uid and the volume's name alone, so that every start makes the same
// claim. REQUIRES: the volume's source is an EphemeralVolumeSource; the pod has a uid.
PersistentVolumeClaim EphemeralClaimOf(const Pod& pod, const PodVolume& volume);

// The claim's uid as Kubernetes writes one, for people. In the records, in the name of a volume
// that is made for the claim, and in the mark of that volume's directory, the uid has no dashes:
// with dashes it would be the uid of another claim.
std::string ShownUid(const PersistentVolumeClaim& ephemeral_claim);

// Checks that the claim is the pod's, and not one of the same name that somebody made by hand.
// Errors: FailedPrecondition, not applied, with kubelet's text.
Status CheckEphemeralClaimOwner(const Pod& pod, const PersistentVolumeClaim& claim);

// A claim that a volume of a pod uses.
struct PodClaim {
  std::string volume;      // of the pod's spec
  std::string claim;       // in the pod's namespace
  bool ephemeral = false;  // the volume makes the claim itself
  friend bool operator==(const PodClaim&, const PodClaim&) = default;
};

// In the order of the pod's volumes; includes volumes that no container uses.
std::vector<PodClaim> ClaimsOfPod(const Pod& pod);

}  // namespace volumed
