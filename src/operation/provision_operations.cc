#include "operation/provision_operations.h"

#include <memory>
#include <string>

#include "operation/call_options.h"
#include "pluginmgr/provisionable_volume_plugin.h"

namespace volumed {
namespace {

Result<std::unique_ptr<Provisioner>> ProvisionerOf(const ProvisionParts& parts,
                                                   const ProvisionRequest& request) {
  ASSIGN_OR_RETURN(ProvisionableVolumePlugin * plugin,
                   parts.plugins.FindProvisionablePluginByName(request.plugin_name));
  return plugin->NewProvisioner(request.options);
}

CallOptions CallOf(const ProvisionParts& parts, const ProvisionRequest& request,
                   OperationProgress& progress) {
  CallOptions call = OperationCall(ProvisionKey(request.planned.metadata.name).ToString(),
                                   request.plugin_name, progress);
  call.deadline = Deadline::After(parts.host.clock, parts.settings.provision);
  return call;
}

}  // namespace

Result<PersistentVolume> RunProvision(const ProvisionParts& parts, const ProvisionRequest& request,
                                      OperationProgress& progress) {
  progress.EnterStep("Provision");
  ASSIGN_OR_RETURN(const std::unique_ptr<Provisioner> provisioner, ProvisionerOf(parts, request));
  ASSIGN_OR_RETURN(const PersistentVolume plan, provisioner->Plan());
  if (plan.spec.source != request.planned.spec.source) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "volume " + request.planned.metadata.name +
                                 " was planned at another place than the configuration names now");
  }
  const VolumeSpec made = VolumeSpec::FromPersistentVolume(plan, false);
  if (const std::optional<StorageName> storage = StorageNameOf(made)) {
    RETURN_IF_ERROR(parts.storage.CheckNotOwn(*storage, CallOf(parts, request, progress)));
  }
  // Nobody selects a node here: the claim is this node's.
  return provisioner->Provision(nullptr, request.allowed_topologies,
                                CallOf(parts, request, progress));
}

Status RunUndoProvision(const ProvisionParts& parts, const ProvisionRequest& request,
                        OperationProgress& progress) {
  progress.EnterStep("Undo");
  ASSIGN_OR_RETURN(const std::unique_ptr<Provisioner> provisioner, ProvisionerOf(parts, request));
  // Records that lost their tail may call a volume planned that was made and used.
  RETURN_IF_ERROR(
      parts.host.irreversible.Admit(IrreversibleStep::kDelete, request.planned.metadata.name));
  return provisioner->Undo(request.planned, CallOf(parts, request, progress));
}

}  // namespace volumed
