#include "volumemanager/claims/storage_expander.h"

#include <utility>

#include "operation/expand_operations.h"
#include "pluginmgr/expandable_volume_plugin.h"
#include "volume/csi_translation.h"
#include "volume/secrets_of_volume.h"
#include "volume/unique_name.h"

namespace volumed {
StorageExpander::StorageExpander(Parts parts)
    : parts_(parts), queue_(parts.scheduler, [this](const std::string& volume, Wake& wake) {
        Reconcile(volume, wake);
      }) {}

const FailureHistory* StorageExpander::Failure(const std::string& volume) const {
  const auto known = known_.find(volume);
  return known == known_.end() || !known->second.failure ? nullptr : &*known->second.failure;
}

std::string StorageExpander::WaitsFor(const std::string& volume) const {
  const auto known = known_.find(volume);
  if (known == known_.end()) return "";
  const std::optional<RunningOperation> running =
      parts_.operations.FindRunning(ExpandStorageKey(known->second.unique_name));
  return running && running->waits_for ? running->waits_for->text : known->second.waits_for;
}

std::optional<OperationKey> StorageExpander::Growing(const std::string& volume) const {
  const auto known = known_.find(volume);
  if (known == known_.end() || !known->second.in_flight) return std::nullopt;
  return ExpandStorageKey(known->second.unique_name);
}

std::string StorageExpander::WhoLetsGrow(const std::string& volume) const {
  const auto known = known_.find(volume);
  return known == known_.end() ? "" : known->second.who_lets_grow;
}

// ---- what is looked at
// ----------------------------------------------------------------------------

void StorageExpander::ClaimsDecided() {
  for (const auto& [name, decision] : parts_.claims.volumes()) {
    if (known_.contains(name) || MayHaveToGrow(decision)) MarkDirty(name);
  }
  std::erase_if(known_, [this](const auto& one) {
    return !one.second.in_flight && !parts_.claims.volumes().contains(one.first);
  });
}

bool StorageExpander::MayHaveToGrow(const VolumeDecision& volume) const {
  const ClaimResize* resize = parts_.claims.ResizeOf(volume.volume_name);
  if (resize == nullptr || !volume.claim || !IsKeptByAgent(*resize)) return false;
  const PersistentVolumePtr object = parts_.claims.FindVolumeObject(volume.volume_name);
  const PersistentVolumeClaimPtr claim =
      parts_.catalog.FindPersistentVolumeClaim(volume.claim->name_space, volume.claim->name);
  if (object == nullptr || claim == nullptr) return false;
  const Quantity has = EffectiveCapacity(object->spec.capacity, *resize);
  // The row of a volume that was made here may be behind that of its claim, after a crash.
  return claim->spec.storage.request > has || IsOfStorage(resize->status) ||
         (has > object->spec.capacity && parts_.provisioning.Has(volume.volume_name));
}

std::optional<StorageExpander::Case> StorageExpander::CaseOf(const std::string& volume) const {
  const std::optional<ClaimResizeState> state = parts_.claims.FindResize(volume);
  if (!state || !IsKeptByAgent(state->resize)) return std::nullopt;
  const PersistentVolumePtr object = parts_.claims.FindVolumeObject(volume);
  const PersistentVolumeClaimPtr claim =
      parts_.catalog.FindPersistentVolumeClaim(state->claim.name_space, state->claim.name);
  const bool same_claim = object != nullptr && claim != nullptr &&
                          claim->metadata.uid == parts_.claims.BoundUid(state->claim);
  if (!same_claim) return std::nullopt;
  Case now{object,
           claim,
           *state,
           AsUsed(VolumeSpec::FromPersistentVolume(*object, false)),
           UniqueVolumeName(),
           nullptr,
           false};
  const Result<ExpandableVolumePlugin*> plugin =
      parts_.plugins.FindExpandablePluginBySpec(now.spec);
  if (!plugin.ok() || *plugin == nullptr || !(*plugin)->ExpandsStorage(now.spec)) {
    return std::nullopt;
  }
  now.plugin = *plugin;
  const Result<std::string> name = now.plugin->plugin().GetVolumeName(now.spec);
  if (!name.ok()) return std::nullopt;
  now.unique_name = GetUniqueVolumeName(now.plugin->plugin().GetPluginName(), *name);
  const auto storage_class = parts_.catalog.FindStorageClass(now.volume->spec.storage_class_name);
  now.class_allows = storage_class != nullptr && storage_class->allow_volume_expansion;
  return now;
}

void StorageExpander::Retry(const std::string& volume) {
  if (const auto known = known_.find(volume); known != known_.end()) {
    parts_.operations.ResetBackoff(ExpandStorageKey(known->second.unique_name));
  }
  MarkDirty(volume);
}

void StorageExpander::RetryDomain(const std::string& fault_domain) {
  for (const auto& [name, decision] : parts_.claims.volumes()) {
    const PersistentVolumePtr volume = parts_.claims.FindVolumeObject(name);
    if (volume == nullptr || !MayHaveToGrow(decision)) continue;
    const VolumeSpec spec = AsUsed(VolumeSpec::FromPersistentVolume(*volume, false));
    const Result<VolumePlugin*> plugin = parts_.plugins.FindPluginBySpec(spec);
    if (plugin.ok() && (*plugin)->FaultDomain(spec) == fault_domain) Retry(name);
  }
}

void StorageExpander::RetryWith(const ObjectKey& secret) {
  for (const auto& [name, known] : known_) {
    if (!known.failure) continue;
    const PersistentVolumePtr volume = parts_.claims.FindVolumeObject(name);
    if (volume != nullptr && SecretsNamedBy(*volume).contains(secret)) Retry(name);
  }
}

bool StorageExpander::IsOnNode(const UniqueVolumeName& name) const {
  return parts_.actual.devices().Find(name) != nullptr || !parts_.actual.UsersOf(name).empty();
}

// ---- one volume
// -----------------------------------------------------------------------------------

void StorageExpander::Reconcile(const std::string& volume, Wake& wake) {
  if (!parts_.readiness.Ready()) return;  // every source's delivery brings a decision
  const auto known = known_.find(volume);
  const bool is_in_flight = known != known_.end() && known->second.in_flight;
  const std::optional<Case> now = CaseOf(volume);
  if (is_in_flight) {
    // What waits for its driver would keep a volume from being reclaimed whose claim has gone.
    if (!now) parts_.operations.GiveUpWaiting(ExpandStorageKey(known->second.unique_name));
    return;
  }
  if (!now || !now->state.durable) {
    if (!now && known != known_.end()) known_.erase(known);
    return;  // this is called again once the status is on record
  }
  const ClaimResize& resize = now->state.resize;
  if (resize.volume_capacity) parts_.provisioning.SetCapacity(volume, *resize.volume_capacity);
  StorageGrowthQuestion question;
  question.volume_capacity = EffectiveCapacity(now->volume->spec.capacity, resize);
  question.claim_request = now->claim->spec.storage.request;
  question.allocated = resize.allocated;
  question.resize_status = resize.status;
  question.class_allows = now->class_allows;
  question.is_on_node = IsOnNode(now->unique_name);
  question.only_unused = now->plugin->ExpandsOnlyUnused(now->spec);
  const StorageGrowth growth = DecideStorageGrowth(question);
  if (growth.action == StorageGrowthAction::kNothing) {
    // The failure of a size that is infeasible stays to be seen.
    if (known != known_.end() && !IsOfStorage(resize.status)) known_.erase(known);
    return;
  }
  Act(*now, growth, known_[volume], wake);
}

void StorageExpander::Act(const Case& now, const StorageGrowth& growth, Known& known, Wake& wake) {
  const std::string& volume = now.volume->metadata.name;
  known.unique_name = now.unique_name;
  known.waits_for = growth.waits_for;
  if (growth.for_class) return TellNotAllowed(now, known);
  known.who_lets_grow.clear();
  if (growth.for_users) return TellOfUsers(now, known);
  known.told_of_users = false;
  ClaimResize told = now.state.resize;
  switch (growth.action) {
    case StorageGrowthAction::kNothing:
    case StorageGrowthAction::kWait:
      return;
    case StorageGrowthAction::kIntend:
      known.failure.reset();
      parts_.operations.ResetBackoff(ExpandStorageKey(now.unique_name));
      MarkStorageGrows(growth.size, parts_.scheduler.clock().WallUnixMillis(), told);
      return parts_.claims.SetResize(volume, told);
    case StorageGrowthAction::kTakeBack:
      known.failure.reset();
      MarkStorageGrowthTakenBack(told);
      return parts_.claims.SetResize(volume, told);
    case StorageGrowthAction::kExpand:
      return Expand(now, growth, known, wake);
  }
}

// An API server refuses such a claim; here it is in force already.
void StorageExpander::TellNotAllowed(const Case& now, Known& known) {
  const std::string& name = now.volume->spec.storage_class_name;
  const std::string claim = "claim " + ToString(now.state.claim);
  if (name.empty()) {
    known.waits_for =
        "its volume is of no StorageClass, and only allowVolumeExpansion lets it grow";
  } else if (parts_.catalog.FindStorageClass(name) == nullptr) {
    known.waits_for =
        "there is no StorageClass " + name + ", and only allowVolumeExpansion lets it grow";
  } else {
    known.waits_for = "StorageClass " + name + " does not have allowVolumeExpansion";
  }
  const std::string who =
      "the owner of " + (name.empty() ? claim : "StorageClass " + name + ", or of " + claim);
  if (std::exchange(known.who_lets_grow, who) == who) return;
  parts_.events.RecordObjectEvent(ObjectKeyOf(now.state.claim), EventType::kWarning,
                                  kVolumeResizeFailed,
                                  "it asks for more than its volume has: " + known.waits_for);
}

// Nothing has failed, but the owner of the claim may wait for ever.
void StorageExpander::TellOfUsers(const Case& now, Known& known) {
  if (std::exchange(known.told_of_users, true)) return;
  parts_.events.RecordObjectEvent(ObjectKeyOf(now.state.claim), EventType::kWarning,
                                  kVolumeResizeFailed,
                                  "it waits to be made larger: " + known.waits_for +
                                      "; the pods that have it have to end first");
}

void StorageExpander::Expand(const Case& now, const StorageGrowth& growth, Known& known,
                             Wake& wake) {
  const std::string volume = now.volume->metadata.name;
  const StartResult started = parts_.operations.Start(
      ExpandStorage({.volume = now.unique_name,
                     .spec = now.spec,
                     .claim = ToString(now.state.claim),
                     .new_size = growth.size,
                     .old_size = EffectiveCapacity(now.volume->spec.capacity, now.state.resize)}),
      alive_.Guarded([this, volume](const OperationOutcome<ExpandedStorage>& outcome) {
        Expanded(volume, outcome);
      }));
  if (started == StartResult::kStarted) {
    known.in_flight = true;
  } else {
    wake.AfterRefusal(started, parts_.operations, ExpandStorageKey(now.unique_name));
  }
}

void StorageExpander::Expanded(const std::string& volume,
                               const OperationOutcome<ExpandedStorage>& outcome) {
  Known& known = known_[volume];
  known.in_flight = false;
  if (outcome.value) {
    known.failure.reset();
    if (std::optional<ClaimResizeState> state = parts_.claims.FindResize(volume)) {
      MarkStorageGrown(outcome.value->size, outcome.value->needs_node,
                       parts_.scheduler.clock().WallUnixMillis(), state->resize);
      parts_.claims.SetResize(volume, state->resize);
    }
  } else if (!NeverReachedItsDriver(*outcome.failure)) {
    Failed(volume, *outcome.failure, known);
  }
  // Its claim has gone meanwhile: it was not to be deleted while it was made larger.
  if (!CaseOf(volume)) parts_.claims.MarkDirty();
  MarkDirty(volume);
}

void StorageExpander::Failed(const std::string& volume, const OperationFailure& failure,
                             Known& known) {
  NoteFailure(known.failure, failure, parts_.scheduler.clock());
  std::optional<ClaimResizeState> state = parts_.claims.FindResize(volume);
  if (!state) return;
  MarkStorageGrowthFailed(IsInfeasibleGrowth(failure.error),
                          "failed to expand pvc with " + failure.error.message(),
                          parts_.scheduler.clock().WallUnixMillis(), state->resize);
  parts_.claims.SetResize(volume, state->resize);
}

}  // namespace volumed
