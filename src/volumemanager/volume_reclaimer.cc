#include "volumemanager/volume_reclaimer.h"

#include "base/strings.h"
#include "pluginmgr/deletable_volume_plugin.h"
#include "pluginmgr/recyclable_volume_plugin.h"

namespace volumed {
namespace {

using Answer = VolumeReclaimer::Answer;
using Outcome = VolumeReclaimer::Outcome;

Answer Failed(const VolumeEventRecorder& record, const char* reason, std::string message) {
  record(EventType::kWarning, reason, message);
  return {Outcome::kFailed, std::move(message)};
}

}  // namespace

Answer VolumeReclaimer::Recycle(const PersistentVolume& volume,
                                const std::vector<std::string>& users,
                                const VolumeEventRecorder& record, const CallOptions& call) const {
  if (!users.empty()) {
    const std::string message = "Volume is used by pods: " + Join(users, ",");
    record(EventType::kNormal, kEventVolumeFailedRecycle, message);
    return {Outcome::kPostponed, message};
  }
  const VolumeSpec spec = VolumeSpec::FromPersistentVolume(volume, false);
  const auto plugin = plugins_.FindRecyclablePluginBySpec(spec);
  if (!plugin.ok()) {
    return Failed(record, kEventVolumeFailedRecycle, "No recycler plugin found for the volume!");
  }
  const Status recycled = (*plugin)->Recycle(
      volume.metadata.name, spec,
      [&record](EventType type, const std::string& message) {
        record(type, kEventRecyclerPod, "Recycler pod: " + message);
      },
      call);
  if (!recycled.ok()) {
    return Failed(record, kEventVolumeFailedRecycle,
                  "Recycle failed: " + recycled.error().message());
  }
  record(EventType::kNormal, kEventVolumeRecycled, "Volume recycled");
  return {};
}

Answer VolumeReclaimer::Delete(const PersistentVolume& volume, const VolumeEventRecorder& record,
                               const CallOptions& call) const {
  const VolumeSpec spec = VolumeSpec::FromPersistentVolume(volume, false);
  const auto plugin = plugins_.FindDeletablePluginBySpec(spec);
  if (!plugin.ok()) {
    return Failed(record, kEventVolumeFailedDelete,
                  "error getting deleter volume plugin for volume \"" + volume.metadata.name +
                      "\": " + plugin.error().message());
  }
  const auto deleter = (*plugin)->NewDeleter(spec);
  if (!deleter.ok()) return Failed(record, kEventVolumeFailedDelete, deleter.error().message());
  const Status deleted = (*deleter)->Delete(call);
  if (deleted.ok()) return {};
  if (IsDeletedVolumeInUse(deleted.error())) {
    // No failure: users would wonder about one that mends itself.
    record(EventType::kNormal, kEventVolumeDelete, deleted.error().message());
    return {Outcome::kPostponed, deleted.error().message()};
  }
  return Failed(record, kEventVolumeFailedDelete, deleted.error().message());
}

}  // namespace volumed
