#include "csidriver/delete_volume.h"

#include "csidriver/node_volumes.h"
#include "operation/given_place.h"
#include "operation/operation_executor.h"
#include "os/mount_table.h"
#include "pool/pool_names.h"
#include "pool/pool_places.h"

namespace volumed {
namespace {

constexpr char kEndLeaseStep[] = "EndLease";

// By the device itself: where the file is that it was made of says nothing of whoever has it open.
Result<bool> IsDeviceGone(const OperationParts& parts, const MappedDeviceRecord& mapped,
                          const CallOptions& call) {
  const Result<IdentifiedDevice> now =
      parts.host.kernel.Call(IdentifyDevice{{mapped.path, ""}}, call);
  if (now.ok()) return now->facts.identity.disk_sequence != mapped.device.disk_sequence;
  const bool is_gone =
      now.error().code() == Code::kNotFound || now.error().code() == Code::kFailedPrecondition;
  return is_gone ? Result<bool>(true) : now.error();
}

// Whether the node has nothing of the volume where its row says that it is staged. The mount table
// is read as it is: the one that is kept misses a mount whose directory was renamed and is back.
Result<bool> IsByRowAlone(const OperationParts& parts, const PoolVolumes& volumes,
                          const std::string& id, const SafePath& place) {
  const std::optional<DeviceRecord> row = parts.devices.Find(PoolDeviceName(id));
  CallOptions call;
  call.deadline = Deadline::After(parts.host.clock, parts.settings.make_pod_directories);
  if (row && row->is_block) {
    // Either alone may miss the one that it has now.
    if (row->mapped) {
      ASSIGN_OR_RETURN(const bool is_gone, IsDeviceGone(parts, *row->mapped, call));
      if (!is_gone) return false;
    }
    return HasNoDevice(volumes, parts.host.kernel, id, call);
  }
  ASSIGN_OR_RETURN(MountListing all, parts.host.kernel.Call(ListMounts{}, call));
  const bool has_mount = MountSnapshot(std::move(all.mounts)).FindTop(place.Display()) != nullptr;
  if (has_mount) return false;
  // Whoever renames what lies around the place takes the mount along.
  ASSIGN_OR_RETURN(const bool is_shown, IsShownAnywhere(volumes, parts.host.kernel, id, call));
  return !is_shown;
}

}  // namespace

std::optional<SafePath> StagedByRow(const DeviceRecordKeeper& devices, const std::string& id) {
  const std::optional<DeviceRecord> row = devices.Find(PoolDeviceName(id));
  return row && !IsGone(*row) ? GivenPlaceOf(*row) : std::nullopt;
}

std::optional<OperationFailure> DeleteServedVolume::Run(const OperationParts& parts,
                                                        OperationProgress& progress,
                                                        Unit& result) const {
  PoolVolumes& volumes = deletion.pools->volumes;
  const std::string& id = deletion.id;
  if (const std::optional<SafePath> place = StagedByRow(parts.devices, id)) {
    // What nobody can tell is staged, and is not deleted.
    const Result<bool> is_left = IsByRowAlone(parts, volumes, id, *place);
    std::optional<OperationFailure> failure;
    if (is_left.ok() && *is_left) {
      failure = UnstageNodeVolume(volumes, {id, *place}).Run(parts, progress, result);
    }
    if (failure) return failure;
  }
  progress.EnterStep(kEndLeaseStep);
  if (const Status ended = EndStaleLeases(parts, volumes, id); !ended.ok()) {
    return OperationFailure{Traits(parts).name, kEndLeaseStep, ended.error()};
  }
  return deletion.Run(parts, progress, result);
}

}  // namespace volumed
