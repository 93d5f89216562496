#include "csidriver/delete_volume.h"

#include "csidriver/node_mounts.h"
#include "csidriver/node_volumes.h"
#include "operation/given_place.h"
#include "operation/recorded_volume.h"
#include "pool/pool_names.h"

namespace volumed {
namespace {

// Where the volume is staged by its row alone. A block volume has no mount there in any case.
std::optional<SafePath> PlaceThatWasLeft(const OperationParts& parts, const PoolVolumes& volumes,
                                         const std::string& id) {
  const std::optional<DeviceRecord> device = parts.devices.Find(PoolDeviceName(id));
  if (!device || IsGone(*device) || device->is_block) return std::nullopt;
  const std::optional<SafePath> place = GivenPlaceOf(*device);
  if (!place) return std::nullopt;
  CallOptions call;
  call.deadline = Deadline::After(parts.host.clock, parts.settings.make_pod_directories);
  const Result<ShownAt> shown = FindShownAt(volumes, parts.host.kernel, id, *place, call);
  const bool is_left = shown.ok() && *shown == ShownAt::kNothing;
  return is_left ? place : std::nullopt;
}

}  // namespace

std::optional<OperationFailure> DeleteServedVolume::Run(const OperationParts& parts,
                                                        OperationProgress& progress,
                                                        Unit& result) const {
  PoolVolumes& volumes = deletion.pools->volumes;
  if (const std::optional<SafePath> left = PlaceThatWasLeft(parts, volumes, deletion.id)) {
    std::optional<OperationFailure> failure =
        UnstageNodeVolume(volumes, {deletion.id, node, *left}).Run(parts, progress, result);
    if (failure) return failure;
  }
  return deletion.Run(parts, progress, result);
}

}  // namespace volumed
