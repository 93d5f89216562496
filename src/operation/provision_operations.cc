#include "operation/provision_operations.h"

#include <memory>
#include <string>
#include <utility>

#include "operation/call_options.h"
#include "operation/operation_executor.h"
#include "operation/operation_parts.h"
#include "operation/operation_traits.h"
#include "operation/reclaim_operations.h"
#include "operation/storage_steps.h"
#include "pluginmgr/provisionable_volume_plugin.h"

namespace volumed {
namespace {

constexpr const char* kProvisionOperation = "volume_provision";
constexpr const char* kUndoProvisionOperation = "volume_undo_provision";

std::optional<StorageName> MadeStorageOf(const PersistentVolume& volume) {
  return StorageNameOf(VolumeSpec::FromPersistentVolume(volume, false));
}

// Asked once the driver has answered: only then it is known which storage that is, and others have
// come since the volume was asked for. Where other storage is, was planned.
Status TakeIfNew(const OperationParts& parts, const PersistentVolume& made) {
  const std::optional<StorageName> storage = MadeStorageOf(made);
  if (!storage || storage->driver.empty()) return OkStatus();
  return parts.storage.TakeMade(made.metadata.name, *storage);
}

VolumeOptions PlannedOptionsOf(const ProvisionRequest& request) {
  VolumeOptions options = request.options;
  if (!request.plan.empty()) options.plan = VolumePlan{request.planned, request.plan};
  return options;
}

Result<std::unique_ptr<Provisioner>> ProvisionerOf(const OperationParts& parts,
                                                   const ProvisionRequest& request) {
  ASSIGN_OR_RETURN(ProvisionableVolumePlugin * plugin,
                   parts.plugins.FindProvisionablePluginByName(request.plugin_name));
  VolumeOptions options = PlannedOptionsOf(request);
  options.may_be_new = [&parts](const PersistentVolume& made) { return TakeIfNew(parts, made); };
  return plugin->NewProvisioner(options);
}

CallOptions CallOf(const OperationParts& parts, const ProvisionRequest& request,
                   OperationProgress& progress) {
  CallOptions call = OperationCall(ProvisionKey(request.planned.metadata.name).ToString(),
                                   request.plugin_name, "", progress);
  call.deadline = Deadline::After(parts.host.clock, parts.settings.provision);
  return call;
}

// The volume that an undo has begun to delete; nullopt if there is none.
Result<std::optional<PersistentVolume>> BegunToUndo(const OperationParts& parts,
                                                    const PersistentVolume& planned) {
  ASSIGN_OR_RETURN(const std::optional<StorageName> begun,
                   parts.storage.BegunOfDriver(ReclaimStorageHolder(planned).id));
  PersistentVolume made = planned;
  auto* const source = std::get_if<CsiPersistentVolumeSource>(&made.spec.source);
  if (!begun || source == nullptr || source->driver != begun->driver) {
    return std::optional<PersistentVolume>();
  }
  source->volume_handle = begun->path;
  return std::optional(std::move(made));
}

Status UndoMade(const OperationParts& parts, const ProvisionRequest& request,
                Provisioner& provisioner, const PersistentVolume& made, const CallOptions& call) {
  const ReclaimRequest reclaim{std::make_shared<const PersistentVolume>(made),
                               ReclaimAction::kDelete, request.claim_uid};
  const Status undone = WithReclaimedStorage(
      parts, reclaim, call,
      [&](const CallOptions& approved) { return provisioner.Undo(made, approved); });
  // What is still there may be deleted by hand; the next try asks anew.
  parts.storage.ForgetMade(made.metadata.name);
  return undone;
}

// As long as the outcome of an undo's DeleteVolume is open, the same call follows, and no
// CreateVolume: the driver may answer the volume that is going, or, if it does not know the name
// any more, make another one, so that nobody would go on with the first. False if no undo has
// begun.
Result<bool> EndBegunUndo(const OperationParts& parts, const ProvisionRequest& request,
                          Provisioner& provisioner, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<PersistentVolume> begun,
                   BegunToUndo(parts, request.planned));
  if (!begun) return false;
  // Records that lost their tail may call a volume planned that was made and used.
  RETURN_IF_ERROR(
      parts.host.irreversible.Admit(IrreversibleStep::kDelete, request.planned.metadata.name));
  RETURN_IF_ERROR(UndoMade(parts, request, provisioner, *begun, call));
  return true;
}

Result<PersistentVolume> Provision(const OperationParts& parts, const ProvisionRequest& request,
                                   OperationProgress& progress) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Provisioner> provisioner, ProvisionerOf(parts, request));
  ASSIGN_OR_RETURN(const PersistentVolume plan, provisioner->Plan());
  if (plan.spec.source != request.planned.spec.source) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "volume " + request.planned.metadata.name +
                                 " was planned at another place than the configuration names now");
  }
  if (const std::optional<StorageName> storage = MadeStorageOf(plan)) {
    RETURN_IF_ERROR(parts.storage.CheckNotOwn(*storage, CallOf(parts, request, progress)));
  }
  const CallOptions call = CallOf(parts, request, progress);
  // The claim wants its volume again. That this try was not applied says nothing of the volume.
  if (const Result<bool> ended = EndBegunUndo(parts, request, *provisioner, call); !ended.ok()) {
    return ended.error().With("end the undo that was begun").AsMaybeApplied();
  }
  // A claim whose uid was lost with the records would get a second, empty volume.
  RETURN_IF_ERROR(
      parts.host.irreversible.Admit(IrreversibleStep::kProvision, request.planned.metadata.name));
  // Nobody selects a node here: the claim is this node's.
  return provisioner->Provision(nullptr, request.options.allowed_topologies, call);
}

