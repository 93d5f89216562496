// Claims of pods: which ones a pod uses, and those that its generic ephemeral volumes bring.
// Source: kubernetes component-helpers storage/ephemeral/ephemeral.go@v1.36.2.
//
// Threads: any. Blocks: no.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "kube/objects.h"

namespace volumed {

// "<pod>-<volume>".
std::string EphemeralClaimName(const Pod& pod, const PodVolume& volume);

// The claim of a generic ephemeral volume: in the pod's namespace, owned by the pod, with a uid
// that depends on the pod's uid and the volume's name alone, so that every start makes the same
// claim. REQUIRES: the volume's source is an EphemeralVolumeSource; the pod has a uid.
PersistentVolumeClaim EphemeralClaimOf(const Pod& pod, const PodVolume& volume);

// Its uid as Kubernetes writes one, for people. On record, in the name of a volume that is made for
// it and as the mark of its directory it has no dashes: with them it would be another claim's.
std::string ShownUid(const PersistentVolumeClaim& ephemeral_claim);

// A claim of that name which somebody made by hand is not the pod's.
// Errors: FailedPrecondition, not applied, with kubelet's text.
Status CheckEphemeralClaimOwner(const Pod& pod, const PersistentVolumeClaim& claim);

struct PodClaim {
  std::string volume;  // of the pod's spec
  std::string claim;   // in the pod's namespace
  bool ephemeral = false;
  friend bool operator==(const PodClaim&, const PodClaim&) = default;
};

// In the order of the pod's volumes; also of volumes that no container uses.
std::vector<PodClaim> ClaimsOfPod(const Pod& pod);

}  // namespace volumed
