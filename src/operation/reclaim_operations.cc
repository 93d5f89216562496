#include "operation/reclaim_operations.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "operation/call_options.h"
#include "operation/operation_parts.h"
#include "operation/operation_traits.h"
#include "operation/storage_steps.h"
#include "pluginmgr/deletable_volume_plugin.h"
#include "pluginmgr/recyclable_volume_plugin.h"
#include "volume/csi_translation.h"
#include "volume/storage_name.h"
#include "volume/unique_name.h"

namespace volumed {
namespace {

// The reasons of the controller's events about a PersistentVolume.
constexpr char kRecyclerPod[] = "RecyclerPod";
constexpr char kVolumeRecycled[] = "VolumeRecycled";
constexpr char kVolumeFailedRecycle[] = "VolumeFailedRecycle";
constexpr char kVolumeDelete[] = "VolumeDelete";
constexpr char kVolumeFailedDelete[] = "VolumeFailedDelete";

constexpr const char* kEndReclaimOperation = "end_reclaim";  // ours

// One reclaim of one volume. A failure has the event's words as its error, which is logged anyway.
class Reclaim {
 public:
  Reclaim(const OperationParts& parts, const VolumeSpec& spec, const CallOptions& call)
      : parts_(parts), spec_(spec), name_(spec.name().str()), call_(call) {}

  // Tells how it ended.
  Status Run(const ReclaimRequest& request) const {
    const bool deletes = request.action == ReclaimAction::kDelete;
    const auto reclaimed = [&] {
      return WithReclaimedStorage(parts_, request, call_, [&](const CallOptions& call) {
        return deletes ? Delete(call) : Recycle(call);
      });
    };
    if (deletes) {
      Status deleted = reclaimed();
      if (!deleted.ok()) TellNotDeleted(deleted.error());
      return deleted;
    }
    Status recycled = reclaimed();
    if (!recycled.ok()) {
      Record(EventType::kWarning, kVolumeFailedRecycle, recycled.error().message());
    } else {
      Tell(EventType::kNormal, kVolumeRecycled, "Volume recycled");
    }
    return recycled;
  }

 private:
  Status Recycle(const CallOptions& call) const {
    const auto plugin = parts_.plugins.FindRecyclablePluginBySpec(spec_);
    if (!plugin.ok()) {
      return Failed(plugin.error(), "No recycler plugin found for the volume!");
    }
    RETURN_IF_ERROR(parts_.host.irreversible.Admit(IrreversibleStep::kRecycle, name_));
    const Status recycled = (*plugin)->Recycle(
        name_, spec_,
        [this](EventType type, const std::string& message) {
          Tell(type, kRecyclerPod, "Recycler pod: " + message);
        },
        call);
    if (!recycled.ok()) {
      return Failed(recycled.error(), "Recycle failed: " + recycled.error().message());
    }
    return OkStatus();
  }

  // Silent where it succeeds, as the controller is.
  Status Delete(const CallOptions& call) const {
    const auto plugin = parts_.plugins.FindDeletablePluginBySpec(spec_);
    if (!plugin.ok()) {
      return Failed(plugin.error(), "error getting deleter volume plugin for volume \"" + name_ +
                                        "\": " + plugin.error().message());
    }
    const auto deleter = (*plugin)->NewDeleter(spec_);
    if (!deleter.ok()) return deleter.error();
    RETURN_IF_ERROR(parts_.host.irreversible.Admit(IrreversibleStep::kDelete, name_));
    return (*deleter)->Delete(call);
  }

  // A volume that is still in use is no failure to the controller.
  void TellNotDeleted(const Error& error) const {
    if (IsDeletedVolumeInUse(error)) {
      Record(EventType::kNormal, kVolumeDelete, error.message());
    } else {
      Record(EventType::kWarning, kVolumeFailedDelete, error.message());
    }
  }
  void Record(EventType type, const char* reason, const std::string& message) const {
    parts_.host.events.RecordVolumeEvent(name_, type, reason, message);
  }
  void Tell(EventType type, const char* reason, const std::string& message) const {
    Record(type, reason, message);
    parts_.logger.Log(type == EventType::kWarning ? LogLevel::kWarning : LogLevel::kInfo,
                      "reclaim of a persistent volume",
                      {{"volume", name_}, {"reason", reason}, {"message", message}});
  }
  static Status Failed(const Error& error, const std::string& message) {
    return Error::FromParts(error.code(), error.outcome(), error.sys_errno(), message);
  }

