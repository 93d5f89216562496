#include "csidriver/node_stats.h"

#include <optional>
#include <string>

#include "csidriver/place_looks.h"
#include "metrics/metrics_block.h"
#include "metrics/metrics_tree.h"
#include "mounter/mount_refs.h"
#include "operation/call_options.h"
#include "os/place_names.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

using ::csi::v1::NodeGetVolumeStatsResponse;
using ::csi::v1::VolumeUsage;

// What of a device is used, only its user knows.
void AddDeviceSize(int64_t bytes, NodeGetVolumeStatsResponse& response) {
  VolumeUsage& usage = *response.add_usage();
  usage.set_unit(VolumeUsage::BYTES);
  usage.set_total(bytes);
}

void AddFilesystem(const FsInfo& info, NodeGetVolumeStatsResponse& response) {
  VolumeUsage& bytes = *response.add_usage();
  bytes.set_unit(VolumeUsage::BYTES);
  bytes.set_total(info.capacity_bytes);
  bytes.set_available(info.available_bytes);
  bytes.set_used(info.used_bytes);
  if (info.inodes <= 0) return;  // btrfs counts none
  VolumeUsage& inodes = *response.add_usage();
  inodes.set_unit(VolumeUsage::INODES);
  inodes.set_total(info.inodes);
  inodes.set_available(info.inodes_free);
  inodes.set_used(info.inodes_used);
}

Status CheckDeviceAt(Kernel& kernel, const NodePlace& place, const CallOptions& call) {
  if (place.device_number == 0) return OkStatus();
  ASSIGN_OR_RETURN(const FileInfo there,
                   kernel.Call(Stat{.path = place.place, .follow = true}, call));
  if (there.device_number == place.device_number) return OkStatus();
  return Error::NotApplied(Code::kNotFound, "another device than the volume's is there");
}

}  // namespace

Status MeasureNodePlace(Kernel& kernel, const Clock& clock, const NodePlace& place,
                        const PoolVolumeRecord& volume, Deadline deadline,
                        NodeGetVolumeStatsResponse& response) {
  if (place.is_block && place.is_staging) {
    AddDeviceSize(volume.capacity_bytes, response);
    return OkStatus();
  }
  const std::string path = place.place.Display();
  CallOptions call;
  call.deadline = deadline;
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount, FindMountAt(kernel, path, call));
  if (!mount) {
    return Error::NotApplied(Code::kNotFound,
                             "nothing is mounted at the volume's place: it was taken away by hand");
  }
  RETURN_IF_ERROR(CheckPlaceAnswers(kernel, ParentOf(place.place), call));
  if (place.is_block) {
    RETURN_IF_ERROR(CheckDeviceAt(kernel, place, OnPlace(call, place.place)));
    // The device hangs with the pool that has its file.
    call.domain = EffectDomain(place.fault_domain, path);
    ASSIGN_OR_RETURN(const Metrics metrics,
                     MetricsBlock(kernel, clock, place.place).GetMetrics(call));
    AddDeviceSize(metrics.capacity_bytes.value_or(volume.capacity_bytes), response);
    return OkStatus();
  }
  // A filesystem of its own may well answer while that of its pool does not.
  call = OnPath(call, place.place);
  const Result<FsInfo> info = IsTree(volume.backend)
                                  ? MeasureTree(kernel, place.place, volume.project_id, call)
                                  : kernel.Call(StatFs{place.place}, call);
  if (!info.ok()) return info.error();
  AddFilesystem(*info, response);
  return OkStatus();
}

}  // namespace volumed
