#include "volumemanager/claims/volume_expander.h"

#include <algorithm>
#include <utility>

#include "operation/expand_operations.h"
#include "pluginmgr/node_expandable_volume_plugin.h"

namespace volumed {
namespace {

bool IsReadWriteMany(const std::vector<AccessMode>& modes) {
  return std::find(modes.begin(), modes.end(), AccessMode::kReadWriteMany) != modes.end();
}

std::string DisplayName(const ClaimKey& claim) { return ToString(claim); }

}  // namespace

VolumeExpander::VolumeExpander(Parts parts, Hooks hooks)
    : parts_(parts),
      hooks_(std::move(hooks)),
      queue_(parts.scheduler,
             [this](const UniqueVolumeName& name, Wake& wake) { Reconcile(name, wake); }) {}

void VolumeExpander::Retry(const UniqueVolumeName& volume) {
  if (volume.empty()) return;
  parts_.operations.ResetBackoff(ExpandKey(volume));
  if (const auto known = known_.find(volume); known != known_.end()) known->second.in_use = false;
  MarkDirty(volume);
}

const FailureHistory* VolumeExpander::Failure(const UniqueVolumeName& volume) const {
  const auto known = known_.find(volume);
  return known == known_.end() || !known->second.failure ? nullptr : &*known->second.failure;
}

// ---- the decision -------------------------------------------------------------------------------

bool VolumeExpander::IsExpandable(const WantedVolume& wanted) const {
  if (wanted.spec.persistent_volume() == nullptr || wanted.spec.inline_for_csi_migration()) {
    return false;
  }
  const Result<NodeExpandableVolumePlugin*> plugin =
      parts_.plugins.FindNodeExpandablePluginBySpec(wanted.spec);
  return plugin.ok() && *plugin != nullptr && (*plugin)->RequiresFsResize();
}

bool VolumeExpander::NeedsPod(const WantedVolume& wanted) const {
  if (!wanted.has_device) return true;
  const Result<NodeExpandableVolumePlugin*> plugin =
      parts_.plugins.FindNodeExpandablePluginBySpec(wanted.spec);
  return plugin.ok() && *plugin != nullptr && (*plugin)->NeedsPod(wanted.spec);
}

// Whether the volume's device is mounted, or a pod has the volume, as its plugin needs.
bool VolumeExpander::IsOnNode(const UniqueVolumeName& name, const WantedVolume& wanted) const {
  if (NeedsPod(wanted) && PodThatHas(name) == nullptr) return false;
  if (!wanted.has_device) return true;
  const ActualDevice* device = parts_.actual.devices().Find(name);
  return device != nullptr && IsMounted(*device) && !device->in_flight;
}

PodPtr VolumeExpander::PodThatHas(const UniqueVolumeName& name) const {
  PodPtr reader;
  for (const PodVolumeKey& user : parts_.actual.UsersOf(name)) {
    const ActualVolume& volume = *parts_.actual.FindVolume(user);
    const bool there = volume.state == VolumeState::kSetUp || volume.state == VolumeState::kMapped;
    const ActualPod* pod = parts_.actual.FindPod(user.pod);
    if (!there || volume.in_flight || volume.reconstructed || pod == nullptr) continue;
    const WantedVolume* use = parts_.desired.FindUse(user.pod, name);
    if (use != nullptr && !use->spec.read_only()) return pod->object;
    reader = pod->object;
  }
  return reader;
}

ExpansionQuestion VolumeExpander::QuestionOf(const WantedVolume& wanted,
                                             const ClaimResizeState& claim) const {
  const PersistentVolumeSpec& volume = wanted.spec.persistent_volume()->spec;
  const PersistentVolumeClaimPtr object =
      parts_.catalog.FindPersistentVolumeClaim(claim.claim.name_space, claim.claim.name);
  ExpansionQuestion question;
  question.volume_capacity = EffectiveCapacity(volume.capacity, claim.resize);
  question.claim_capacity = claim.resize.capacity;
  question.recorded_size = claim.resize.capacity;
  question.allocated = claim.resize.allocated;
  question.resize_status = claim.resize.status;
  // If the volume's own size is the request, that size is what has to be taken back.
  const bool asks_by_claim = object != nullptr && !IsKeptByAgent(claim.resize);
  // The analyzer does not see that a pointer that is not null points to something.
  // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker)
  question.claim_request = asks_by_claim ? object->spec.storage.request : question.volume_capacity;
  question.read_write_many =
      IsReadWriteMany(object == nullptr ? volume.access_modes : object->spec.access_modes);
  question.node_expansion_not_required =
      object != nullptr &&
      object->metadata.annotations.contains(std::string(kNodeExpansionNotRequired));
  question.read_only = wanted.spec.read_only();
  return question;
}

VolumeExpander::Sizes VolumeExpander::SizesForMount(const WantedVolume& wanted) const {
  Sizes sizes;
  const std::optional<ClaimResizeState> claim = parts_.claims.FindResize(wanted.spec.name().str());
  if (!claim || !IsExpandable(wanted)) return sizes;
  sizes.now = claim->resize.capacity;
  const ExpansionDecision decision = DecideExpansion(QuestionOf(wanted, *claim));
  if (decision.action == ExpansionAction::kExpand) sizes.grow_to = decision.new_size;
  return sizes;
}

// ---- the volume ---------------------------------------------------------------------------------

void VolumeExpander::Reconcile(const UniqueVolumeName& name, Wake& wake) {
  Case now;
  const std::set<PodUid>& users = parts_.desired.UsersOf(name);
  if (users.empty()) return;
  now.pods.assign(users.begin(), users.end());
  now.wanted = WritingUse(parts_.desired, now.pods, name);
  std::optional<ClaimResizeState> claim = parts_.claims.FindResize(now.wanted->spec.name().str());
  if (!claim) return;
  if (!IsExpandable(*now.wanted)) {
    // For such a volume, for example a hostPath, a node has nothing to do.
    if (!IsKeptByAgent(claim->resize) || claim->resize.status != kNodeResizePending) return;
    MarkNodeResizeFinished(
        EffectiveCapacity(now.wanted->spec.persistent_volume()->spec.capacity, claim->resize),
        claim->resize);
    parts_.claims.SetResize(now.wanted->spec.name().str(), claim->resize);
    return;
  }
  if (!IsOnNode(name, *now.wanted)) return;
  now.claim = *claim;
  // When the volume comes to the node it has the size that the claim says, as in kubelet.
  const auto known = known_.try_emplace(name, Known{.size = claim->resize.capacity}).first;
  if (known->second.in_flight) return;
  ExpansionQuestion question = QuestionOf(*now.wanted, *claim);
  question.recorded_size = known->second.size;
  question.in_use = known->second.in_use;
  question.failed_finally =
      known->second.failed == question.allocated.value_or(question.volume_capacity);
  now.decision = DecideExpansion(question);
  Act(name, now, known->second, wake);
}

void VolumeExpander::Act(const UniqueVolumeName& name, const Case& now, Known& known, Wake& wake) {
  switch (now.decision.action) {
    case ExpansionAction::kNothing:
    case ExpansionAction::kUnknownSize:
      known.failure.reset();
      return;
    case ExpansionAction::kWait:
    case ExpansionAction::kGiveUp:
      return;
    case ExpansionAction::kReportDone:
      known.size = now.decision.new_size;
      known.failure.reset();
      MarkDirty(name);
      return;
    case ExpansionAction::kRefuseReadOnly:
      RefuseReadOnly(now, known);
      return;
    case ExpansionAction::kExpand:
      Expand(name, now, known, wake);
      return;
  }
}

void VolumeExpander::RefuseReadOnly(const Case& now, Known& known) {
  if (known.refused == now.decision.new_size) return;
  known.refused = now.decision.new_size;
  TellOfExpansion(parts_.events, {now.pods, DisplayName(now.claim.claim)}, EventType::kWarning,
                  kFileSystemResizeFailed, ExpansionReadOnlyText(now.wanted->spec.name()));
}

void VolumeExpander::Expand(const UniqueVolumeName& name, const Case& now, Known& known,
                            Wake& wake) {
  const std::string volume = now.wanted->spec.name().str();
  const ExpansionDecision& decision = now.decision;
  const bool must_tell = decision.recovers && !decision.claim_already_updated &&
                         now.claim.resize.status != kNodeResizeInProgress;
  if (must_tell) {
    ClaimResize told = now.claim.resize;
    MarkNodeResizeInProgress(parts_.scheduler.clock().WallUnixMillis(), told);
    parts_.claims.SetResize(volume, told);
  }
  if (must_tell || !now.claim.durable) return;  // this is called again once it is on record
  ExpandRequest request{.volume = name,
                        .spec = now.wanted->spec,
                        .target = {},
                        .pods = now.pods,
                        .claim = DisplayName(now.claim.claim),
                        .new_size = decision.new_size,
                        .old_size = known.size,
                        .decision = decision};
  if (PodPtr pod = NeedsPod(*now.wanted) ? PodThatHas(name) : nullptr) {
    request.target =
        PodVolumeTarget(parts_.paths, std::move(pod), now.wanted->plugin_name, request.spec.name());
  }
  const StartResult started = parts_.operations.Start(
      ExpandVolume(std::move(request)),
      alive_.Guarded(
          [this, name, volume, decision](const OperationOutcome<ExpandedVolume>& outcome) {
            Expanded(name, volume, decision, outcome);
          }));
  if (started == StartResult::kStarted) {
    known.in_flight = true;
    parts_.actual.devices().ExpandStarted(name);
  } else {
    wake.AfterRefusal(started, parts_.operations, ExpandKey(name));
  }
}

void VolumeExpander::Expanded(const UniqueVolumeName& name, const std::string& volume,
                              const ExpansionDecision& decision,
                              const OperationOutcome<ExpandedVolume>& outcome) {
  parts_.actual.devices().ExpandDone(name, outcome);
  Known& known = known_[name];
  known.in_flight = false;
  if (outcome.value) {
    known.size = decision.new_size;
    known.failed.reset();
    known.failure.reset();
    if (std::optional<ClaimResizeState> claim = parts_.claims.FindResize(volume)) {
      MarkNodeResizeFinished(decision.new_size, claim->resize);
      parts_.claims.SetResize(volume, claim->resize);
    }
    if (hooks_.grown) hooks_.grown(name);
  } else if (outcome.failure && !NeverReachedItsDriver(*outcome.failure)) {
    Failed(volume, decision, *outcome.failure, known);
  }
  MarkDirty(name);
  hooks_.ended(name);
}

void VolumeExpander::Failed(const std::string& volume, const ExpansionDecision& decision,
                            const OperationFailure& failure, Known& known) {
  NoteFailure(known.failure, failure, parts_.scheduler.clock());
  const ExpansionEnd end = ClassifyExpansionFailure(failure.error, decision);
  known.in_use = end == ExpansionEnd::kInUse;
  if (end != ExpansionEnd::kUnknown) known.failed = decision.new_size;
  std::optional<ClaimResizeState> claim = parts_.claims.FindResize(volume);
  if (!claim) return;
  MarkNodeResizeFailed(end == ExpansionEnd::kInfeasible,
                       "failed to expand pvc with " + failure.error.message(),
                       parts_.scheduler.clock().WallUnixMillis(), claim->resize);
  parts_.claims.SetResize(volume, claim->resize);
}

}  // namespace volumed