  const OperationParts& parts_;
  const VolumeSpec& spec_;
  const std::string name_;
  const CallOptions& call_;
};

// The device of a volume that a driver names, be it this agent itself; empty for any other. A
// driver has one call of a volume at a time: nothing of it is deleted while it is made larger.
UniqueVolumeName DeviceWithDriver(const OperationParts& parts, const VolumeSpec& spec) {
  const std::optional<StorageName> storage = StorageNameOf(spec);
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginBySpec(spec);
  if (!storage || storage->driver.empty() || !plugin.ok()) return UniqueVolumeName();
  const Result<std::string> name = (*plugin)->GetVolumeName(spec);
  return name.ok() ? GetUniqueVolumeName((*plugin)->GetPluginName(), *name) : UniqueVolumeName();
}

// "volume_delete", "volume_recycle". REQUIRES: an action.
const char* ReclaimOperationName(ReclaimAction action) {
  return action == ReclaimAction::kDelete ? "volume_delete" : "volume_recycle";
}

}  // namespace

OperationKey ReclaimKey(const std::string& volume_name) {
  return OperationKey(UniqueVolumeName("reclaim/" + volume_name));
}

Status WithReclaimedStorage(const OperationParts& parts, const ReclaimRequest& request,
                            const CallOptions& base,
                            const std::function<Status(const CallOptions&)>& empty) {
  const VolumeSpec spec = VolumeSpec::FromPersistentVolume(*request.volume, false);
  const std::optional<StorageName> storage = StorageNameOf(spec);
  StorageHolder holder = ReclaimStorageHolder(*request.volume);
  if (!storage) {
    RETURN_IF_ERROR(parts.storage.CheckUnknown(holder, nullptr, base));
    return empty(base);
  }
  std::vector<KnownStorage> others = StorageOf(request.others);
  // Pods that came since an interrupted try are kept out by it: they wait for its end.
  ASSIGN_OR_RETURN(const bool goes_on, parts.storage.IsBeingReclaimed(holder.id, *storage));
  holder.was_begun = goes_on;
  if (!goes_on) {
    for (KnownStorage& of_pod : StorageOf(parts.storage, request.pods)) {
      others.push_back(std::move(of_pod));
    }
  }
  ASSIGN_OR_RETURN(const StorageIdentity approved,
                   parts.storage.TakeForReclaim(holder, *storage, request.claim_uid, others, base));
  CallOptions call = base;
  // What a driver has is no file that an effect could compare.
  if (storage->driver.empty()) call.approved = std::make_shared<const StorageIdentity>(approved);
  Status emptied = empty(call);
  // What may be going on still keeps others out, over a restart too. That this try was not applied
  // says nothing of an earlier one, whose worker may be at it still.
  if (!emptied.ok() && (goes_on || emptied.error().maybe_applied())) return emptied;
  if (emptied.ok()) {
    const bool deleted = request.action == ReclaimAction::kDelete;
    const std::string& name = request.volume->metadata.name;
    RETURN_IF_ERROR(parts.storage.Reclaimed(name, *storage, approved, deleted, call));
  }
  const Status released = parts.storage.Release(holder.id);
  return emptied.ok() ? released : emptied;
}

OperationTraits ReclaimVolume::Traits(const OperationParts& parts) const {
  const VolumeSpec spec = AsUsed(VolumeSpec::FromPersistentVolume(*request.volume, false));
  OperationTraits traits = TraitsOf(parts, key(), ReclaimOperationName(request.action), spec);
  traits.device = DeviceWithDriver(parts, spec);
  if (!traits.device.empty()) traits.use = DeviceUse::kExclusive;
  traits.domain = DriverLaneOf(parts, spec);
  return traits;
}

std::optional<OperationFailure> ReclaimVolume::Run(const OperationParts& parts,
                                                   OperationProgress& progress, Unit&) const {
  const VolumeSpec spec = AsUsed(VolumeSpec::FromPersistentVolume(*request.volume, false));
  const bool deletes = request.action == ReclaimAction::kDelete;
  const char* step = deletes ? "Delete" : "Recycle";
  progress.EnterStep(step);
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginBySpec(spec);
  CallOptions call = OperationCall("reclaim/" + spec.name().str(),
                                   plugin.ok() ? (*plugin)->FaultDomain(spec) : "", "", progress);
  call.deadline = Deadline::After(parts.host.clock, parts.settings.reclaim);
  const Reclaim reclaim(parts, spec, call);
  const Status done = reclaim.Run(request);
  if (done.ok()) return std::nullopt;
  return OperationFailure{ReclaimOperationName(request.action), step, done.error()};
}

OperationTraits EndReclaim::Traits(const OperationParts&) const {
  return {.key = key(), .name = kEndReclaimOperation, .plugin_name = "", .pod_display_name = ""};
}

std::optional<OperationFailure> EndReclaim::Run(const OperationParts& parts,
                                                OperationProgress& progress, Unit&) const {
  progress.EnterStep("EndReclaims");
  const Status ended = parts.storage.EndReclaims(volume_name);
  if (ended.ok()) return std::nullopt;
  return OperationFailure{kEndReclaimOperation, "EndReclaims", ended.error()};
}

}  // namespace volumed