Status Undo(const OperationParts& parts, const ProvisionRequest& request,
            OperationProgress& progress) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Provisioner> provisioner, ProvisionerOf(parts, request));
  const CallOptions call = CallOf(parts, request, progress);
  ASSIGN_OR_RETURN(const bool is_done, EndBegunUndo(parts, request, *provisioner, call));
  if (is_done) return OkStatus();
  // As above.
  RETURN_IF_ERROR(
      parts.host.irreversible.Admit(IrreversibleStep::kDelete, request.planned.metadata.name));
  ASSIGN_OR_RETURN(const std::optional<PersistentVolume> made,
                   provisioner->FindMade(request.planned, call));
  if (!made) return OkStatus();
  if (made->spec.source == request.planned.spec.source) return provisioner->Undo(*made, call);
  RETURN_IF_ERROR(TakeIfNew(parts, *made));
  return UndoMade(parts, request, *provisioner, *made, call);
}

OperationTraits TraitsOfRequest(const OperationParts& parts, const char* name,
                                const ProvisionRequest& request) {
  const VolumeSpec spec = VolumeSpec::FromPersistentVolume(request.planned, false);
  OperationTraits traits = TraitsOf(parts, ProvisionKey(request.planned.metadata.name), name, spec);
  if (traits.plugin_name.empty()) traits.plugin_name = request.plugin_name;
  traits.domain = DriverLaneOf(parts, spec);
  return traits;
}

}  // namespace

OperationKey ProvisionKey(const std::string& volume_name) {
  return OperationKey(UniqueVolumeName("provision/" + volume_name));
}

OperationTraits ProvisionVolume::Traits(const OperationParts& parts) const {
  OperationTraits traits = TraitsOfRequest(parts, kProvisionOperation, request);
  const auto plugin = parts.plugins.FindProvisionablePluginByName(request.plugin_name);
  if (!plugin.ok()) return traits;
  // Nobody mounts, unmounts or changes a volume while it is cloned.
  const UniqueVolumeName cloned = (*plugin)->DeviceOfContent(PlannedOptionsOf(request));
  if (cloned.empty()) return traits;
  traits.device = cloned;
  traits.use = DeviceUse::kExclusive;
  return traits;
}

std::optional<OperationFailure> ProvisionVolume::Run(const OperationParts& parts,
                                                     OperationProgress& progress,
                                                     PersistentVolume& result) const {
  progress.EnterStep("Provision");
  Result<PersistentVolume> made = Provision(parts, request, progress);
  if (!made.ok()) return OperationFailure{kProvisionOperation, "Provision", made.error()};
  result = std::move(made).value();
  return std::nullopt;
}

OperationTraits UndoProvision::Traits(const OperationParts& parts) const {
  return TraitsOfRequest(parts, kUndoProvisionOperation, request);
}

std::optional<OperationFailure> UndoProvision::Run(const OperationParts& parts,
                                                   OperationProgress& progress, Unit&) const {
  progress.EnterStep("Undo");
  const Status undone = Undo(parts, request, progress);
  if (undone.ok()) return std::nullopt;
  return OperationFailure{kUndoProvisionOperation, "Undo", undone.error()};
}

}  // namespace volumed
