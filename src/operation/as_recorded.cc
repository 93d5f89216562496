#include "operation/as_recorded.h"

#include <optional>

namespace volumed {
namespace {

// Of another boot a record is uncertain, or of another state (AfterRestart). A volume that is to be
// published anew now and then gets that call.
bool MayBeProven(const VolumePlugin& plugin, const VolumeSpec& spec) {
  return plugin.WorksInLane(spec) && !plugin.RequiresRemount(spec);
}

}  // namespace

bool IsProvenAsRecorded(const OperationParts& parts, const MountRequest& request,
                        const VolumePlugin& plugin) {
  if (!request.reconstructed || !MayBeProven(plugin, request.spec)) return false;
  const std::optional<PodVolumeRecord> record = parts.volumes->Find(request.key());
  if (!record || record->uncertain) return false;
  return record->state == VolumeState::kSetUp || record->state == VolumeState::kMapped;
}

bool IsProvenAsRecorded(const OperationParts& parts, const MountDeviceRequest& request,
                        const VolumePlugin& plugin) {
  if (!request.reconstructed || !MayBeProven(plugin, request.spec)) return false;
  const std::optional<DeviceRecord> record = parts.devices.Find(request.device);
  return record && !record->uncertain && record->state == VolumeState::kDeviceMounted;
}

}  // namespace volumed
