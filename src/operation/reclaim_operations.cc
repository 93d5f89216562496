#include "operation/reclaim_operations.h"

#include <memory>
#include <string>
#include <utility>

#include "operation/call_options.h"
#include "pluginmgr/deletable_volume_plugin.h"
#include "pluginmgr/recyclable_volume_plugin.h"

namespace volumed {
namespace {

Status Delete(const ReclaimParts& parts, const VolumeSpec& spec, const CallOptions& call) {
  ASSIGN_OR_RETURN(DeletableVolumePlugin * plugin, parts.plugins.FindDeletablePluginBySpec(spec));
  ASSIGN_OR_RETURN(const std::unique_ptr<Deleter> deleter, plugin->NewDeleter(spec));
  return deleter->Delete(call);
}

Status Recycle(const ReclaimParts& parts, const VolumeSpec& spec, const CallOptions& call) {
  ASSIGN_OR_RETURN(RecyclableVolumePlugin * plugin, parts.plugins.FindRecyclablePluginBySpec(spec));
  const std::string& name = spec.name().str();
  return plugin->Recycle(
      name, spec,
      [&parts, &name](EventType type, const std::string& message) {
        parts.logger.Log(type == EventType::kWarning ? LogLevel::kWarning : LogLevel::kInfo,
                         "recycler pod", {{"volume", name}, {"message", message}});
      },
      call);
}

}  // namespace

const char* ReclaimOperationName(ReclaimAction action) {
  return action == ReclaimAction::kDelete ? "volume_delete" : "volume_recycle";
}

std::optional<OperationFailure> RunReclaim(const ReclaimParts& parts, const ReclaimRequest& request,
                                           const VolumeSpec& spec, OperationProgress& progress) {
  const bool deletes = request.action == ReclaimAction::kDelete;
  const char* step = deletes ? "Delete" : "Recycle";
  progress.EnterStep(step);
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginBySpec(spec);
  CallOptions call = OperationCall("reclaim/" + spec.name().str(),
                                   plugin.ok() ? (*plugin)->FaultDomain(spec) : "", progress);
  call.deadline = Deadline::After(parts.host.clock, parts.settings.reclaim);
  const Status done = deletes ? Delete(parts, spec, call) : Recycle(parts, spec, call);
  if (done.ok()) return std::nullopt;
  return OperationFailure{ReclaimOperationName(request.action), step, done.error()};
}

}  // namespace volumed
