// Which persistent volume fits a claim: class, modes, selector, node and size, one rule at a time.
// Source: kubernetes pkg/volume/util (FindMatchingVolume), component-helpers storage/volume
// (pv_helpers.go), pkg/controller/volume/persistentvolume (checkVolumeSatisfyClaim)@v1.36.2.
//
// Pure functions; threads: any. Blocks: never. Errors: none.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/objects.h"

namespace volumed {

using PersistentVolumePtr = std::shared_ptr<const PersistentVolume>;
using PersistentVolumeClaimPtr = std::shared_ptr<const PersistentVolumeClaim>;
using StorageClassPtr = std::shared_ptr<const StorageClass>;

// The node for which volumes are chosen: what a volume's node affinity is held against.
struct BindingNode {
  std::string name;
  StringMap labels;
};

// The class marked as default; of several the newest, of equally old ones the first by name. Null
// if there is none. It is one of `classes`, and valid as long as that. Source:
// pkg/volume/util/storageclass.go (GetDefaultClass).
const StorageClass* DefaultClass(const std::vector<StorageClassPtr>& classes);

// The name of its class, "" for none. The annotation that came before the field wins, as in
// Kubernetes.
std::string ClassOf(const PersistentVolume& volume);
// The same of a claim. `default_class` may be null; it counts for a claim that says nothing about
// its class. A claim that says "" wants a volume without a class.
std::string ClassOf(const PersistentVolumeClaim& claim, const StorageClass* default_class);

// Why a volume is not the one for a claim. A volume counts once, by the first rule that it breaks,
// which is what is most worth knowing of it; NoMatchText() tells them in this order.
enum class Misfit {
  kBound,     // to another claim
  kReserved,  // its claimRef names another claim
  kReleased,  // it holds the data of a claim that is gone
  kFailed,    // it cannot be used, or its reclaim failed
  kBeingDeleted,
  kMissing,  // it has left its source, and nobody has deleted it
  kStorageClass,
  kVolumeMode,    //
  kAttributes,    // volumeAttributesClassName
  kAccessModes,   // the claim asks for one that the volume does not offer
  kSelector,      // the claim's selector does not hold for its labels
  kNodeAffinity,  // it cannot be reached from this node
  kTooSmall,      //
};

// "too small", "of another class": how a count of such volumes is told.
std::string_view MisfitText(Misfit misfit);

// What a claim is measured by. The claim and the node outlive it.
struct ClaimNeeds {
  const PersistentVolumeClaim& claim;
  std::string storage_class;
  const BindingNode& node;
  bool grows = false;  // the named volume may be too small, as MayGrowForClaim() says
};

// By the volume's own fields, for a claim that leaves the choice of its volume open. Nullopt: it
// fits.
//
// Other than Kubernetes, node affinity counts in both binding modes: on a node that binds for
// itself alone a volume of another node is of no use.
std::optional<Misfit> MisfitOf(const PersistentVolume& volume, const ClaimNeeds& needs);

// Whether a volume that names the claim, or that the claim names, may be bound to it although it is
// too small: its class lets it be made larger, and a driver can, so the request may have been
// raised since the claim had the volume. Other than in Kubernetes, where both objects tell of a
// binding for ever, only a record does so here, and records may be lost. `storage_class` is that of
// the volume, null if there is none.
bool MayGrowForClaim(const PersistentVolume& volume, const StorageClass* storage_class);

// For a claim that names the volume, which has no claimRef: selector and node do not count.
std::optional<Misfit> MisfitOfNamed(const PersistentVolume& volume, const ClaimNeeds& needs);

// For a volume whose claimRef names the claim, which does not name it: class, access modes and
// selector do not count.
std::optional<Misfit> MisfitOfReserved(const PersistentVolume& volume, const ClaimNeeds& needs);

// True if `a` is the better choice of two volumes that fit. A claim bound at once takes the volume
// with the fewest access modes, then the smallest; one that waited for its consumer the smallest.
// Of volumes that are alike, the first by name is taken.
bool IsBetterFit(const PersistentVolume& a, const PersistentVolume& b, VolumeBindingMode mode);

// "no PersistentVolume matches: 3 too small, 1 of another class"; without any volume it ends in
// "there is none".
std::string NoMatchText(const std::map<Misfit, size_t>& counts);

}  // namespace volumed
