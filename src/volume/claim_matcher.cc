#include "volume/claim_matcher.h"

#include <algorithm>
#include <tuple>

#include "kube/refused_sources.h"
#include "kube/selectors.h"
#include "volume/csi_translation.h"

namespace volumed {
namespace {

constexpr const char* kClassAnnotation = "volume.beta.kubernetes.io/storage-class";
constexpr const char* kDefaultClassAnnotation = "storageclass.kubernetes.io/is-default-class";
constexpr const char* kBetaDefaultClassAnnotation =
    "storageclass.beta.kubernetes.io/is-default-class";

bool IsDefault(const StorageClass& storage_class) {
  const StringMap& annotations = storage_class.metadata.annotations;
  for (const char* name : {kDefaultClassAnnotation, kBetaDefaultClassAnnotation}) {
    const auto found = annotations.find(name);
    if (found != annotations.end() && found->second == "true") return true;
  }
  return false;
}

bool OffersModes(const PersistentVolume& volume, const PersistentVolumeClaim& claim) {
  const std::vector<AccessMode>& offered = volume.spec.access_modes;
  const std::vector<AccessMode>& asked = claim.spec.access_modes;
  return std::all_of(asked.begin(), asked.end(), [&offered](AccessMode mode) {
    return std::find(offered.begin(), offered.end(), mode) != offered.end();
  });
}

bool SameAttributes(const PersistentVolume& volume, const PersistentVolumeClaim& claim) {
  return claim.spec.volume_attributes_class_name.value_or("") ==
         volume.spec.volume_attributes_class_name;
}

bool SelectorHolds(const PersistentVolume& volume, const PersistentVolumeClaim& claim) {
  return !claim.spec.selector || Matches(*claim.spec.selector, volume.metadata.labels);
}

bool ReachesNode(const PersistentVolume& volume, const BindingNode& node) {
  return !volume.spec.node_affinity ||
         Matches(volume.spec.node_affinity->required, node.labels, node.name);
}

bool IsTooSmall(const PersistentVolume& volume, const PersistentVolumeClaim& claim) {
  return volume.spec.capacity < claim.spec.storage.request;
}

}  // namespace

const StorageClass* DefaultClass(const std::vector<StorageClassPtr>& classes) {
  const StorageClass* best = nullptr;
  const auto rank = [](const StorageClass& of) {
    return std::make_tuple(-of.metadata.creation_unix_millis.value_or(0), of.metadata.name);
  };
  for (const StorageClassPtr& candidate : classes) {
    if (!IsDefault(*candidate)) continue;
    if (best == nullptr || rank(*candidate) < rank(*best)) best = candidate.get();
  }
  return best;
}

std::string ClassOf(const PersistentVolume& volume) {
  const auto found = volume.metadata.annotations.find(kClassAnnotation);
  if (found != volume.metadata.annotations.end()) return found->second;
  return volume.spec.storage_class_name;
}

std::string ClassOf(const PersistentVolumeClaim& claim, const StorageClass* default_class) {
  const auto found = claim.metadata.annotations.find(kClassAnnotation);
  if (found != claim.metadata.annotations.end()) return found->second;
  if (claim.spec.storage_class_name) return *claim.spec.storage_class_name;
  return default_class == nullptr ? "" : default_class->metadata.name;
}

std::string_view MisfitText(Misfit misfit) {
  switch (misfit) {
    case Misfit::kBound:
      return "bound to another claim";
    case Misfit::kReserved:
      return "kept for another claim";
    case Misfit::kReleased:
      return "released and not reclaimed";
    case Misfit::kFailed:
      return "failed";
    case Misfit::kBeingDeleted:
      return "being deleted";
    case Misfit::kMissing:
      return "missing: it has left its source, and nobody has deleted it";
    case Misfit::kStorageClass:
      return "of another class";
    case Misfit::kVolumeMode:
      return "of another volume mode";
    case Misfit::kAttributes:
      return "of another volume attributes class";
    case Misfit::kAccessModes:
      return "without the access modes";
    case Misfit::kSelector:
      return "not selected by the claim";
    case Misfit::kNodeAffinity:
      return "not for this node";
    case Misfit::kTooSmall:
      return "too small";
  }
  return "";
}

std::optional<Misfit> MisfitOf(const PersistentVolume& volume, const ClaimNeeds& needs) {
  if (RefusalOf(volume.spec.source)) return Misfit::kFailed;
  if (volume.metadata.deletion_unix_millis) return Misfit::kBeingDeleted;
  if (ClassOf(volume) != needs.storage_class) return Misfit::kStorageClass;
  if (volume.spec.volume_mode != needs.claim.spec.volume_mode) return Misfit::kVolumeMode;
  if (!SameAttributes(volume, needs.claim)) return Misfit::kAttributes;
  if (!OffersModes(volume, needs.claim)) return Misfit::kAccessModes;
  if (!SelectorHolds(volume, needs.claim)) return Misfit::kSelector;
  if (!ReachesNode(volume, needs.node)) return Misfit::kNodeAffinity;
  if (IsTooSmall(volume, needs.claim)) return Misfit::kTooSmall;
  return std::nullopt;
}

bool MayGrowForClaim(const PersistentVolume& volume, const StorageClass* storage_class) {
  if (storage_class == nullptr || !storage_class->allow_volume_expansion) return false;
  const VolumeSpec used = AsUsed(VolumeSpec::FromPersistentVolume(volume, false));
  return used.SourceAs<CsiPersistentVolumeSource>() != nullptr;
}

std::optional<Misfit> MisfitOfNamed(const PersistentVolume& volume, const ClaimNeeds& needs) {
  if (volume.metadata.deletion_unix_millis) return Misfit::kBeingDeleted;
  if (!needs.grows && IsTooSmall(volume, needs.claim)) return Misfit::kTooSmall;
  if (ClassOf(volume) != needs.storage_class) return Misfit::kStorageClass;
  if (!SameAttributes(volume, needs.claim)) return Misfit::kAttributes;
  if (volume.spec.volume_mode != needs.claim.spec.volume_mode) return Misfit::kVolumeMode;
  if (!OffersModes(volume, needs.claim)) return Misfit::kAccessModes;
  return std::nullopt;
}

std::optional<Misfit> MisfitOfReserved(const PersistentVolume& volume, const ClaimNeeds& needs) {
  if (volume.metadata.deletion_unix_millis) return Misfit::kBeingDeleted;
  if (volume.spec.volume_mode != needs.claim.spec.volume_mode) return Misfit::kVolumeMode;
  if (!SameAttributes(volume, needs.claim)) return Misfit::kAttributes;
  if (!ReachesNode(volume, needs.node)) return Misfit::kNodeAffinity;
  if (IsTooSmall(volume, needs.claim)) return Misfit::kTooSmall;
  return std::nullopt;
}

bool IsBetterFit(const PersistentVolume& a, const PersistentVolume& b, VolumeBindingMode mode) {
  const auto rank = [mode](const PersistentVolume& of) {
    const bool at_once = mode == VolumeBindingMode::kImmediate;
    return std::tuple<size_t, const Quantity&, const std::string&>(
        at_once ? of.spec.access_modes.size() : 0, of.spec.capacity, of.metadata.name);
  };
  return rank(a) < rank(b);
}

std::string NoMatchText(const std::map<Misfit, size_t>& counts) {
  std::string text = "no PersistentVolume matches";
  const char* separator = ": ";
  for (const auto& [misfit, count] : counts) {
    text += separator + std::to_string(count) + " " + std::string(MisfitText(misfit));
    separator = ", ";
  }
  return counts.empty() ? text + ": there is none" : text;
}

}  // namespace volumed
