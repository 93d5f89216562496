// ClaimBinder: why a claim has no volume, and who has the one that it names.
#include <algorithm>
#include <map>
#include <utility>

#include "volume/claim_binder.h"

namespace volumed {
namespace {

std::string ClassText(const std::string& name) {
  return name.empty() ? "no class" : "class \"" + name + "\"";
}

}  // namespace

std::optional<ClaimBinder::Obstacle> ClaimBinder::WhyNotNamed(const ClaimState& claim) const {
  const std::string& name = claim.object->spec.volume_name;
  const auto found = volumes_.find(name);
  if (found == volumes_.end() || found->second.object == nullptr) {
    return Obstacle{ClaimWait::kVolumeMissing,
                    "PersistentVolume " + name + ", which it names, does not exist"};
  }
  std::string taken = WhyTaken(name, found->second, claim);
  if (!taken.empty()) return Obstacle{ClaimWait::kVolumeTaken, std::move(taken)};
  if (found->second.missing) {
    return Obstacle{ClaimWait::kVolumeMissing,
                    "PersistentVolume " + name + ", which it names, is missing: " + kLeftItsSource};
  }
  if (claim.WasBound()) return std::nullopt;  // the rules were asked then
  const PersistentVolume& volume = *found->second.object;
  const ClaimNeeds needs{*claim.object, claim.decision.storage_class, input_.node, MayGrow(volume)};
  const std::optional<Misfit> misfit = MisfitOfNamed(volume, needs);
  if (!misfit) return std::nullopt;
  return Obstacle{ClaimWait::kVolumeUnfit, WhyUnfit(volume, claim, *misfit)};
}

// "" when the volume is free for the claim that names it.
std::string ClaimBinder::WhyTaken(const std::string& name, const VolumeState& volume,
                                  const ClaimState& claim) const {
  const std::string which = "PersistentVolume " + name + ", which it names, ";
  const auto claim_text = [&claim](const ClaimKey& key) {
    const bool namesake = key == claim.decision.claim;
    return (namesake ? "an earlier claim " : "claim ") + ToString(key);
  };
  if (volume.IsTaken()) {
    const bool bound = volume.binding->state == BindingState::kBound;
    return which + (bound ? "is bound to " : "holds the data of ") +
           claim_text(volume.binding->claim);
  }
  if (const ClaimReference* reserved = volume.Reservation()) {
    return which + "is kept for " + claim_text(KeyOfReference(*reserved));
  }
  return "";
}

std::string ClaimBinder::WhyUnfit(const PersistentVolume& volume, const ClaimState& claim,
                                  Misfit misfit) const {
  std::string text = "PersistentVolume " + volume.metadata.name + ", which it names, is " +
                     std::string(MisfitText(misfit));
  if (misfit == Misfit::kTooSmall) {
    text += ": " + volume.spec.capacity.String() + " for a request of " +
            claim.object->spec.storage.request.String();
  } else if (misfit == Misfit::kStorageClass) {
    text += ": it has " + ClassText(ClassOf(volume)) + ", the claim " +
            ClassText(claim.decision.storage_class);
    const bool by_default = claim.decision.storage_class != ClassOf(*claim.object, nullptr);
    if (by_default) text += ", which is the default";
  }
  return text;
}

void ClaimBinder::Explain(ClaimState& claim) const {
  if (claim.IsSettled()) return;
  if (claim.object->spec.volume_name.empty()) return ExplainNoMatch(claim);
  claim.decision.volume_name = claim.object->spec.volume_name;
  std::optional<Obstacle> obstacle = WhyNotNamed(claim);
  if (!obstacle) return;  // unreachable: it would be bound
  if (claim.WasBound()) return Lose(claim, std::move(obstacle->reason));
  Wait(claim, obstacle->wait, std::move(obstacle->reason));
}

// Volumes of the class that nobody has, and that do not fit all the same; "" if there is none. That
// others have theirs is no news.
std::string ClaimBinder::UnfitOfClass(const ClaimNeeds& needs) const {
  std::map<Misfit, size_t> misfits;
  for (const auto& [name, volume] : volumes_) {
    if (volume.object == nullptr || ClassOf(*volume.object) != needs.storage_class) continue;
    const std::optional<Misfit> misfit = MisfitOfState(volume, needs);
    if (misfit && *misfit != Misfit::kBound) ++misfits[*misfit];
  }
  return misfits.empty() ? "" : ", as " + NoMatchText(misfits);
}

void ClaimBinder::ExplainNoMatch(ClaimState& claim) const {
  const std::string& class_name = claim.decision.storage_class;
  if (WaitsForConsumer(claim)) {
    return Wait(claim, ClaimWait::kFirstConsumer,
                "it waits for the first pod on this node that uses it: class \"" + class_name +
                    "\" binds then (WaitForFirstConsumer)");
  }
  const ClaimNeeds needs{*claim.object, class_name, input_.node};
  std::map<Misfit, size_t> misfits;
  for (const auto& [name, volume] : volumes_) {
    if (volume.object == nullptr) continue;
    if (const std::optional<Misfit> misfit = MisfitOfState(volume, needs)) ++misfits[*misfit];
  }
  const std::string no_match = NoMatchText(misfits) + " (" + ClassText(class_name) + ", " +
                               claim.object->spec.storage.request.String() + ")";
  const StorageClass* storage_class = ClassObjectOf(claim);
  if (storage_class != nullptr && storage_class->provisioner != kNoProvisioner) {
    if (input_.missing_classes.contains(class_name)) {
      return Wait(claim, ClaimWait::kClassMissing,
                  no_match + "; none is provisioned, as StorageClass " + class_name +
                      " is missing: " + kLeftItsSource);
    }
    claim.decision.provisioner = storage_class->provisioner;
    return Wait(claim, ClaimWait::kProvisioning,
                storage_class->provisioner + " is to provision one" + UnfitOfClass(needs));
  }
  const bool is_known = storage_class != nullptr || class_name.empty() ||
                        std::any_of(volumes_.begin(), volumes_.end(), [&](const auto& one) {
                          const PersistentVolumePtr& volume = one.second.object;
                          return volume != nullptr &&
                                 volume->spec.storage_class_name == class_name &&
                                 MisfitOfState(one.second, needs) != Misfit::kBound;
                        });
  Wait(claim, ClaimWait::kNoMatch,
       is_known ? no_match : no_match + "; there is no StorageClass " + class_name);
}

}  // namespace volumed
